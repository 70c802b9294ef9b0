"""The verdict on a stream: whether it is even, or what makes it so, with the evidence and how sure it is."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from adapt.core.frequencies.frequencies import Frequencies
from adapt.core.frequencies.tables import NULL_KEY
from adapt.core.partitioners.key_text import key_to_text
from adapt.core.partitioners.partitioner import Channels, Partitioner
from adapt.core.resources.functions import Floats, ResourceFunction, Resources
from adapt.core.resources.population import Counted, Population
from adapt.core.stream import Weight
from adapt.core.verdict.cure import Cure, Skewed, classify
from adapt.core.verdict.interval import LEVEL, METHOD, top_share_interval
from adapt.core.verdict.moving import moved_within
from adapt.core.verdict.over_time import CountedPane, JudgedPane, OverTime
from adapt.core.verdict.words import headline, sentences

MOST_NAMED = 20
"""Keys to split that are named, the heaviest first."""


@dataclass(frozen=True, slots=True)
class Confidence:
    """An interval of f_max, and so of the floor.

    Attributes:
        top_share_low, top_share_high: The ends.
        imbalance_floor_low, imbalance_floor_high: max(1, N f) at them.
        level: The share of samples whose interval holds the truth, at least; None where the interval is of the count
            alone, as rows that weigh are no draws.
        method: By which it was made.
        certain: Whether the floor is on the same side of the limit at both ends.
    """

    top_share_low: float
    top_share_high: float
    imbalance_floor_low: float
    imbalance_floor_high: float
    level: float | None
    method: str
    certain: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the skew of a stream asks for at so many channels.

    Attributes:
        cure: The class.
        channels: N.
        engine: What places the keys today.
        tolerance: T, the most imbalance that will do.
        imbalance: The fullest channel over the average, as the engine places them.
        imbalance_floor: No placement of whole keys has less; max(1, N f_max) where channels are alike.
        top_key: The heaviest key as it is shown; empty if none is listed.
        top_share: f_max, its share of the load.
        busy_keys: Keys with a load; an estimate where some are not listed.
        keys_to_move: Where placement cures it, how many keys move; None elsewhere, or if too few are listed to tell.
        state_to_move: Their share of all state.
        imbalance_after: What is left then.
        keys_to_split: Where it takes splitting, the names of the keys, at most `MOST_NAMED`.
        number_to_split: How many they are.
        split_share: What they carry, as a share of the load.
        proved: Whether it is certain that no placement keeps the limit, where none was found.
        confidence: What the sample allows to say of f_max; None where nothing was estimated.
        over_time: The same by panes; None where no times are known.
    """

    cure: Cure
    channels: int
    engine: str
    tolerance: float
    imbalance: float
    imbalance_floor: float
    top_key: str
    top_share: float
    busy_keys: int
    keys_to_move: int | None = None
    state_to_move: float | None = None
    imbalance_after: float | None = None
    keys_to_split: tuple[str, ...] = ()
    number_to_split: int = 0
    split_share: float = 0.0
    proved: bool = True
    confidence: Confidence | None = None
    over_time: OverTime | None = None

    @property
    def gap(self) -> float:
        """How far the engine is from the best there may be: imbalance over imbalance_floor."""
        return self.imbalance / self.imbalance_floor

    @property
    def useful_workers(self) -> float:
        """1 / f_max: more channels than that cannot all be busy, as long as keys stay whole."""
        return 1 / self.top_share if self.top_share else float(max(self.busy_keys, 1))

    @property
    def headline(self) -> str:
        """The class, at how many channels, by what limit."""
        return headline(self)

    @property
    def sentences(self) -> list[str]:
        """The evidence, what to do, how sure it is, and how it varies."""
        return sentences(self)

    def as_data(self) -> dict[str, Any]:
        """The verdict as JSON data; the names of its numbers are those of metrics and do not change."""
        return {
            "class": self.cure.value,
            "channels": self.channels,
            "engine": self.engine,
            "tolerance": self.tolerance,
            "imbalance": self.imbalance,
            "imbalance_floor": self.imbalance_floor,
            "gap": self.gap,
            "useful_workers": self.useful_workers,
            "top_share": self.top_share,
            "top_key": self.top_key,
            "busy_keys": self.busy_keys,
            "keys_to_move": self.keys_to_move,
            "state_to_move": self.state_to_move,
            "imbalance_after": self.imbalance_after,
            "keys_to_split": list(self.keys_to_split),
            "number_to_split": self.number_to_split,
            "split_share": self.split_share,
            "proved": self.proved,
            "confidence": None if self.confidence is None else asdict(self.confidence),
            "over_time": None if self.over_time is None else self.over_time.as_data(),
            "sentence": " ".join(self.sentences),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Verdict":
        """What `as_data` told.

        Raises:
            KeyError, TypeError, ValueError: it is none.
        """
        derived = {"class", "gap", "useful_workers", "sentence", "confidence", "over_time", "keys_to_split"}
        confidence, over_time = data["confidence"], data["over_time"]
        return cls(
            cure=Cure(data["class"]),
            keys_to_split=tuple(data["keys_to_split"]),
            confidence=None if confidence is None else Confidence(**confidence),
            over_time=None if over_time is None else OverTime.from_data(over_time),
            **{name: value for name, value in data.items() if name not in derived},
        )


def judge(
    counted: Counted,
    today: Partitioner,
    engine: str,
    *,
    resources: Resources | None = None,
    capacities: Floats | None = None,
    panes: Sequence[CountedPane] = (),
) -> Verdict | None:
    """Judge a stream at the channels of the placement that it has today; None where there is no load.

    Args:
        counted: The counted keys.
        today: What places them now.
        engine: Its name, for the sentence.
        resources: The network load is what is to be even, its tolerance the limit T; the state load is what moves.
            "LLL" and 1.2 if not given.
        capacities: Of each channel, where they differ, shape (channels,).
        panes: The same stream cut by time, each to be judged by itself.
    """
    weighed = resources or Resources()
    each = np.ones(today.channels) if capacities is None else capacities
    population = Population.of(counted)
    loads, placed = population.loads(weighed.network), today.channels_of(population.keys)
    limit = weighed.tolerance[2]
    found = classify(population, loads, placed, each, limit)
    if found is None:
        return None
    top = _top(population, loads)
    keys, state, after = (
        _moves(population, loads, placed, each, weighed) if found.cure is Cure.PLACEMENT else (None, None, None)
    )
    return Verdict(
        found.cure,
        today.channels,
        engine,
        limit,
        found.imbalance,
        found.imbalance_floor,
        *top,
        found.busy_keys,
        keys_to_move=keys,
        state_to_move=state,
        imbalance_after=after,
        keys_to_split=tuple(_named(population, row) for row in found.split[:MOST_NAMED]),
        number_to_split=len(found.split),
        split_share=found.split_share,
        proved=found.proved,
        confidence=_confidence(population.frequencies, weighed, today.channels),
        over_time=_over_time(panes, today, weighed, each),
    )


def _moves(
    population: Population, loads: Floats, placed: Channels, capacities: Floats, resources: Resources
) -> tuple[int | None, float | None, float | None]:
    """How many keys move, their share of the state, and the imbalance after; all None where the limit is not met."""
    moved = moved_within(placed, loads, population.listed, capacities, resources.tolerance[2])
    if moved is None:
        return None, None, None
    state, is_moved = population.loads(resources.state), moved != placed
    total = float(state.sum())
    share = float(state[is_moved].sum()) / total if total else 0.0
    filled = np.bincount(moved, loads, len(capacities)) / capacities
    after = float(filled.max()) * float(capacities.sum()) / float(loads.sum())
    return int(np.count_nonzero(is_moved)), share, after


def _over_time(
    panes: Sequence[CountedPane], today: Partitioner, resources: Resources, capacities: Floats
) -> OverTime | None:
    """Each pane judged by itself; None where none has a load, or what was measured is not known of panes."""
    if resources.sources:
        return None
    judged = []
    for pane in panes:
        population = Population.of(pane.frequencies)
        loads, placed = population.loads(resources.network), today.channels_of(population.keys)
        found = classify(population, loads, placed, capacities, resources.tolerance[2])
        if found is not None:
            judged.append(_judged(pane, population, loads, found))
    return OverTime(tuple(judged)) if len(judged) > 1 else None


def _judged(pane: CountedPane, population: Population, loads: Floats, found: Skewed) -> JudgedPane:
    top = _top(population, loads)
    rows = pane.frequencies.rows
    return JudgedPane(pane.start_us, rows, *top, found.imbalance, found.imbalance_floor, found.cure)


def _top(population: Population, loads: Floats) -> tuple[str, float]:
    """The heaviest listed key and its share of the load."""
    if not population.listed:
        return "", 0.0
    row = int(np.argmax(loads[: population.listed]))
    return _named(population, row), float(loads[row]) / float(loads.sum())


def _named(population: Population, row: int) -> str:
    key = population.frequencies.keys[row].as_py()
    return NULL_KEY if key is None else key_to_text(key)


def _confidence(frequencies: Frequencies, resources: Resources, channels: int) -> Confidence | None:
    """How well f_max is known: as a share of messages drawn, or of weights counted within bounds."""
    if resources.network is not ResourceFunction.LINEAR or not len(frequencies.keys) or frequencies.total <= 0:
        return None
    low = float(frequencies.count_low[0])
    high = max(float(frequencies.count_high.max()), frequencies.complete_above)
    are_draws = frequencies.weight is Weight.COUNT and frequencies.rows == round(frequencies.total)
    if are_draws and frequencies.rows:
        ends = top_share_interval(int(low), min(int(high), frequencies.rows), frequencies.rows)
    elif high > low:
        ends = low / frequencies.total, min(high / frequencies.total, 1.0)
    else:
        return None
    least, most = max(1.0, channels * ends[0]), max(1.0, channels * ends[1])
    limit = resources.tolerance[2]
    level, method = (LEVEL, METHOD) if are_draws else (None, "the bounds of the counter; rows that weigh are no draws")
    return Confidence(*ends, least, most, level, method, (least <= limit) == (most <= limit))
