"""Exact optimum: the best possible assignment of the pinned keys."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from adapt.core.errors import UsageError
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.build import Recipe, problem_of
from adapt.core.partitioning.measures.floors import imbalance_floor, r_floor_pair
from adapt.core.partitioning.measures.imbalance import max_over_mean, max_over_min
from adapt.core.partitioning.measures.population import Counted
from adapt.core.partitioning.optimum.even_spread import evenly
from adapt.core.partitioning.optimum.integer_program import Effort, EndedBy, Program
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.problem.problem import Problem
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.table import Cell, Column, Kind, Table

MOST_PAIRS = 5000
"""Most pairs of a pinned key and a channel; a larger search would end at its first bound."""

NODES = 1000
"""Default node limit of the search tree: seconds for a few dozen keys, up to half a minute at most."""

SECONDS = 120.0
"""Default time limit."""

_MOST_RATIO = 1000.0
"""Max/min ratio above which the emptier channel is within the solver's tolerance, so nothing is proved."""


class Objective(StrEnum):
    """What to minimize, of the network resource."""

    IMBALANCE = "imbalance"
    """Load of the busiest channel / mean load."""
    R_N = "r_n"
    """Max/min channel load."""
    SPREAD = "spread"
    """(max - min) / mean channel load of the pinned keys alone: rho of Eq. 19, times theta."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best assignment found, and a bound on any other.

    Attributes:
        placement: The channel of each pinned key, int32, shape (keys,). Interchangeable channels have any order, so it
            may move more state than needed.
        value: Its objective; None if undefined, over a channel or a stream without load. (For a proof, a channel with
            less than 2e-8 of the mean has none.)
        bound: Lower bound of the objective of allowed assignments; None if undefined for all.
    """

    objective: Objective
    placement: Channels
    value: float | None
    bound: float | None
    ended_by: EndedBy

    @property
    def proved(self) -> bool:
        """Whether the assignment is proven optimal."""
        return self.ended_by is EndedBy.PROOF

    @property
    def gap(self) -> float | None:
        """Largest possible improvement of the objective; None if undefined."""
        if self.proved:
            return 0.0
        return None if self.value is None or self.bound is None else self.value - self.bound


def optimum(
    problem: Problem,
    objective: Objective = Objective.IMBALANCE,
    *,
    start: Channels | None = None,
    most_moved: float | None = None,
    nodes: int = NODES,
    seconds: float = SECONDS,
) -> Optimum:
    """Search for the assignment of the pinned keys with the least objective.

    All other keys are hashed to the next ring, and keys of --pin stay. With unequal capacities, loads are utilizations.
    The same problem has the same answer every time, unless time ended the search.

    The max load, and max - min, are linear in the program that `Program` describes. Their ratio is minimized as by
    Dinkelbach: for a reached ratio a, the least max - a min is below 0 exactly if some assignment has a lower ratio,
    and its assignment is one. If B <= 0 bounds this difference from below and M bounds max, no ratio is under a M / (M
    - B): max - a min >= B and min = max / r give r >= a / (1 - B / max).

    Args:
        start: An assignment to start from, shape (keys,); ignored if it moves more than allowed.
        most_moved: State that may migrate, including what must: what is owed, and keys that cannot stay. Default: the
            budget of the problem.
        nodes: Node limit of the search tree, over all searches for a ratio.

    Raises:
        UsageError: there are more than `MOST_PAIRS` pairs of a key and a channel, more state must migrate than may, or
            `start` is not a channel for each key.

    Source: ours for the program. Dinkelbach, On nonlinear fractional programming, Management Science 13, 1967.
    """
    _refuse_the_large(problem)
    program, free = _program(problem, objective, most_moved), problem.pinned < 0
    starts = [problem.start[free], evenly(program.loads, program.residual)]
    if start is not None:
        starts.insert(0, _checked(start, problem)[free])
    best = min(filter(program.allows, starts), key=lambda placement: _order(objective, program, placement))
    found = _least(program, objective, best, Effort(nodes, seconds))
    placement = problem.start
    placement[free] = found.placement
    return replace(found, placement=placement)


