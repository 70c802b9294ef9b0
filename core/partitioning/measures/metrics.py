"""Metrics of partitioners: imbalance, floors, migration."""

from dataclasses import asdict, dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.metrics import columns_named
from adapt.core.partitioning.measures.floors import best_possible, r_best, r_best_pinned
from adapt.core.partitioning.measures.imbalance import (
    channel_loads,
    empty_channels,
    max_over_mean,
    max_over_min,
    relative_imbalance,
)
from adapt.core.partitioning.measures.population import Counted, Population
from adapt.core.partitioning.measures.resources import ResourceFunction, Resources, listed_loads, load_of
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner


@dataclass(frozen=True, slots=True)
class Migration:
    """Keys and state moved by one change of partitioner.

    Attributes:
        keys: Keys whose channel changed.
        state: Their state, M (Eq. 9), in units of beta_s of a count.
        ideal: L_s (Eq. 10): the state of an average channel among the new ones.
    """

    keys: int
    state: float
    ideal: float

    @property
    def relative(self) -> float | None:
        """m (Eq. 12), the migration factor; None without state.

        Consistent hashing without skew moves 1 to a new channel.
        """
        return self.state / self.ideal if self.ideal > 0 else None


def migration(
    before: Channels,
    after: Channels,
    state: Floats,
    channels: int,
    represented: Floats | None = None,
    leaving: Floats | None = None,
) -> Migration:
    """M (Eq. 9): the state of the keys whose channel changed.

    A key of a removed channel has moved, since its old channel differs from any new one. A key that is not in the new
    period has no known state and does not count.

    Args:
        before: The channel of each key under the old partitioner, shape (keys,).
        state: beta_s of each key's new count, shape (keys,).
        channels: N of the new partitioner (decision of ours: Eq. 10 does not say which N).
        represented: Number of keys that each entry represents, shape (keys,). Default: 1.
        leaving: The share of each key's state that moves, shape (keys,). Default: all of it if its channel changed.

    Source: partitioning functions, sections 3.3 and 3.4.
    """
    share = (before != after).astype(np.float64) if leaving is None else leaving
    moved = share > 0
    keys = np.count_nonzero(moved) if represented is None else round(represented[moved].sum())
    return Migration(int(keys), float((state[moved] * share[moved]).sum()), float(state.sum()) / channels)


@dataclass(frozen=True, slots=True)
class Metrics:
    """Imbalance, floors and migration of a partitioner; None if undefined.

    Ratios over an empty channel are infinite, so None, and so are floors of assignments that must leave one empty.
    Without a partitioner before it, a partitioner has no migration.

    With lossy counts, keys that were not listed count in every number (`Population`).

    With unequal capacities, the load of a channel is its utilization, load / relative capacity, and the mean is the
    utilization of all capacity together.

    Attributes:
        imbalance: Network load of the busiest channel / mean load.
        best_possible: The best possible `imbalance` of any assignment of whole keys.
        r_s: State, max/min over channels (Eq. 2).
        r_c: Computation, max/min (Eq. 4).
        r_n: Network, max/min (Eq. 6).
        r_best: The best possible `r_n` of any assignment of whole keys.
        r_best_pinned: The best possible `r_n` with the same pinned keys and the rest hashed; None in a scheme without
            pinned keys.
        b: Relative load imbalance (Eq. 11); 1 is the tolerated limit.
        b_best: A lower bound of `b`, for whole keys or, if keys are pinned, for these keys over the ring: from the
            floors of the resources that weigh keys as the network does, or by their square, and 1 for others.
        m: Migration factor (Eq. 12): state moved / an average channel's state.
        b_times_1_plus_m: The paper's joint objective (Eq. 13); lower is better.
        keys_moved: Keys whose channel changed; the number of unlisted ones is estimated.
        state_moved: Their state, in units of the state function of a count (Eq. 9), or as measured.
    """

    imbalance: float | None
    best_possible: float | None
    r_s: float | None
    r_c: float | None
    r_n: float | None
    r_best: float | None
    r_best_pinned: float | None
    b: float | None
    b_best: float | None
    m: float | None
    b_times_1_plus_m: float | None
    keys_moved: int | None
    state_moved: float | None
    empty_channels: int
    pinned_keys: int

    def as_data(self) -> dict[str, float | int | None]:
        """The metrics by their published names."""
        return {published_name(name): value for name, value in asdict(self).items()}


