"""The numbers by which partitioners are judged, under the names by which they are published."""

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.frequencies.frequencies import Frequencies
from adapt.core.partitioners.hybrid import HybridPartitioner
from adapt.core.partitioners.partitioner import Channels, Partitioner
from adapt.core.resources.floors import imbalance_floor, r_floor, r_floor_pair
from adapt.core.resources.functions import Floats, Resources
from adapt.core.resources.imbalance import empty_channels, max_over_mean, max_over_min, relative_imbalance
from adapt.core.resources.loads import channel_loads, total_load
from adapt.core.resources.migration import migration
from adapt.core.table import Column, Kind


@dataclass(frozen=True, slots=True)
class Metrics:
    """Balance, its floors, and migration of one partitioner over one stream; None where a number is not defined.

    Ratios over an empty channel and floors of placements that must leave one empty are infinite, so None; without a
    partitioner before it, a partitioner has no migration.

    Attributes:
        imbalance: Network load of the fullest channel over the average one.
        imbalance_floor: The least `imbalance` that any placement of whole keys can reach.
        r_s: State, fullest channel over emptiest (Eq. 2).
        r_c: Computation, likewise (Eq. 4).
        r_n: Network, likewise (Eq. 6).
        r_floor: The least `r_n` that any placement of whole keys can reach.
        r_floor_pair: The least `r_n` with the explicit keys placed anywhere and the rest where the ring puts them;
            None in a scheme without explicit keys.
        b: Relative load imbalance (Eq. 11); 1 is the tolerated limit.
        m: Relative migration cost (Eq. 12); 1 is the state of an average channel.
        b_times_1_plus_m: The paper's joint objective (Eq. 13); lower is better.
        migrated_keys: Keys whose channel changed.
        migrated_state: Their state, in units of the state function of a count (Eq. 9).
        empty_channels: Channels without any load.
        explicit_keys: Keys that are mapped one by one.
    """

    imbalance: float | None
    imbalance_floor: float | None
    r_s: float | None
    r_c: float | None
    r_n: float | None
    r_floor: float | None
    r_floor_pair: float | None
    b: float | None
    m: float | None
    b_times_1_plus_m: float | None
    migrated_keys: int | None
    migrated_state: float | None
    empty_channels: int
    explicit_keys: int

    def as_data(self) -> dict[str, float | int | None]:
        """The metrics by their published names."""
        return {published_name(name): value for name, value in asdict(self).items()}


METRIC_COLUMNS = (
    Column("imbalance", Kind.RATIO, about="network load of the fullest channel over the average"),
    Column("imbalance_floor", Kind.RATIO, about="the least that any placement of whole keys can reach"),
    Column("r_s", Kind.RATIO, about="state, fullest channel over emptiest"),
    Column("r_c", Kind.RATIO, about="computation, fullest channel over emptiest"),
    Column("r_n", Kind.RATIO, about="network, fullest channel over emptiest"),
    Column("r_floor", Kind.RATIO, about="the least r_n that any placement of whole keys can reach"),
    Column("r_floor_pair", Kind.RATIO, about="the least r_n with these keys tracked and the rest hashed"),
    Column("b", Kind.RATIO, about="geometric mean of the ratios over their tolerances; 1 is tolerated"),
    Column("m", Kind.RATIO, about="migrated state over that of an average channel"),
    Column("b(1+m)", Kind.RATIO, about="balance and migration together; lower is better"),
    Column("migrated_keys", Kind.COUNT, about="keys whose channel changed"),
    Column("migrated_state", Kind.NUMBER, about="their state, in units of the state function of a count"),
    Column("empty_channels", Kind.COUNT, about="channels without any load"),
    Column("explicit_keys", Kind.COUNT, about="keys mapped one by one"),
)
"""How each metric is shown, in the order of `Metrics`."""


def published_name(field: str) -> str:
    """The name of a field of `Metrics` in every table and document: b(1+m) is no Python name."""
    return "b(1+m)" if field == "b_times_1_plus_m" else field


def evaluate(
    partitioner: Partitioner, frequencies: Frequencies, resources: Resources, previous: Partitioner | None = None
) -> Metrics:
    """Measure a partitioner on a counted stream.

    Args:
        partitioner: What is judged; its explicit keys, if it has any, are the tracked ones of `r_floor_pair`.
        frequencies: The stream, every key of it for exact counts.
        resources: Functions and tolerances.
        previous: The partitioner before it; none, no migration.
    """
    placed = partitioner.channels_of(frequencies.keys)
    loads = channel_loads(placed, frequencies, resources, partitioner.channels)
    before = None if previous is None else previous.channels_of(frequencies.keys)
    return measure(partitioner, frequencies, resources, placed, loads, before)


def measure(
    partitioner: Partitioner,
    frequencies: Frequencies,
    resources: Resources,
    placed: Channels,
    loads: Floats,
    before: Channels | None = None,
) -> Metrics:
    """As `evaluate`, where the keys are routed and the channels weighed already.

    Args:
        partitioner: What is judged.
        frequencies: The stream.
        resources: Functions and tolerances.
        placed: The channel of each listed key, shape (keys,).
        loads: The loads of the channels, shape (3, channels).
        before: The channel of each listed key under the partitioner before, shape (keys,).
    """
    channels, network = partitioner.channels, loads[2]
    weights = resources.network.of(frequencies.count_low)
    total = total_load(frequencies, resources.network)
    explicit = partitioner.explicit if isinstance(partitioner, HybridPartitioner) else None
    ratios = [max_over_min(load) for load in loads]
    b = relative_imbalance(ratios, resources.tolerance)
    moved = None
    if before is not None:
        moved = migration(before, placed, resources.state.of(frequencies.count_low), channels)
    m = None if moved is None else moved.relative
    return Metrics(
        imbalance=max_over_mean(network),
        imbalance_floor=imbalance_floor(float(weights[0]), total, channels) if len(weights) else None,
        r_s=ratios[0],
        r_c=ratios[1],
        r_n=ratios[2],
        r_floor=r_floor(weights, total, channels),
        r_floor_pair=None
        if explicit is None
        else _pair_floor(explicit.rows_of(frequencies.keys) >= 0, placed, network, weights),
        b=b,
        m=m,
        b_times_1_plus_m=None if b is None or m is None else b * (1 + m),
        migrated_keys=None if moved is None else moved.keys,
        migrated_state=None if moved is None else moved.state,
        empty_channels=empty_channels(network),
        explicit_keys=0 if explicit is None else len(explicit),
    )


def _pair_floor(tracked: NDArray[np.bool_], placed: Channels, network: Floats, weights: Floats) -> float | None:
    """`r_floor_pair`, with what the ring puts on each channel measured: all but the tracked keys."""
    placed_explicitly = np.bincount(placed[tracked], weights=weights[tracked], minlength=len(network))
    return r_floor_pair(weights[tracked], np.maximum(network - placed_explicitly, 0.0))
