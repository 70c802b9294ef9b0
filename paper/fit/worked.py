"""Worked examples of the paper and beyond it, run by the planners."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.distributed.coordinator import fit
from adapt.core.fit.network.network import Link, Network
from adapt.core.fit.planners.direct_planners import LinearProgram, Planner, Proportional, service
from adapt.core.fit.planners.program import Program
from adapt.core.fit.tables.local_plans import GreedyLocal
from paper.fit.fairness import fairest
from paper.fit.measured import loads_of
from paper.fit.networks import chains, diamond, figure_1, figure_7

_ONES = np.ones((1, 2))


@dataclass(frozen=True, slots=True)
class TableRow:
    """A plan of Table 1, printed or measured.

    Attributes:
        rates: Rates that server A admits by input, tuples/s.
        loads: Loads of A and B.
        given: Outputs of A by query, tuples/s.
        results: Outputs of B by query, tuples/s.
    """

    rates: tuple[float, float]
    loads: tuple[float, float]
    given: tuple[float, float]
    results: tuple[float, float]

    @property
    def numbers(self) -> tuple[float, ...]:
        """All numbers except the rates."""
        return (*self.loads, *self.given, *self.results)


TABLE_1 = (
    TableRow((1, 1), (3, 4 / 3), (1 / 3, 1 / 3), (1 / 4, 1 / 4)),
    TableRow((1 / 3, 1 / 3), (1, 4 / 3), (1 / 3, 1 / 3), (1 / 4, 1 / 4)),
    TableRow((1, 0), (1, 3), (1, 0), (1 / 3, 0)),
    TableRow((0, 1 / 2), (1, 1 / 2), (0, 1 / 2), (0, 1 / 2)),
    TableRow((1 / 5, 2 / 5), (1, 1), (1 / 5, 2 / 5), (1 / 5, 2 / 5)),
)
"""The plans as printed."""


@dataclass(frozen=True, slots=True, eq=False)
class Shed:
    """A plan at one point.

    Attributes:
        keeps: Share kept on each arc, by its name.
        score: Weighted tuples/s at the outputs.
    """

    keeps: dict[str, float]
    score: float


def measured_row(rates: tuple[float, float]) -> TableRow:
    """Results of the servers of Figure 1 at these rates.

    Each is max-min fair in tuples.
    """
    wiring = Program.from_network(figure_1()).wiring
    keeps = np.ones((1, len(wiring.arcs)))
    keeps[0, :2] = rates
    done = service(wiring, _ONES, keeps)
    loads, arriving = wiring.uses(done.arriving)[0], done.arriving[0]
    return TableRow(rates, _pair(loads), _pair(arriving[2:4]), _pair(arriving[4:6]))


def best(network: Network, rates: Sequence[float]) -> Shed:
    """The best plan."""
    return _planned(LinearProgram(Program.from_network(network)), network, rates)


def greedy(network: Network, rates: Sequence[float]) -> Shed:
    """Plans of servers that do not coordinate."""
    return _planned(GreedyLocal(Program.from_network(network)), network, rates)


def at_inputs(network: Network, rates: Sequence[float]) -> Shed:
    """The same share dropped of every input, and nothing elsewhere."""
    return _planned(Proportional(Program.from_network(network)), network, rates)


def fits_up_to(network: Network) -> float:
    """Highest rate of a single input without drops, tuples/s."""
    return float(1 / loads_of(Program.from_network(network)).max())


def takes_up_to(network: Network) -> float:
    """Highest rate of a single input with local plans, tuples/s."""
    tables = fit(Program.from_network(network), np.array([1.0]), 0.1).tables
    return float(tables[0].rates.max())


def fair(network: Network, rates: Sequence[float]) -> Shed:
    """The plan with max-min fair output shares."""
    program, offered = Program.from_network(network), np.array(rates, float)
    flows = fairest(program, offered)
    return _told(program, offered, flows, float(program.weights @ flows))


def weighted() -> Network:
    """Figure 1 with weights 1 and 3."""
    return chains([(1000, 3000), (2000, 1000)], (1.0, 3.0))


def linked(tuples: float) -> Network:
    """Figure 1 with a link of limited bandwidth, tuples/s."""
    network = figure_1()
    sized = tuple(replace(operator, out_bytes=10.0) for operator in network.operators)
    return replace(network, operators=sized, links=(Link("A", "B", 10 * tuples),))


def figure_7_scores(rates: Sequence[float]) -> list[tuple[float, float, float]]:
    """Best score by rate, and with drops at the input."""
    program, offered = Program.from_network(figure_7()), np.array(rates, float)[:, None]
    planners: list[Planner] = [LinearProgram(program), Proportional(program)]
    scores = [planner.plan(offered).scores for planner in planners]
    return [(float(rate), float(local), float(alone)) for rate, local, alone in zip(rates, *scores, strict=True)]


def the_diamond() -> Shed:
    """The split whose branches join again, at rate 1."""
    return best(diamond(), [1.0])


def _planned(planner: Planner, network: Network, rates: Sequence[float]) -> Shed:
    program, offered = Program.from_network(network), np.array([rates], float)
    plans = planner.plan(offered)
    kept = program.wiring.flows(offered, plans.keeps)
    names = [arc.name for arc in program.wiring.arcs]
    return Shed(dict(zip(names, map(float, plans.keeps[0]), strict=True)), float(program.wiring.scores(kept)[0]))


def _told(program: Program, rates: Floats, flows: Floats, score: float) -> Shed:
    keeps = program.keeps(rates[None], flows[None])[0]
    return Shed({arc.name: float(keep) for arc, keep in zip(program.wiring.arcs, keeps, strict=True)}, score)


def _pair(numbers: Floats) -> tuple[float, float]:
    first, second = numbers
    return float(first), float(second)
