"""The numbers by which partitioners are judged, under the names by which they are published."""

from dataclasses import asdict, dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.partitioning.measures.channel_loads import channel_loads
from adapt.core.partitioning.measures.floors import imbalance_floor, r_floor, r_floor_pair
from adapt.core.partitioning.measures.imbalance import empty_channels, max_over_mean, max_over_min, relative_imbalance
from adapt.core.partitioning.measures.key_loads import listed_loads
from adapt.core.partitioning.measures.migration import Migration, migration
from adapt.core.partitioning.measures.population import Counted, Population
from adapt.core.partitioning.measures.resources import ResourceFunction, Resources
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.table import Column, Kind


@dataclass(frozen=True, slots=True)
class Metrics:
    """Balance, its floors, and migration of one partitioner over one stream; None where a number is not defined.

    Ratios over an empty channel and floors of placements that must leave one empty are infinite, so None; without a
    partitioner before it, a partitioner has no migration.

    With lossy counts, the keys that were not listed are stood in for by as many made-up keys of equal weight, which are
    routed as real keys are and are part of every number here (`Population`).

    Where channels differ in capacity, a channel's load is its utilisation everywhere: load over relative capacity; and
    the average one is the utilisation of all capacity together.

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
        b_floor: No placement has a lower `b`, be it of whole keys or, where keys are explicit, of these over the ring:
            from the floors of the resources that weigh keys as the network does, or by their square, and 1 of others.
        m: Relative migration cost (Eq. 12); 1 is the state of an average channel.
        b_times_1_plus_m: The paper's joint objective (Eq. 13); lower is better.
        migrated_keys: Keys whose channel changed.
        migrated_state: Their state, in units of the state function of a count (Eq. 9), or as it was measured.
    """

    imbalance: float | None
    imbalance_floor: float | None
    r_s: float | None
    r_c: float | None
    r_n: float | None
    r_floor: float | None
    r_floor_pair: float | None
    b: float | None
    b_floor: float | None
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
    Column("b_floor", Kind.RATIO, about="the least b with these keys tracked and the rest hashed, or else at all"),
    Column("m", Kind.RATIO, about="migrated state over that of an average channel"),
    Column("b(1+m)", Kind.RATIO, about="balance and migration together; lower is better"),
    Column("migrated_keys", Kind.COUNT, about="keys whose channel changed"),
    Column("migrated_state", Kind.NUMBER, about="their state: that function of a count, or what was measured"),
    Column("empty_channels", Kind.COUNT, about="channels without any load"),
    Column("explicit_keys", Kind.COUNT, about="keys mapped one by one"),
)
"""How each metric is shown, in the order of `Metrics`."""


def published_name(field: str) -> str:
    """The name of a field of `Metrics` in every table and document: b(1+m) is no Python name."""
    return "b(1+m)" if field == "b_times_1_plus_m" else field


def evaluate(
    partitioner: Partitioner,
    counted: Counted,
    resources: Resources,
    previous: Partitioner | None = None,
    capacities: Floats | None = None,
) -> Metrics:
    """Measure a partitioner on a counted stream.

    Args:
        partitioner: What is judged; its explicit keys, if it has any, are the tracked ones of `r_floor_pair`.
        counted: The stream; keys that a lossy counter did not list are stood in for.
        previous: The partitioner before it; none, no migration.
        capacities: Of each channel, shape (channels,), where they differ: balance is then of utilisations.
    """
    population = Population.from_counts(counted)
    placed = partitioner.channels_of(population.keys)
    loads = channel_loads(placed, population, resources, partitioner.channels)
    before = None if previous is None else previous.channels_of(population.keys)
    return measure(partitioner, population, resources, placed, loads, before, capacities)


