"""The input of a construction, as arrays, and utilities.

Source: partitioning functions, section 4.3.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, partial
from math import prod
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import inlined
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.partitioning.measures.imbalance import channel_loads
from adapt.core.partitioning.measures.plan_settings import refused
from adapt.core.partitioning.measures.population import Counted, Population, frequencies_in
from adapt.core.partitioning.measures.resources import (
    Load,
    Measured,
    ResourceFunction,
    Resources,
    largest_shares,
    loads_at,
    share_of_unit,
)
from adapt.core.partitioning.problem.constraints import Constraints, MigrationLimit
from adapt.core.partitioning.problem.tracking import theta
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.partitioning.schemes.names import DEFAULT_UTILITY, UtilityName

_LEAST_THETA = 1e-6
"""Least theta: an alpha of 1 would make theta 0 and rho infinite."""

MOVED_ROUNDING = 1e-12
"""Relative rounding error of sums of the same states in another order."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Keys to pin, their loads, and the two partitioners.

    Counts are not normalized to shares: penalties do not depend on scale, and sums of whole numbers are exact.
    Resources with a constant function are not balanced, since hashed keys balance them for free (section 4.4); nor are
    measured ones that are 0 on all of these keys.

    Source: partitioning functions, section 4.2.
    """

    keys: pa.Array  # D_p(t+1), by falling weight, then falling count, then key bytes; shape (keys,)
    counts: Floats  # f of each, shape (keys,)
    # the weight of each key, where the literature orders or divides by f; shape (keys,). Its count, or with measured
    # resources its largest share of a load
    weights: Floats
    # the weight of a unit of each load, shape (functions,): its share of the whole load with measured resources,
    # otherwise 0
    units: Floats
    home: Channels  # current channel of each, p(t); N or above if it no longer exists. Shape (keys,)
    hashed: Channels  # channel of each by the next base, H_c(t+1); shape (keys,)
    functions: tuple[Load, ...]  # the loads that are balanced, functions of counts or measured, at most three
    loads: Floats  # each of these loads of each key, shape (functions, keys)
    theta: Floats  # theta of each of these loads (Eq. 15), shape (functions,)
    state: Floats  # beta_s of each key, shape (keys,)
    network: Floats  # beta_n of each key, shape (keys,)
    # state that moves in any case: of keys that are no longer pinned and hash elsewhere (Eq. 18, first sum)
    owed: float
    ideal: float  # state of all keys pinned before or after, over N (Eq. 18, denominator)
    channels: int  # N(t+1)
    utility: UtilityName
    resources: Resources  # all three loads and their tolerances
    pinned: Channels  # the channel that the user pinned each key to, -1 for a free key; shape (keys,)
    capacities: Floats  # of each channel / mean capacity; shape (channels,)
    # computes the state that may migrate by choice. Default: no limit. Routes the whole population, and raises
    # UsageError if more must migrate than may
    budget: Callable[[], float] | None
    # computes the load of the hashed keys on each channel by the next base, by resource: shape (3, channels). Routes
    # the whole population, so only constructions that need it call it
    residual: Callable[[], Floats]

    @property
    def start(self) -> Channels:
        """First channel of each key: pinned, else current, else hashed.

        Shape (keys,). Source: partitioning functions, section 4.2.4, where a removed channel leaves the start open.
        """
        free = np.where(self.home < self.channels, self.home, self.hashed)
        return np.where(self.pinned >= 0, self.pinned, free).astype(np.int32)

    @property
    def most_moved(self) -> float:
        """State that may migrate by choice, with room for rounding.

        Infinite without a limit; raises as `budget` does.
        """
        return np.inf if self.budget is None else self.budget() * (1 + MOVED_ROUNDING)

    @classmethod
    def from_counts(
        cls,
        current: Partitioner,
        base: Partitioner,
        counted: Counted,
        tracked: pa.Array,
        resources: Resources,
        utility: UtilityName = DEFAULT_UTILITY,
        constraints: Constraints | None = None,
    ) -> "Problem":
        """The problem of a step from one partitioner to the next.

        Args:
            current: The current partitioner, p(t), of any scheme and channel count.
            base: What hashes in the next one, H_c(t+1).
            counted: The counted keys; a key that is not listed weighs 0.
            tracked: Keys to pin, by falling count, then key bytes.
        """
        frequencies = frequencies_in(counted)
        limits = constraints or Constraints()
        rows = frequencies.rows_of(tracked)
        counts = loads_at(frequencies, rows, ResourceFunction.LINEAR)
        weights = counts
        if resources.sources:
            weights = largest_shares(frequencies, resources, rows)
            order = np.argsort(-weights, kind="stable")
            tracked, rows, counts, weights = tracked.take(pa.array(order)), rows[order], counts[order], weights[order]
        departed = _departed(current, tracked)
        lost = loads_at(frequencies, frequencies.rows_of(departed.column), resources.state)
        loads = [loads_at(frequencies, rows, load) for load in resources.loads]
        state, home, pinned = loads[0], current.channels_of(tracked), limits.pins_of(tracked)
        fixed = float(state[(home >= base.channels) | ((pinned >= 0) & (pinned != home))].sum())
        step, most = (counted, tracked, resources, current, base), limits.max_migration
        balanced = [k for k, load in enumerate(resources.loads) if _can_be_balanced(load, loads[k])]
        functions = tuple(resources.loads[k] for k in balanced)
        owed = float(lost[departed.channels != base.channels_of(departed.column)].sum())
        units = [share_of_unit(frequencies, load) if resources.sources else 0.0 for load in functions]
        thetas = [max(theta(resources.tolerance[k], base.channels), _LEAST_THETA) for k in balanced]
        return cls(
            keys=tracked,
            counts=counts,
            weights=weights,
            units=np.array(units, np.float64),
            home=home,
            hashed=base.channels_of(tracked),
            functions=functions,
            loads=np.array([loads[k] for k in balanced]).reshape(len(balanced), len(counts)),
            theta=np.array(thetas, np.float64),
            state=state,
            network=loads[2],
            owed=owed,
            ideal=float(state.sum() + lost.sum()) / base.channels,
            channels=base.channels,
            utility=utility,
            resources=resources,
            pinned=pinned,
            capacities=limits.relative(base.channels),
            budget=None if most is None else cache(partial(_budget, most, *step, fixed)),
            residual=partial(_residual, counted, tracked, resources, base),
        )


def explicit_map(partitioner: Partitioner) -> ExplicitMap:
    """H_p: the pinned keys of a partitioner."""
    return partitioner.explicit if isinstance(partitioner, HybridPartitioner) else ExplicitMap.from_mapping({})


def _departed(current: Partitioner, tracked: pa.Array) -> ExplicitMap:
    """D_o: the keys that `current` pins and the next partitioner will not, with their channels."""
    explicit = explicit_map(current)
    column = explicit.column.cast(tracked.type)
    gone = ~_among(column, tracked)
    return ExplicitMap(column.filter(pa.array(gone)), explicit.channels[gone])


def _can_be_balanced(load: Load, of_keys: Floats) -> bool:
    """Whether assigning these keys changes the balance of a load."""
    return load is not ResourceFunction.CONSTANT and (not isinstance(load, Measured) or bool(of_keys.any()))


def _among(keys: pa.Array, others: pa.Array) -> NDArray[np.bool_]:
    """Which keys are among others; shape (keys,)."""
    return np.asarray(pc.is_in(keys, value_set=others).to_numpy(zero_copy_only=False))


def _untracked(population: Population, tracked: pa.Array) -> NDArray[np.bool_]:
    """Which entries of a population are hashed."""
    among = _among(population.frequencies.keys, tracked)
    return np.concatenate((~among, np.ones(population.entries - len(among), np.bool_)))


def _budget(
    limit: MigrationLimit,
    counted: Counted,
    tracked: pa.Array,
    resources: Resources,
    current: Partitioner,
    base: Partitioner,
    fixed: float,
) -> float:
    """The state that may still migrate by choice under a limit.

    Args:
        limit: The limit on the migration of the whole population.
        counted, tracked, resources, current, base: As in `Problem.from_counts`.
        fixed: State of the tracked keys that must move.
    """
    hashed, total = hashed_migration(counted, tracked, resources, current, base)
    must = hashed + fixed
    refuse_migration(limit, must, total, base.channels)
    return max(limit.state(total, base.channels) - must, 0.0)


def refuse_migration(limit: MigrationLimit, must: float, total: float, channels: int) -> None:
    """Refuse a limit below the state that must migrate."""
    most = limit.state(total, channels)
    if must > most * (1 + MOVED_ROUNDING):
        enough = limit.at_least(must, total, channels)
        raise refused(
            f"{{max_migration}} {limit} allows {most:g} of state to migrate, but {must:g} must: keys of"
            " removed workers, keys pinned elsewhere, and hashed keys that the next base moves; use at least"
            f" {enough}, or pin more keys"
        )


def hashed_migration(
    counted: Counted, tracked: pa.Array, resources: Resources, current: Partitioner, base: Partitioner
) -> tuple[float, float]:
    """State of untracked keys that migrates, and all state."""
    population = Population.from_counts(counted, current, base)
    state = population.loads(resources.state)
    moves = population.placed(current) != population.placed(base)
    return float(state[moves & _untracked(population, tracked)].sum()), float(state.sum())


def _residual(counted: Counted, tracked: pa.Array, resources: Resources, base: Partitioner) -> Floats:
    """The load of the hashed keys on each channel; shape (3, channels)."""
    population = Population.from_counts(counted, base)
    placed = population.placed(base)
    return channel_loads(placed, population, resources, base.channels, _untracked(population, tracked))


class Weighing(IntEnum):
    """Weight of the migration penalty: w(gamma)."""

    NOTHING = 0
    PLAIN = 1
    LOGARITHM = 2


@dataclass(frozen=True, slots=True)
class Utility:
    """A utility of the paper: rho + w(gamma), or its product."""

    weighing: Weighing  # w: 0, gamma or log(1 + gamma)
    times: bool  # whether rho is multiplied by 1 + w, instead of adding w


UTILITIES: Mapping[UtilityName, Utility] = MappingProxyType(
    {
        UtilityName.A: Utility(Weighing.NOTHING, False),
        UtilityName.APM: Utility(Weighing.PLAIN, False),
        UtilityName.APLM: Utility(Weighing.LOGARITHM, False),
        UtilityName.ATM: Utility(Weighing.PLAIN, True),
        UtilityName.ATLM: Utility(Weighing.LOGARITHM, True),
    }
)

_NOTHING, _LOGARITHM = int(Weighing.NOTHING), int(Weighing.LOGARITHM)


@inlined
def weighed(gamma: float, weighing: int) -> float:
    """w(gamma) (section 4.3)."""
    if weighing == _NOTHING:
        return 0.0
    return float(np.log1p(gamma)) if weighing == _LOGARITHM else gamma


@inlined
def utility(rho: float, weight: float, times: bool) -> float:
    """U (section 4.3) of rho and w(gamma)."""
    return rho * (1 + weight) if times else rho + weight


@dataclass(frozen=True, slots=True)
class Balance:
    """Rho of Eqs. 19 and 20, with equal resources merged.

    rho = scale * (product over resources of ((max - min) / sum)^power)^(1 / root), 0 without any resource.

    Eq. 20 with resources of equal load merged, since only their theta may differ: LLL has one such resource, LQL two.
    Without the constant resources, the exponent of Eq. 20 is one over the number of the others (section 4.4).

    Source: partitioning functions, section 4.2.1.
    """

    loads: Floats  # each distinct load of each key, shape (distinct, keys); at most three
    powers: NDArray[np.int64]  # how many resources have that load, shape (distinct,); 1 if there is no other
    units: Floats  # the weight of a unit of each distinct load, shape (distinct,), as in the problem
    root: int  # number of resources; 1 if they all have one load, 0 without any
    scale: float  # product of (channels / theta)^(1 / resources)

    @classmethod
    def from_problem(cls, problem: Problem) -> "Balance":
        """The penalty of a problem's resources."""
        same = same_rows(problem.loads)
        distinct = sorted(set(same))
        powers = [same.count(row) for row in distinct]
        root = sum(powers)
        if powers == [root]:
            powers, root = [1], 1
        scale = prod((problem.channels / problem.theta).tolist()) ** (1 / max(len(same), 1))
        return cls(
            loads=np.ascontiguousarray(problem.loads[distinct]),
            powers=np.array(powers, np.int64),
            units=problem.units[distinct],
            root=root,
            scale=scale,
        )


def same_rows(rows: Floats) -> list[int]:
    """The first equal row of each row."""
    return [next(j for j in range(k + 1) if np.array_equal(rows[j], rows[k])) for k in range(len(rows))]
