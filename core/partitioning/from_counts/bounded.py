"""Schemes computed from counts: bounded loads, a migration limit."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined
from adapt.core.errors import UsageError
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.partitioning.constructions.level import budgeted_step
from adapt.core.partitioning.constructions.level_with_budget import within_budget
from adapt.core.partitioning.measures.metrics import evaluate
from adapt.core.partitioning.measures.population import Counted, Population
from adapt.core.partitioning.measures.resources import Load, ResourceFunction, Resources, listed_loads
from adapt.core.partitioning.problem.constraints import Constraints, MigrationLimit
from adapt.core.partitioning.problem.problem import MOVED_ROUNDING, Problem
from adapt.core.partitioning.problem.tracking import SERVED
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner

USUAL = 1.25
"""Default c, which trades balance for pinned keys."""

_ROUNDING = 1e-12
"""Relative tolerance of the cap and of ties; sums differ by less."""


def bounded(
    counted: Counted,
    ring: ConsistentHash,
    weigh: Load = ResourceFunction.LINEAR,
    capacity: float = USUAL,
    constraints: Constraints | None = None,
    held: Channels | None = None,
) -> HybridPartitioner:
    """Assign each key to the first ring channel with room.

    A key fits if the channel's load with it is at most `capacity` times the mean. Keys go by falling load, then in the
    order of the list. The paper bounds the number of equal keys; for keys with loads we decide: a key that fits nowhere
    takes the least loaded channel, of several the first that it meets; only keys above (c - 1) times the mean can. So
    no channel is above the cap, unless a key is that hot. Only keys that leave their hashed channel are pinned. Keys
    that a lossy counter did not list stay hashed, and fill their channels first, above the cap if they must.

    With unequal capacities, each channel has a proportional cap, and a key that fits nowhere takes the channel that is
    least utilized with it. Keys of --pin are assigned before all others, whatever the load, and always pinned.

    Args:
        ring: The consistent hash to walk; its channels are those of the result.
        capacity: c, above 1.
        held: Channels that keys keep, -1 for a free key; shape (listed keys,). Default: all are free.

    Source: Mirrokni, Thorup and Zadimoghaddam, Consistent Hashing with Bounded Loads (SODA 2018); keys by falling
    frequency, partitioning functions, section 4.3. O(N) steps per key on average.
    """
    if not capacity > 1:
        raise UsageError(f"the cap of a worker must be above the mean load, so above 1 (got {capacity:g})")
    population, limits = Population.from_counts(counted, ring), constraints or Constraints()
    keys, rest = population.frequencies.keys, population.rest_on(ring, weigh)
    listed = np.array(listed_loads(population.frequencies, weigh))
    capacities, pins = limits.relative(ring.channels), limits.pins_of(keys)
    channels = pins.copy() if held is None else np.where(pins >= 0, pins, held)
    free = channels < 0
    filled = rest + np.bincount(channels[~free], listed[~free], ring.channels)
    caps = capacity * (listed.sum() + rest.sum()) / ring.channels * (1 + _ROUNDING) * capacities
    homes = ring.replicas_of(keys)
    order = np.flatnonzero(free)[np.argsort(-listed[free], kind="stable")]
    _walk(listed, order, homes, ring.owners, caps, capacities, filled, channels)
    away = (channels != ring.owners[homes]) | (pins >= 0)
    return HybridPartitioner(ExplicitMap(keys.filter(away), channels[away]).over(limits.pinned), ring)


@compiled
def _walk(
    loads: Floats,
    order: NDArray[np.int64],
    homes: NDArray[np.int64],
    owners: Channels,
    caps: Floats,
    capacities: Floats,
    filled: Floats,
    out: Channels,
) -> None:
    for key in order:
        load = loads[key]
        emptiest, fits = 0, False
        for channel in range(len(filled)):
            fits = fits or filled[channel] <= caps[channel] - load
            if _is_emptier(filled, capacities, load, channel, emptiest):
                emptiest = channel
        at = homes[key]
        channel = owners[at]
        # If the key fits nowhere, the walk ends at a least loaded channel.
        while (
            filled[channel] > caps[channel] - load if fits else _is_emptier(filled, capacities, load, emptiest, channel)
        ):
            at = at + 1 if at + 1 < len(owners) else 0
            channel = owners[at]
        filled[channel] += load
        out[key] = channel


@inlined
def _is_emptier(filled: Floats, capacities: Floats, load: float, one: int, other: int) -> bool:
    """Whether a channel would be less utilized than another with a load added."""
    if capacities[one] == capacities[other]:
        return bool(filled[one] < filled[other])
    used, others = (filled[one] + load) / capacities[one], (filled[other] + load) / capacities[other]
    return bool(used < others * (1 - _ROUNDING))


MOST_MOVED = SERVED
"""Most keys that a limited step moves by choice; the hottest decide the balance."""


@dataclass(frozen=True, slots=True, eq=False)
class LimitedStep:
    """A step whose migration is limited."""

    limit: MigrationLimit
    population: Population  # the counted keys, with cells that cover both partitioners
    current: Partitioner  # the partitioner in force
    channels: int  # N of the next one
    resources: Resources
    constraints: Constraints  # the other constraints

    def fits(self, partitioner: Partitioner) -> bool:
        """Whether no more state migrates than may."""
        unequal = self.constraints.unequal
        moved = evaluate(partitioner, self.population, self.resources, self.current, unequal).state_moved or 0.0
        total = float(self.population.loads(self.resources.state).sum())
        return moved <= self.limit.state(total, self.channels) * (1 + MOVED_ROUNDING)

    def hottest_moved(self, build: Callable[[Channels], HybridPartitioner]) -> HybridPartitioner:
        """Move the hottest keys towards a scheme's choice, as the limit allows.

        The others stay, except those that must move; so the step is never less balanced than keeping all keys.

        Args:
            build: Assigns the keys that are -1, and keeps the others on these channels; shape (listed keys,).

        Source: partitioning functions, section 3.4, which limits migration in any construction; how is ours.
        """
        frequencies = self.population.frequencies
        keys, home = frequencies.keys, self.current.channels_of(frequencies.keys)
        stays = (home < self.channels) & (self.constraints.pins_of(keys) < 0)
        held = np.where(stays, home, -1).astype(np.int32)
        loads = listed_loads(frequencies, self.resources.network)
        rows = np.flatnonzero(stays)
        rows = np.sort(rows[np.argsort(-loads[rows], kind="stable")][:MOST_MOVED])
        base = build(held)
        limited = replace(self.constraints, max_migration=self.limit)
        problem = Problem.from_counts(
            self.current, base, self.population, keys.take(pa.array(rows)), self.resources, constraints=limited
        )
        most_moved = problem.most_moved
        if not problem.functions or not len(rows):
            return base
        held[rows] = -1
        wanted = build(held).channels_of(problem.keys)
        held = base.channels_of(keys)
        held[frequencies.rows_of(problem.keys)] = within_budget(
            budgeted_step(problem), problem.start, wanted, most_moved
        )
        return build(held)
