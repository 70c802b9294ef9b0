"""Difference of two plans: the keys and the state that move."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.counting.tables import MOST_KEYS, key_shown
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.partitioning.measures.imbalance import channel_loads, relative
from adapt.core.partitioning.measures.metrics import Metrics, Migration, measure, migration
from adapt.core.partitioning.measures.per_channel import BeforeAfter
from adapt.core.partitioning.measures.population import Counted, Population, frequencies_in
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.problem.at_random import spread_at_random
from adapt.core.partitioning.problem.constraints import recorded_capacities, unequal_capacities
from adapt.core.table import Column, Displayed, Kind, Table

SCHEMA = "adapt.difference/2"

_ESTIMATE = "What unlisted keys load and move is an estimate: count exactly to know it."


@dataclass(frozen=True, slots=True, repr=False)
class Difference(Displayed):
    """What moves between two plans over counted keys.

    All numbers cover the whole population: listed keys and others (`Population`).
    """

    before: Metrics  # before, after: the metrics of each plan; `after` with its migration
    after: Metrics
    migration: Migration  # keys and state that move
    # keys_moved, state_moved: from channel (row) to channel (column); shape (N before, N after). Unlisted keys are
    # estimated and rounded
    keys_moved: NDArray[np.int64]
    state_moved: Floats
    hot_keys: Table  # the hottest listed keys that move, at most `MOST_KEYS`: key, state, from, to
    # loads_before, loads_after: the network load of each channel / mean load, shapes (N,); with unequal capacities,
    # its relative utilization
    loads_before: Floats
    loads_after: Floats
    estimate: bool = False  # whether what unlisted keys load and move is an estimate

    def table(self) -> Table:
        """Both plans side by side, one row per metric."""
        before, after = self.before.as_data(), self.after.as_data()
        columns = (Column("metric"), Column("before", Kind.NUMBER), Column("after", Kind.NUMBER))
        rows = [(name, before[name], after[name]) for name in after]
        return Table.from_rows("Before and after", columns, rows, _ESTIMATE if self.estimate else "")

    def moves(self) -> Table:
        """Keys and state moved by old and new channel, most state first."""
        columns = (
            Column("from", Kind.COUNT, about="old channel"),
            Column("to", Kind.COUNT, about="new channel"),
            Column("keys", Kind.COUNT),
            Column("state", Kind.NUMBER),
        )
        pairs = sorted(
            zip(*np.nonzero(self.keys_moved), strict=True), key=lambda pair: (-self.state_moved[pair], *pair)
        )
        rows = [(int(i), int(j), int(self.keys_moved[i, j]), float(self.state_moved[i, j])) for i, j in pairs]
        return Table.from_rows("Moves", columns, rows)

    def workers(self) -> BeforeAfter:
        """Relative load of each worker under both plans."""
        return BeforeAfter.from_loads("the current plan", self.loads_before, "the new plan", self.loads_after)

    def displayed(self) -> list[Table]:
        """All tables."""
        return [self.table(), self.moves(), self.hot_keys]

    def as_data(self) -> dict[str, object]:
        """The difference as JSON data."""
        return {
            "schema": SCHEMA,
            "estimate": self.estimate,
            "before": self.before.as_data(),
            "after": self.after.as_data(),
            "keys_moved": self.migration.keys,
            "state_moved": self.migration.state,
            "m": self.migration.relative,
            "keys_moved_between": self.keys_moved.tolist(),
            "state_moved_between": self.state_moved.tolist(),
            "hot_keys": self.hot_keys.records(),
            "hot_keys_cut": len(self.hot_keys.rows) < self.migration.keys,
        }


def plan_difference(before: Plan, after: Plan, counted: Counted, resources: Resources) -> Difference:
    """What moves from one plan to another, over counted keys.

    Each plan is measured with its own capacities.
    """
    frequencies = frequencies_in(counted)
    for name, plan in (("first", before), ("second", after)):
        plan.check_keys(frequencies.key_type, "the count", f"the {name} plan")
    if before.hashing is after.hashing:
        pinned = after.explicit.over(before.explicit)
        counted = spread_at_random(counted, after.hashing, after.channels, pinned)
    old, new = before.partitioner(), after.partitioner()
    population = Population.from_counts(counted, old, new)
    was, is_now = population.placed(old), population.placed(new)
    state, represented = population.loads(resources.state), population.represented
    moved = np.flatnonzero(was != is_now)
    cell = was[moved].astype(np.int64) * after.channels + is_now[moved]
    shape = (before.channels, after.channels)
    size = before.channels * after.channels
    keys_moved = np.bincount(cell, weights=None if represented is None else represented[moved], minlength=size)
    state_moved = np.bincount(cell, weights=state[moved], minlength=size)
    bill = migration(was, is_now, state, after.channels, represented)
    was_measured, loads_before = _measured(before, old, population, resources, was)
    is_measured, loads_after = _measured(after, new, population, resources, is_now, was)
    return Difference(
        was_measured,
        is_measured,
        bill,
        np.rint(keys_moved).astype(np.int64).reshape(shape),
        state_moved.astype(np.float64).reshape(shape),
        _hot_keys(population, was, is_now, state, bill.keys),
        loads_before,
        loads_after,
        population.is_estimate(resources),
    )


def _measured(
    plan: Plan,
    partitioner: Partitioner,
    population: Population,
    resources: Resources,
    placed: Channels,
    before: Channels | None = None,
) -> tuple[Metrics, Floats]:
    """The metrics of a plan, and the relative network load of each channel, by the plan's capacities."""
    loads = channel_loads(placed, population, resources, partitioner.channels)
    capacities = unequal_capacities(recorded_capacities(plan.parameters, plan.channels))
    metrics = measure(partitioner, population, resources, placed, loads, before, capacities)
    return metrics, relative(loads[2], capacities)


def _hot_keys(population: Population, was: Channels, is_now: Channels, state: Floats, migrated: int) -> Table:
    """The hottest listed keys that move."""
    columns = (
        Column("key"),
        Column("state", Kind.NUMBER),
        Column("from", Kind.COUNT, about="old channel"),
        Column("to", Kind.COUNT, about="new channel"),
    )
    listed = slice(population.listed)
    first = np.flatnonzero(was[listed] != is_now[listed])[:MOST_KEYS]
    keys = population.keys.take(pa.array(first)).to_pylist()
    rows = [
        (key_shown(key), float(state[at]), int(was[at]), int(is_now[at])) for key, at in zip(keys, first, strict=True)
    ]
    hidden = migrated - len(first)
    return Table.from_rows("Hot keys that move", columns, rows, f"and {hidden:,} more keys" if hidden else "")
