"""What is measured of planners: how long they take, how many plans they make, and what their plans lose."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Any, ClassVar, TypeAlias

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.distributed.coordinator import fit
from adapt.core.fit.distributed.distributed import DFit
from adapt.core.fit.distributed.exchange import Channel
from adapt.core.fit.distributed.messages import Topic
from adapt.core.fit.network.names import Grid
from adapt.core.fit.network.network import Network
from adapt.core.fit.planners.plan_table import TablePlanner
from adapt.core.fit.planners.planner import NO_PLAN
from adapt.core.fit.planners.solver import Regions
from adapt.core.fit.planners.workload import Exponential, Observed
from adapt.core.fit.program.basis_pool import BasisPool
from adapt.core.fit.program.program import Program
from adapt.core.fit.tables.leaf import feasible_grid
from adapt.core.fit.tables.spacing import Spacing
from paper.experiments import Data
from paper.fit.networks import NETWORKS, figure_1
from paper.fit.quotes import quote_rates

MOST_RATE = 100.0
"""Tuples/s of each of two inputs up to which plans are made, as in the example of Figure 5; of more inputs, whose costs
are lower, more in proportion."""

Argument: TypeAlias = int | float | str
"""What a network is made from."""

_ENOUGH_S = 0.1
"""Planning is not timed again once it has taken this long in all, and has been timed `_LEAST` times."""
_LEAST = 2

_DIGITS = 12
"""Of errors; what lies behind them is rounding."""

_FARTHEST = 8.0
"""Points are drawn up to so many times as far from 0 as the feasibility boundary."""


@dataclass(frozen=True, slots=True)
class Described:
    """A network, by the name of the function that makes it and what that is given."""

    name: str
    arguments: tuple[tuple[str, Argument], ...]

    @classmethod
    def of(cls, name: str, **arguments: Argument) -> "Described":
        """Arguments by name."""
        return cls(name, tuple(sorted(arguments.items())))

    def network(self) -> Network:
        """Itself."""
        return NETWORKS[self.name](**dict(self.arguments))

    def program(self) -> Program:
        """Its program."""
        return Program.from_network(self.network())

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(f'{name} {value}' for name, value in self.arguments)})"


@dataclass(frozen=True, slots=True)
class Planned:
    """A planner that makes its plans in advance, timed, and held against the best plans at drawn points.

    Attributes:
        network: What is planned.
        planner: `solver`, `solver-w`, `c-fit` by the name of a grid after a space, or `exact`: bases found while it
            plans the drawn points.
        epsilon: What plans may lose of the best score; of solver-w, on average. Of exact, nothing.
        mean_rate: Of the exponential rates that solver-w expects, tuples/s, and by which the expected error of solver
            is taken; 0, neither.
        points: Overloaded points that are drawn to see what plans lose there; as many again just below lines of the
            grid or of regions.
        kept: How many of the drawn points to keep with what is lost there.
        repeats: How often it is timed at most; the shortest counts.
        seed: Of the points; times are taken anew for each.
    """

    alone: ClassVar[bool] = True
    network: Described
    planner: str
    epsilon: float
    mean_rate: float
    points: int
    kept: int
    repeats: int
    seed: int

    @property
    def label(self) -> str:
        """What is measured."""
        return f"{self.planner} {self.epsilon:g}, {self.network}, seed {self.seed}"

    @property
    def needs(self) -> tuple["Planned", ...]:
        """Nothing."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """Seconds, plans, expected error, and what is lost at the points."""
        return _measured(self, self.epsilon)


@dataclass(frozen=True, slots=True)
class Matched:
    """Solver-W, with the expected error that Solver's plans have by the same workload for its threshold.

    Attributes:
        solver: With a mean rate.
    """

    alone: ClassVar[bool] = True
    solver: Planned

    @property
    def label(self) -> str:
        """What is measured."""
        return f"solver-w as good as {self.solver.label}"

    @property
    def needs(self) -> tuple[Planned, ...]:
        """What Solver made."""
        return (self.solver,)

    def measure(self, given: Sequence[Data]) -> Data:
        """As `Planned`."""
        told = self.solver
        planned = Planned(told.network, "solver-w", 0.0, told.mean_rate, told.points, 0, told.repeats, told.seed)
        return _measured(planned, given[0]["expected"])


@dataclass(frozen=True, slots=True)
class Converged:
    """The expected error of Solver-W while its regions are divided.

    Attributes:
        network: What is planned.
        mean_rate: Of the exponential rates.
        plans: How many plans there may be, rising.
        seed: Times are taken anew for each.
    """

    alone: ClassVar[bool] = True
    network: Described
    mean_rate: float
    plans: tuple[int, ...]
    seed: int

    @property
    def label(self) -> str:
        """What is measured."""
        return f"convergence of solver-w, {self.network}, seed {self.seed}"

    @property
    def needs(self) -> tuple["Converged", ...]:
        """Nothing."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """For each number of plans: how many there are, seconds so far, expected error."""
        _warm()
        program = self.network.program()
        start, found = perf_counter(), []
        regions = Regions(program, _box(program), _workload(program, self.mean_rate))
        for most in self.plans:
            regions.divide(0.0, most)
            found.append({"plans": regions.plans, "seconds": perf_counter() - start, "expected": regions.error})
        return found


@dataclass(frozen=True, slots=True)
class PlannedForQuotes:
    """Solver-W by the rates of real quotes, timed.

    Attributes:
        network: What is planned; of two inputs.
        epsilon: The expected error.
        scale: By which rates are multiplied.
        repeats: How often it is timed at most; the shortest counts.
        seed: Times are taken anew for each.
    """

    alone: ClassVar[bool] = True
    network: Described
    epsilon: float
    scale: float
    repeats: int
    seed: int

    @property
    def label(self) -> str:
        """What is measured."""
        return f"solver-w {self.epsilon:g} by quotes, {self.network}, seed {self.seed}"

    @property
    def needs(self) -> tuple["PlannedForQuotes", ...]:
        """Nothing."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """Seconds, plans, and the share of the minutes in which nothing needs to be dropped."""
        _warm()
        program, rates = self.network.program(), quote_rates() * self.scale

        def planned() -> int:
            regions = Regions(program, _box(program), Observed(rates))
            regions.divide(self.epsilon)
            regions.planner()
            return regions.plans

        seconds, plans = _timed(planned, self.repeats)
        return {"seconds": seconds, "plans": plans, "feasible": float(program.feasible(rates).mean())}


@dataclass(frozen=True, slots=True)
class Resent:
    """What a child sends its parent, D-FIT, before and after a change.

    Attributes:
        before: Servers A and B, of which B is the child.
        after: Operators as before, with other numbers.
        epsilon: Between rows, as a part of the largest rates.
        distance: What the scores that the parent knows may be off.
    """

    alone: ClassVar[bool] = True  # a task of its own would take longer than it does
    before: Described
    after: Described
    epsilon: float
    distance: float

    @property
    def label(self) -> str:
        """What is measured."""
        return f"rows sent, {self.before} to {self.after}, distance {self.distance:g}"

    @property
    def needs(self) -> tuple["Resent", ...]:
        """Nothing."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """Rows of the child's table before and after, rows sent for the change, and rows erased by it."""
        program, channel = self.before.program(), Channel(1, 0, Topic.TABLE)
        nodes = DFit(program, _box(program), Spacing(self.epsilon, Grid.PAPER), distance=self.distance)
        nodes.settle()
        first = nodes.traffic()[channel]
        before, erased = first.rows, first.erased
        nodes.change(self.after.program())
        nodes.settle()
        table, after = nodes.table(1), nodes.traffic()[channel]
        return {
            "before": before,
            "after": 0 if table is None else len(table),
            "sent": after.rows - before,
            "erased": after.erased - erased,
        }