METRIC_COLUMNS = (
    *columns_named("imbalance best_possible r_s r_c r_n r_best r_best_pinned b b_best m b(1+m) keys_moved"),
    *columns_named("state_moved empty_channels pinned_keys"),
)
"""How each metric is shown, in the order of `Metrics`."""


def published_name(field: str) -> str:
    """The published name of a field of `Metrics`."""
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
        partitioner: The partitioner; its pinned keys, if any, are those of `r_best_pinned`.
        counted: The stream.
        previous: The partitioner before it. Default: no migration.
        capacities: Of each channel, shape (channels,), if unequal: loads are then utilizations.
    """
    population = Population.from_counts(counted, partitioner, *([] if previous is None else [previous]))
    placed = population.placed(partitioner)
    loads = channel_loads(placed, population, resources, partitioner.channels)
    before = None if previous is None else population.placed(previous)
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
    """As `evaluate`, with keys routed and channel loads summed already.

    Args:
        placed: The channel of each entry of the population (`Population.placed`).
        loads: The loads of the channels, shape (3, channels).
        before: The same under the partitioner before.
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
        heavy=population.heaviest(resources.network),
        pair_floor=pair_floor,
        pinned_keys=0 if explicit is None else len(explicit),
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
    pinned_keys: int,
    moved: Migration | None,
    capacities: Floats | None = None,
) -> Metrics:
    """The metrics of known channel loads.

    Args:
        loads: The loads of the channels, shape (3, channels).
        total: The network load of all keys.
        heavy: The network loads of the hottest keys, falling; all of them, or as many as floors use.
        capacities: Of each channel, shape (channels,), if unequal: the same for all three resources.
    """
    channels, network = loads.shape[1], loads[2]
    ratios = [max_over_min(load if capacities is None else load / capacities) for load in loads]
    b = relative_imbalance(ratios, resources.tolerance)
    m = None if moved is None else moved.relative
    floor = r_best(heavy, total, channels, capacities)
    floors = _floors(loads, resources, heavy, floor if pair_floor is None else pair_floor, capacities)
    return Metrics(
        imbalance=max_over_mean(network, capacities),
        best_possible=best_possible(heavy, total, channels, capacities) if len(heavy) else None,
        r_s=ratios[0],
        r_c=ratios[1],
        r_n=ratios[2],
        r_best=floor,
        r_best_pinned=pair_floor,
        b=b,
        b_best=relative_imbalance(floors, resources.tolerance),
        m=m,
        b_times_1_plus_m=None if b is None or m is None else b * (1 + m),
        keys_moved=None if moved is None else moved.keys,
        state_moved=None if moved is None else moved.state,
        empty_channels=empty_channels(network),
        pinned_keys=pinned_keys,
    )


def _floors(
    loads: Floats, resources: Resources, heavy: Floats, network: float | None, capacities: Floats | None
) -> list[float | None]:
    """A floor of r for each resource, given that of the network."""
    floors: list[float | None] = []
    for load, weighed in zip(loads, resources.loads, strict=True):
        if weighed == resources.network:
            floors.append(network)
        elif resources.network is ResourceFunction.LINEAR and weighed is ResourceFunction.QUADRATIC:
            floors.append(r_best(load_of(weighed, heavy), float(load.sum()), len(load), capacities))
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
    """`r_best_pinned`, from the load that the ring puts on each channel: all but the listed pinned keys."""
    listed = population.frequencies
    tracked = explicit.rows_of(listed.keys) >= 0
    weights = listed_loads(listed, resources.network)[tracked]
    placed_explicitly = np.bincount(placed[: population.listed][tracked], weights=weights, minlength=len(network))
    return r_best_pinned(np.sort(weights)[::-1], np.maximum(network - placed_explicitly, 0.0), capacities)
