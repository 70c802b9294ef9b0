"""A migration limit for schemes that are computed from counts."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.partitioning.constructions.level import budgeted_step
from adapt.core.partitioning.constructions.level_with_budget import within_budget
from adapt.core.partitioning.measures.key_loads import listed_loads
from adapt.core.partitioning.measures.metrics import evaluate
from adapt.core.partitioning.measures.population import Population
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.problem.constraints import Constraints, MigrationLimit
from adapt.core.partitioning.problem.problem import MOVED_ROUNDING, Problem
from adapt.core.partitioning.problem.tracking import SERVED
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner

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
        moved = evaluate(partitioner, self.population, self.resources, self.current, unequal).migrated_state or 0.0
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