def _least(program: Program, objective: Objective, best: Channels, effort: Effort) -> Optimum:
    """The optimum of a program, starting from an allowed assignment."""
    if not len(program.loads) or program.channels == 1 or program.total == 0:
        value = _value(objective, program, best)
        return Optimum(objective, best, value, value, EndedBy.PROOF)
    if objective is Objective.R_N:
        return _least_ratio(program, best, effort)
    found = program.minimise(1, 1 if objective is Objective.SPREAD else 0, best, effort)
    value = _value(objective, program, found.placement)
    proved = found.ended_by is EndedBy.PROOF
    bound = value if proved else found.bound / program.average
    return Optimum(objective, found.placement, value, bound, found.ended_by)


def optimum_table(
    problem: Problem,
    placement: Channels,
    *,
    most_moved: float | None = None,
    nodes: int = NODES,
    seconds: float = SECONDS,
) -> Table:
    """An assignment next to the optimum and the floor.

    One row per objective.

    If all three resources have one load there is a row for b too, which is then r_n / the mean tolerance.

    Args:
        placement: The channel of each pinned key, shape (keys,).

    Raises:
        UsageError: as in `optimum`.
    """
    rows: list[list[Cell]] = []
    for objective in Objective:
        best = optimum(problem, objective, start=placement, most_moved=most_moved, nodes=nodes, seconds=seconds)
        program = _program(replace(problem, budget=None), objective, None)
        judged = _value(objective, program, placement[problem.pinned < 0])
        ratios = [judged, best.value, best.bound, best.gap, _floor(objective, program)]
        rows.append([objective.value, *ratios, best.proved, best.ended_by.value])
        if objective is Objective.R_N and len(set(problem.resources.loads)) == 1:
            tolerance = math.prod(problem.resources.tolerance) ** (1 / 3)
            over = [None if ratio is None else ratio / tolerance for ratio in ratios]
            rows.append(["b", *over, best.proved, best.ended_by.value])
    return Table.from_rows("Plan and optimum", _COLUMNS, rows, note=_NOTE)


def plan_against_optimum(
    plan: Plan, counted: Counted, recipe: Recipe, previous: Plan | None = None, seconds: float = SECONDS
) -> Table:
    """A hybrid plan next to the optimum and the floor (`optimum_table`).

    Raises:
        UsageError: the plan has another scheme, or as in `optimum`.
    """
    if plan.scheme is not Scheme.HYBRID:
        raise UsageError(f"--optimum needs pinned keys, which scheme {plan.scheme} does not choose; use scheme hybrid")
    current = None if previous is None else previous.partitioner()
    problem = problem_of(counted, recipe, plan.channels, current)
    return optimum_table(problem, plan.partitioner().channels_of(problem.keys), seconds=seconds)


_COLUMNS = (
    Column("objective"),
    Column("placed", Kind.RATIO, about="value of the plan"),
    Column("optimum", Kind.RATIO, about="lowest value found"),
    Column("bound", Kind.RATIO, about="lower bound for the same pinned keys"),
    Column("gap", Kind.RATIO, about="optimum - bound"),
    Column("floor", Kind.RATIO, about="lower bound without a search"),
    Column("proved", about="whether the optimum is proven"),
    Column("ended_by", about="proof, node limit, time limit or rounding"),
)

_NOTE = (
    "Network load, with all other keys hashed. spread is (max - min) / mean load of the pinned keys alone, which the"
    " paper's constructions minimize."
)


def _refuse_the_large(problem: Problem) -> None:
    pairs = len(problem.keys) * problem.channels
    if pairs > MOST_PAIRS:
        raise UsageError(
            f"--optimum searches at most {MOST_PAIRS:,} pairs of a pinned key and a channel (got {pairs:,}); use"
            f" --max-pins {MOST_PAIRS // problem.channels:,} or less"
        )


