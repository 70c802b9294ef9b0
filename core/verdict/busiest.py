"""Busiest worker, and whether it is a hot key or luck."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from adapt.core.arrays import Floats
from adapt.core.counting.tables import key_shown
from adapt.core.engines.names import Engine, Target
from adapt.core.keys.partitioner import Channels
from adapt.core.phrases import listed, percent
from adapt.core.values import EMPTY

PLACEMENTS = 1000
"""Random placements of the same key loads."""

_APART = 1000
"""Each of the hottest keys is placed; sums of all others are drawn as normal ones with their variance."""

_MOST_KEYS = 2
_LEAST_SHARE = 0.05
"""Keys of the busiest worker with a smaller share of its load are not named."""

HOT, LUCK = 0.5, 0.1
"""A key with at least half of what the busiest worker has above the mean is why; one below a tenth is not."""

_UNLIKELY = 0.002
"""Luck that fewer random placements have explains nothing: rows without a key, or a producer, are why."""

_UNITS = {Target.FLINK: "subtask", Target.KAFKA: "partition", Target.SPARK: "partition"}


@dataclass(frozen=True, slots=True)
class Busiest:
    """The busiest worker today."""

    worker: int
    imbalance: float  # its load over the mean
    keys: tuple[tuple[str, float], ...]  # its hottest keys as displayed, each with its share of the worker's load
    excess: float  # load of the hottest of them over what the worker has above the mean
    as_uneven: float  # share of random placements of the same key loads that are at least as uneven
    unit: str = ""  # what the engine calls a worker

    @property
    def sentence(self) -> str:
        """The same in words."""
        name = f"worker {self.worker}" + (f" ({self.unit} {self.worker})" if self.unit else "")
        hot = listed([f"{key or EMPTY} is {percent(share)} of it" for key, share in self.keys]) if self.keys else ""
        hot = f": {hot}" if hot else ""
        chance = percent(self.as_uneven) if self.as_uneven else f"less than {percent(1 / PLACEMENTS)}"
        cause = (
            "a hot key"
            if self.excess >= HOT
            else "both hot keys and luck"
            if self.excess >= LUCK
            else "luck of the hash"
            if self.as_uneven >= _UNLIKELY
            else "neither a hot key nor luck of the hash"
        )
        return (
            f"Busiest is {name}, {self.imbalance:.3f} times the mean{hot}. It is {cause}: {chance}"
            " of random placements of these keys are as uneven."
        )

    def as_data(self) -> dict[str, Any]:
        """JSON data."""
        keys = [{"key": key, "share": share} for key, share in self.keys]
        return asdict(self) | {"keys": keys, "sentence": self.sentence}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Busiest":
        """Read the data of `as_data`."""
        own = {name: value for name, value in data.items() if name not in ("keys", "sentence")}
        return cls(keys=tuple((each["key"], each["share"]) for each in data["keys"]), **own)


def busiest(
    keys: pa.Array, loads: Floats, weights: Floats, placed: Channels, capacities: Floats, engine: str
) -> Busiest | None:
    """The busiest worker; None without load.

    Args:
        keys: The listed keys, first of all entries; shape (listed,).
        loads: Load of each entry, shape (entries,).
        weights: Load of each single key of an entry, shape (entries,); that of the entry, if it is one key.
        placed: Channel of each entry, shape (entries,).
        capacities: Of each channel, shape (channels,).
        engine: What places the keys.
    """
    total = float(loads.sum())
    if total <= 0:
        return None
    fair = capacities / capacities.sum()
    on = np.bincount(placed, loads, len(capacities)).astype(np.float64)
    over = on / total / fair
    worker = int(np.argmax(over))
    own = np.where(placed[: len(keys)] == worker, loads[: len(keys)], 0.0)
    order = np.argsort(-own, kind="stable")[:_MOST_KEYS]
    named = [int(at) for at in order if own[at] >= _LEAST_SHARE * on[worker]]
    hot = tuple((key_shown(keys[at].as_py()), float(own[at] / on[worker])) for at in named)
    above = float(on[worker] - fair[worker] * total)
    excess = float(own.max(initial=0.0)) / above if above > 1e-9 * total else 0.0
    unit = _UNITS.get(Engine(engine).target, "") if engine in list(Engine) else ""
    as_uneven = _as_uneven(loads, weights, capacities, float(over[worker]))
    return Busiest(worker, float(over[worker]), hot, excess, as_uneven, unit)


def _as_uneven(loads: Floats, weights: Floats, capacities: Floats, imbalance: float) -> float:
    """Share of random placements that are at least as uneven."""
    chance, channels = np.random.default_rng(0), len(capacities)
    is_one = loads <= weights * (1 + 1e-9)
    single = np.sort(loads[is_one & (loads > 0)])[::-1]
    apart, rest = single[:_APART], single[_APART:]
    others, own = loads[~is_one], weights[~is_one]
    variance = (float((rest**2).sum()) + float((others * own).sum())) / channels
    places = chance.integers(0, channels, (PLACEMENTS, len(apart))) + np.arange(PLACEMENTS)[:, None] * channels
    filled = np.bincount(places.ravel(), np.tile(apart, PLACEMENTS), PLACEMENTS * channels).reshape(
        PLACEMENTS, channels
    )
    noise = chance.normal(size=(PLACEMENTS, channels)) * np.sqrt(variance)
    filled = filled + (float(rest.sum()) + float(others.sum())) / channels + noise - noise.mean(axis=1, keepdims=True)
    over = (filled / capacities).max(axis=1) * (float(capacities.sum()) / float(loads.sum()))
    return float(np.mean(over >= imbalance * (1 - 1e-9)))
