"""Experiments on planners: time, number of plans, and loss of score."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Any, ClassVar, TypeAlias

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.distributed.coordinator import Fitting, fit
from adapt.core.fit.distributed.distributed import DFit
from adapt.core.fit.distributed.messages import Channel, Topic
from adapt.core.fit.network.names import Grid
from adapt.core.fit.network.network import Network
from adapt.core.fit.planners.basis import BasisPool
from adapt.core.fit.planners.direct_planners import NO_PLAN
from adapt.core.fit.planners.plan_table import TablePlanner
from adapt.core.fit.planners.program import Program
from adapt.core.fit.planners.solver import Exponential, Observed, Regions
from adapt.core.fit.tables.rows import GridLines, Spacing
from adapt.core.fit.tables.server import feasible_grid
from paper.experiments import Data
from paper.fit.networks import NETWORKS, figure_1
from paper.fit.packets import packet_rates
from paper.fit.quotes import quote_rates

MOST_RATE = 100.0
"""Highest planned rate of each of two inputs, tuples/s, as in the example of Figure 5; proportionally more for more
inputs, whose costs are lower."""

Argument: TypeAlias = int | float | str
"""Arguments of a network."""

TRACED: Mapping[str, Callable[[], Floats]] = {"quotes": quote_rates, "packets": packet_rates}
"""Rates of traces by name, tuples/s, shape (times, inputs)."""

_ENOUGH_S = 0.1
"""Total time after which planning is not timed again, once it was timed `_LEAST` times."""
_LEAST = 2

_DIGITS = 12
"""Digits of errors; the rest is rounding."""

_FARTHEST = 8.0
"""Farthest random points, as a multiple of the distance of the feasibility boundary from 0."""


@dataclass(frozen=True, slots=True)
class Described:
    """A network: the name and arguments of the function that builds it."""

    name: str
    arguments: tuple[tuple[str, Argument], ...]

    @classmethod
    def of(cls, name: str, **arguments: Argument) -> "Described":
        """Arguments by name."""
        return cls(name, tuple(sorted(arguments.items())))

    def network(self) -> Network:
        """The network."""
        return NETWORKS[self.name](**dict(self.arguments))

    def program(self) -> Program:
        """Linear program of the network."""
        return Program.from_network(self.network())

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(f'{name} {value}' for name, value in self.arguments)})"


@dataclass(frozen=True, slots=True)
class Planned:
    """A planner that plans in advance, timed and tested.

    Its plans are compared with the best plans at random points.

    Attributes:
        network: The network.
        planner: `solver`, `solver-w`, `c-fit` and the name of a grid, separated by a space, or `exact`: bases found
            while it plans the random points.
        epsilon: Allowed loss of the best score; for solver-w on average, unused for exact.
        mean_rate: Mean of the exponential rates that solver-w expects, tuples/s, also used for the expected error of
            solver; 0 for neither.
        points: Random overloaded points at which the loss is measured; as many again just below lines of the grid or of
            regions.
        kept: Number of random points to store with their loss.
        repeats: Most timed repeats; the shortest counts.
        seed: Random seed of the points; each seed is timed again.
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
        """Description of the experiment."""
        return f"{self.planner} {self.epsilon:g}, {self.network}, seed {self.seed}"

    @property
    def needs(self) -> tuple["Planned", ...]:
        """No other experiments."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """Seconds, plans, expected error, and the loss at the points."""
        return _measured(self, self.epsilon)


@dataclass(frozen=True, slots=True)
class Matched:
    """Solver-W with Solver's expected error as its threshold.

    Attributes:
        solver: Experiment with Solver and a mean rate.
    """

    alone: ClassVar[bool] = True
    solver: Planned

    @property
    def label(self) -> str:
        """Description of the experiment."""
        return f"solver-w as good as {self.solver.label}"

    @property
    def needs(self) -> tuple[Planned, ...]:
        """The experiment with Solver."""
        return (self.solver,)

    def measure(self, given: Sequence[Data]) -> Data:
        """Run Solver-W; the result has the fields of `Planned`."""
        told = self.solver
        planned = Planned(told.network, "solver-w", 0.0, told.mean_rate, told.points, 0, told.repeats, told.seed)
        return _measured(planned, given[0]["expected"])


@dataclass(frozen=True, slots=True)
class Converged:
    """Expected error of Solver-W as it divides regions.

    Attributes:
        network: The network.
        mean_rate: Mean of the exponential rates.
        plans: Limits on the number of plans, ascending.
        seed: Each seed is timed again.
    """

    alone: ClassVar[bool] = True
    network: Described
    mean_rate: float
    plans: tuple[int, ...]
    seed: int

    @property
    def label(self) -> str:
        """Description of the experiment."""
        return f"convergence of solver-w, {self.network}, seed {self.seed}"

    @property
    def needs(self) -> tuple["Converged", ...]:
        """No other experiments."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """For each limit: number of plans, seconds so far, expected error."""
        _warm()
        program = self.network.program()
        start, found = perf_counter(), []
        regions = Regions(program, _box(program), _workload(program, self.mean_rate))
        for most in self.plans:
            regions.divide(0.0, most)
            found.append({"plans": regions.plans, "seconds": perf_counter() - start, "expected": regions.error})
        return found


@dataclass(frozen=True, slots=True)
class PlannedForTrace:
    """Solver-W with the rates of a trace, timed.

    Attributes:
        trace: Its name in `TRACED`.
        network: A network with two inputs.
        epsilon: Expected error.
        scale: Factor on the rates.
        repeats: Most timed repeats; the shortest counts.
        seed: Each seed is timed again.
    """

    alone: ClassVar[bool] = True
    trace: str
    network: Described
    epsilon: float
    scale: float
    repeats: int
    seed: int

    @property
    def label(self) -> str:
        """Description of the experiment."""
        return f"solver-w {self.epsilon:g} by {self.trace}, {self.network}, seed {self.seed}"

    @property
    def needs(self) -> tuple["PlannedForTrace", ...]:
        """No other experiments."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """Seconds, plans, and the share of times without drops."""
        _warm()
        program, rates = self.network.program(), TRACED[self.trace]() * self.scale

        def planned() -> int:
            regions = Regions(program, _box(program), Observed(rates))
            regions.divide(self.epsilon)
            regions.planner()
            return regions.plans

        seconds, plans = _timed(planned, self.repeats)
        return {"seconds": seconds, "plans": plans, "feasible": float(program.feasible(rates).mean())}


@dataclass(frozen=True, slots=True)
class Resent:
    """Rows that a D-FIT child sends its parent.

    Attributes:
        before: Servers A and B, of which B is the child.
        after: The same operators with other numbers.
        epsilon: Distance between rows, as a share of the largest rates.
        distance: Allowed error of the scores that the parent knows.
    """

    alone: ClassVar[bool] = True  # a task of its own would take longer than it does
    before: Described
    after: Described
    epsilon: float
    distance: float

    @property
    def label(self) -> str:
        """Description of the experiment."""
        return f"rows sent, {self.before} to {self.after}, distance {self.distance:g}"

    @property
    def needs(self) -> tuple["Resent", ...]:
        """No other experiments."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """Rows of the child's table, rows sent, and rows erased.

        Before and after the change.
        """
        program, channel = self.before.program(), Channel(1, 0, Topic.TABLE)
        nodes = DFit(program, _box(program), Spacing(self.epsilon, Grid.PAPER), distance=self.distance)
        nodes.settle()
        first = nodes.exchange.traffic()[channel]
        before, erased = first.rows, first.erased
        nodes.change(self.after.program())
        nodes.settle()
        table, after = nodes.table(1), nodes.exchange.traffic()[channel]
        return {
            "before": before,
            "after": 0 if table is None else len(table),
            "sent": after.rows - before,
            "erased": after.erased - erased,
        }


@dataclass(frozen=True, slots=True)
class Gridded:
    """Number of feasible points of a regular grid.

    Attributes:
        network: A network without splits.
        steps: Distance between grid lines by input, tuples/s; empty for a share `epsilon` of each input's largest rate.
        epsilon: That share.
        omitted: Points with at most this share of a server's capacity count as one; 0: all count.
    """

    alone: ClassVar[bool] = True  # a task of its own would take longer than it does
    network: Described
    steps: tuple[float, ...]
    epsilon: float
    omitted: float = 0.0

    @property
    def label(self) -> str:
        """Description of the experiment."""
        return f"grid of {self.network}"

    @property
    def needs(self) -> tuple["Gridded", ...]:
        """No other experiments."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """Count the points."""
        program = self.network.program()
        loads = loads_of(program)
        most = 1 / loads.max(axis=1)
        steps = np.array(self.steps) if self.steps else self.epsilon * most
        fullest = loads[:, 0]
        points = feasible_grid(GridLines.fixed(most, steps), fullest, 1.0, 10_000_000)
        used = (points @ loads).max(axis=1)
        return int(((used <= 1 + 1e-9) & (used > self.omitted + 1e-9)).sum()) + 1


def loads_of(program: Program) -> Floats:
    """Server load of a tuple/s of each input, shape (inputs, servers)."""
    return program.wiring.uses(program.wiring.unshed(np.eye(program.inputs)))


def overloaded_points(program: Program, points: int, seed: int) -> Floats:
    """Random points beyond the feasibility boundary, shape (points, inputs).

    In all directions, within the planned rates.

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
    """Its plans with their index, and their number."""
    if planned.planner.startswith("c-fit"):
        tables = fit(program, _box(program), epsilon, Fitting(Grid(planned.planner.removeprefix("c-fit "))))
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
    """Loss of the best score at random points and at worst-case points."""
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
    """Share of the best score lost at each point, all where it has no plan; and whether it has none."""
    plans = planner.plan(rates)
    given = program.wiring.scores(program.wiring.flows(rates, plans.keeps))
    _, best = pool.plan(rates)
    without = np.asarray((plans.ids == NO_PLAN).any(axis=1))
    return np.where(without, 1.0, np.maximum(1 - given / best, 0.0)), without


def _below_lines(program: Program, planner: TablePlanner, points: int, seed: int) -> Floats:
    """Points just below the next grid line in every input, where rounding down loses most."""
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
    """E[eps_max]: sum over regions of probability times error; rates beyond the box count as its edge."""
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
    """Compile all timed code."""
    program = Program.from_network(figure_1())
    most = np.ones(2)
    for grid in Grid:
        fit(program, most, 0.5, Fitting(grid)).planner().plan(most[None])
    regions = Regions(program, most, Exponential(most))
    regions.divide(0.5)
    regions.planner().plan(most[None])


def _box(program: Program) -> Floats:
    return np.full(program.inputs, MOST_RATE * max(program.inputs, 2) / 2)


def _workload(program: Program, mean_rate: float) -> Exponential:
    return Exponential(np.full(program.inputs, mean_rate))