def measure(
    partitioner: Partitioner,
    counted: Counted,
    resources: Resources,
    placed: Channels,
    loads: Floats,
    before: Channels | None = None,
    capacities: Floats | None = None,
) -> Metrics:
    """As `evaluate`, where the keys are routed and the channels weighed already.

    Args:
        placed: The channel of each key of the population, shape (keys,).
        loads: The loads of the channels, shape (3, channels).
        before: The channel of each key of the population under the partitioner before, shape (keys,).
    """
    population = Population.from_counts(counted)
    channels = partitioner.channels
    explicit = partitioner.explicit if isinstance(partitioner, HybridPartitioner) else None
    moved = pair_floor = None
    if before is not None:
        moved = migration(before, placed, population.loads(resources.state), channels, population.represented)
    if explicit is not None:
        pair_floor = _pair_floor(explicit, population, placed, resources, loads[2], capacities)
    return metrics_of(
        loads,
        resources,
        total=float(population.loads(resources.network).sum()),
        heavy=population.heaviest(resources.network, channels),
        pair_floor=pair_floor,
        explicit_keys=0 if explicit is None else len(explicit),
        moved=moved,
        capacities=capacities,
    )


def metrics_of(
    loads: Floats,
    resources: Resources,
    *,
    total: float,
    heavy: Floats,
    pair_floor: float | None,
    explicit_keys: int,
    moved: Migration | None,
    capacities: Floats | None = None,
) -> Metrics:
    """The metrics of channels that are weighed already, by whatever way.

    Args:
        loads: The loads of the channels, shape (3, channels).
        total: The network load of all keys.
        heavy: The network loads of the heaviest keys, falling; all of them or one a channel.
        capacities: Of each channel, shape (channels,), where they differ: one and the same for all three resources.
    """
    channels, network = loads.shape[1], loads[2]
    ratios = [max_over_min(load if capacities is None else load / capacities) for load in loads]
    b = relative_imbalance(ratios, resources.tolerance)
    m = None if moved is None else moved.relative
    floor = r_floor(heavy, total, channels, capacities)
    floors = _floors(loads, resources, heavy, floor if pair_floor is None else pair_floor, capacities)
    return Metrics(
        imbalance=max_over_mean(network, capacities),
        imbalance_floor=imbalance_floor(heavy, total, channels, capacities) if len(heavy) else None,
        r_s=ratios[0],
        r_c=ratios[1],
        r_n=ratios[2],
        r_floor=floor,
        r_floor_pair=pair_floor,
        b=b,
        b_floor=relative_imbalance(floors, resources.tolerance),
        m=m,
        b_times_1_plus_m=None if b is None or m is None else b * (1 + m),
        migrated_keys=None if moved is None else moved.keys,
        migrated_state=None if moved is None else moved.state,
        empty_channels=empty_channels(network),
        explicit_keys=explicit_keys,
    )


def _floors(
    loads: Floats, resources: Resources, heavy: Floats, network: float | None, capacities: Floats | None
) -> list[float | None]:
    """A floor of r for each resource, that of the network being known."""
    floors: list[float | None] = []
    for load, weighed in zip(loads, resources.loads, strict=True):
        if weighed == resources.network:
            floors.append(network)
        elif weighed is ResourceFunction.QUADRATIC and resources.network is ResourceFunction.LINEAR:
            floors.append(r_floor(weighed.costs(heavy), float(load.sum()), len(load), capacities))
        else:
            floors.append(1.0)
    return floors


def _pair_floor(
    explicit: ExplicitMap,
    population: Population,
    placed: Channels,
    resources: Resources,
    network: Floats,
    capacities: Floats | None,
) -> float | None:
    """`r_floor_pair`, with what the ring puts on each channel measured: all but the listed keys that are explicit."""
    listed = population.frequencies
    tracked = explicit.rows_of(listed.keys) >= 0
    weights = listed_loads(listed, resources.network)[tracked]
    placed_explicitly = np.bincount(placed[: population.listed][tracked], weights=weights, minlength=len(network))
    return r_floor_pair(np.sort(weights)[::-1], np.maximum(network - placed_explicitly, 0.0), capacities)