@dataclass(frozen=True, slots=True)
class Gridded:
    """How many points of an even grid the network can take, none left out.

    Attributes:
        network: Without splits.
        steps: Between lines of the grid, tuples/s, one an input; empty, a part `epsilon` of each input's largest rate.
        epsilon: That part.
    """

    alone: ClassVar[bool] = True  # a task of its own would take longer than it does
    network: Described
    steps: tuple[float, ...]
    epsilon: float

    @property
    def label(self) -> str:
        """What is measured."""
        return f"grid of {self.network}"

    @property
    def needs(self) -> tuple["Gridded", ...]:
        """Nothing."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """How many."""
        program = self.network.program()
        loads = loads_of(program)
        most = 1 / loads.max(axis=1)
        steps = np.array(self.steps) if self.steps else self.epsilon * most
        fullest = loads[:, 0]
        points = feasible_grid(most, steps, fullest, 1.0, None, 10_000_000)
        return int((points @ loads <= 1 + 1e-9).all(axis=1).sum())


def loads_of(program: Program) -> Floats:
    """The part of each server that a tuple/s of each input takes, shape (inputs, servers)."""
    return program.wiring.uses(program.wiring.unshed(np.eye(program.inputs)))


def overloaded_points(program: Program, points: int, seed: int) -> Floats:
    """Points of all directions beyond the feasibility boundary, as far as plans are made; shape (points, inputs).

    Their distance is up to `_FARTHEST` times that of the boundary, evenly over its logarithm.
    """
    random, loads = np.random.default_rng(seed), loads_of(program)
    directions = random.exponential(size=(points, program.inputs)) / loads.max(axis=1)
    boundary = directions / (directions @ loads).max(axis=1, keepdims=True)
    far = boundary * np.exp(random.uniform(0, np.log(_FARTHEST), (points, 1)))
    inside = np.minimum(far, _box(program))
    return np.asarray(inside[~program.feasible(inside)])


def _measured(planned: Planned, epsilon: float) -> dict[str, Any]:
    _warm()
    program = planned.network.program()
    rates = overloaded_points(program, planned.points, planned.seed)
    if planned.planner == "exact":
        seconds, pool = _timed(lambda: _filled(program, rates), planned.repeats)
        return {"seconds": seconds, "plans": pool.bases}
    seconds, (planner, plans) = _timed(lambda: _planner(planned, program, epsilon), planned.repeats)
    told: dict[str, Any] = {"seconds": seconds, "plans": plans, "threshold": epsilon}
    if planned.mean_rate:
        told["expected"] = _expected(planner, _workload(program, planned.mean_rate), _box(program))
    if planned.points:
        nasty = _below_lines(program, planner, planned.points, planned.seed)
        told |= _lost(program, planner, rates, nasty, planned.kept)
    return told


def _planner(planned: Planned, program: Program, epsilon: float) -> tuple[TablePlanner, int]:
    """Its plans with their index, and how many they are."""
    if planned.planner.startswith("c-fit"):
        tables = fit(program, _box(program), epsilon, Grid(planned.planner.removeprefix("c-fit ")))
        assert tables.epsilon == epsilon
        return tables.planner(), sum(len(table) for table in tables.tables)
    workload = _workload(program, planned.mean_rate) if planned.planner == "solver-w" else None
    regions = Regions(program, _box(program), workload)
    regions.divide(epsilon)
    return regions.planner(), regions.plans


def _filled(program: Program, rates: Floats) -> BasisPool:
    pool = BasisPool(program)
    pool.plan(rates)
    return pool


def _lost(program: Program, planner: TablePlanner, rates: Floats, nasty: Floats, kept: int) -> dict[str, Any]:
    """What plans lose of the best score, at drawn points and at nasty ones."""
    pool = BasisPool(program)
    drawn, no_plan = _errors(program, pool, planner, rates)
    worse, none_there = _errors(program, pool, planner, nasty)
    return {
        "mean": round(float(drawn.mean()), _DIGITS),
        "worst": round(float(max(drawn.max(), worse.max(initial=0.0))), _DIGITS),
        "without": float(no_plan.mean()),
        "nasty_without": float(none_there.mean()) if len(nasty) else 0.0,
        "points": [
            [*map(float, rates[at]), float(drawn[at]), bool(no_plan[at])] for at in range(min(kept, len(rates)))
        ],
    }


def _errors(
    program: Program, pool: BasisPool, planner: TablePlanner, rates: Floats
) -> tuple[Floats, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """The part of the best score that is lost at each point, and whether it has no plan."""
    plans = planner.plan(rates)
    given = program.wiring.scores(program.wiring.flows(rates, plans.keeps))
    _, best = pool.plan(rates)
    return np.maximum(1 - given / best, 0.0), np.asarray((plans.ids == NO_PLAN).any(axis=1))


def _below_lines(program: Program, planner: TablePlanner, points: int, seed: int) -> Floats:
    """Points just below the next line over a plan's rates in every input, where scaling down to it loses most."""
    low = np.concatenate([table.low for table, _ in planner.parts])
    if not len(low):
        return np.empty((0, program.inputs))
    random = np.random.default_rng([seed, 1])
    chosen = low[random.integers(len(low), size=points)]
    above = np.empty_like(chosen)
    for axis in range(program.inputs):
        lines = np.unique(low[:, axis])
        at = np.searchsorted(lines, chosen[:, axis] * (1 + 1e-9), side="right")
        following = lines[np.minimum(at, len(lines) - 1)]
        above[:, axis] = np.where(at < len(lines), following * (1 - 1e-9), np.maximum(chosen[:, axis], following))
    return above[~program.feasible(above)]


def _expected(planner: TablePlanner, workload: Exponential, most: Floats) -> float:
    """E[eps_max]: over regions, the sum of probability times error; what lies beyond the box is taken at its edge."""
    ((table, _),) = planner.parts
    high = np.where(table.high >= most, np.inf, table.high)
    return float(workload.probability(table.low, high) @ table.errors)


def _timed(make: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    taken: list[float] = []
    while len(taken) < min(repeats, _LEAST) or (sum(taken) < _ENOUGH_S and len(taken) < repeats):
        start = perf_counter()
        made = make()
        taken.append(perf_counter() - start)
    return min(taken), made


@cache
def _warm() -> None:
    """Compile all that is timed."""
    program = Program.from_network(figure_1())
    most = np.ones(2)
    for grid in Grid:
        fit(program, most, 0.5, grid).planner().plan(most[None])
    regions = Regions(program, most, Exponential(most))
    regions.divide(0.5)
    regions.planner().plan(most[None])


def _box(program: Program) -> Floats:
    return np.full(program.inputs, MOST_RATE * max(program.inputs, 2) / 2)


def _workload(program: Program, mean_rate: float) -> Exponential:
    return Exponential(np.full(program.inputs, mean_rate))