def _program(problem: Problem, objective: Objective, most_moved: float | None) -> Program:
    """The program of the free keys; keys of --pin count as fixed load on their channels."""
    free = problem.pinned < 0
    gone = problem.home >= problem.channels
    must = problem.owed + float(problem.state[gone | (~free & (problem.pinned != problem.home))].sum())
    if most_moved is not None and most_moved < must:
        raise UsageError(f"{most_moved:g} of state may migrate, but {must:g} must; allow at least that much")
    budgets = [] if most_moved is None else [most_moved - must]
    budgets += [] if problem.budget is None else [problem.budget()]
    held = np.bincount(problem.pinned[~free], problem.network[~free], problem.channels)
    residual = np.zeros(problem.channels) if objective is Objective.SPREAD else problem.residual()[2]
    return Program(
        problem.network[free],
        residual + held,
        problem.state[free],
        problem.home[free],
        min(budgets, default=None),
        problem.capacities,
    )


def _checked(start: Channels, problem: Problem) -> Channels:
    placement = np.asarray(start)
    keys, channels = len(problem.keys), problem.channels
    if placement.shape != (keys,) or bool(((placement < 0) | (placement >= channels)).any()):
        raise UsageError(
            f"the first assignment must have one channel from 0 to {channels - 1} for each of {keys:,} keys"
        )
    return placement.astype(np.int32)


def _value(objective: Objective, program: Program, placement: Channels) -> float | None:
    used = program.on_channels(placement)
    match objective:
        case Objective.IMBALANCE:
            return max_over_mean(used * program.capacities, program.capacities)
        case Objective.R_N:
            return max_over_min(used)
        case Objective.SPREAD:
            return float(np.ptp(used)) / program.average if program.total > 0 else 0.0


def _order(objective: Objective, program: Program, placement: Channels) -> float:
    value = _value(objective, program, placement)
    return math.inf if value is None else value


def _least_ratio(program: Program, best: Channels, effort: Effort) -> Optimum:
    """Dinkelbach's steps; first raises the least load if some channel is almost empty."""
    ratio, bound, highest = _ratio(program, best), 1.0, program.least_highest
    if ratio > _MOST_RATIO:
        filled = program.minimise(0, 1, best, effort)
        best, effort, ratio = filled.placement, filled.left, _ratio(program, filled.placement)
        if ratio == math.inf and filled.ended_by is EndedBy.PROOF:
            return Optimum(Objective.R_N, best, None, None, EndedBy.PROOF)
        lowest = max(-filled.bound, float(program.on_channels(best).min()))
        bound = max(highest / lowest, 1.0)
        if ratio == math.inf:
            return Optimum(Objective.R_N, best, None, bound, filled.ended_by)
    while True:
        found = program.minimise(1, ratio, best, effort)
        bound = max(bound, ratio * highest / (highest - min(found.bound, 0.0)))
        best, effort, reached = found.placement, found.left, _ratio(program, found.placement)
        if reached >= ratio or found.ended_by in (EndedBy.NODES, EndedBy.TIME):
            break
        ratio = reached
    ended_by = EndedBy.PROOF if reached <= bound else found.ended_by
    if ended_by is EndedBy.PROOF and reached > _MOST_RATIO:
        ended_by = EndedBy.ROUNDING
    return Optimum(
        Objective.R_N, best, reached, reached if ended_by is EndedBy.PROOF else min(bound, reached), ended_by
    )


def _ratio(program: Program, placement: Channels) -> float:
    ratio = max_over_min(program.on_channels(placement))
    return math.inf if ratio is None else ratio


def _floor(objective: Objective, program: Program) -> float | None:
    """A lower bound without a search; None if no such floor is known."""
    falling = np.sort(program.loads)[::-1]
    match objective:
        case Objective.IMBALANCE:
            return imbalance_floor(falling, program.total, program.channels, program.capacities)
        case Objective.R_N:
            return r_floor_pair(falling, program.residual, program.capacities)
        case Objective.SPREAD:
            return None
