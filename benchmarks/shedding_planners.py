"""Load-shedding planners against a linear program per point.

Claims: the exact planner on 20,000 points at once against `scipy.optimize.linprog` (HiGHS) on some of the same points,
in time per point: 5000 times faster for 8 inputs in chains over 2 servers, 1000 times for 8 random inputs over 5
servers and for a tree of 20 variables; 15 times for single points. All scores agree to 1e-9. The pool of bases is warm,
as in use; the programs solved to fill it are printed.

The table of C-FIT for 8 inputs at 10 % takes at most 0.1 s, and is built 3 times faster than plain loops list its rows
and scores.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from ratio import Ratio, best_of, holds, measured
from scipy.optimize import linprog

from adapt.core.arrays import Floats
from adapt.core.fit.distributed.coordinator import fit
from adapt.core.fit.network.names import OperatorKind
from adapt.core.fit.network.network import Input, Network, Node, Operator, Output
from adapt.core.fit.planners.basis import BasisPool
from adapt.core.fit.planners.program import Program

POINTS = 20_000
SOLVED = 100
"""Points that the reference solves."""

EPSILON = 0.1


@dataclass(frozen=True, slots=True)
class Case:
    """A network and its claims."""

    name: str
    network: Network
    claim: float


def main() -> int:
    """Check every claim; 0 if all are met."""
    cases = [
        Case("8 inputs over 2 servers, alike", _chains([(0.016, 0.016), (0.008, 0.008)] * 4), 5000),
        Case("8 inputs over 2 servers, crossed", _chains([(0.016, 0.008), (0.008, 0.016)] * 4), 5000),
        Case("8 random inputs over 5 servers", _chains(np.random.default_rng(0).uniform(0.1, 1, (8, 5))), 1000),
        Case("tree of 20 variables over 4 servers", _tree(), 1000),
    ]
    met = [claim for case in cases for claim in _exact(case)]
    return 0 if all([*met, *_table()]) else 1


def _exact(case: Case) -> Iterator[bool]:
    program = Program.from_network(case.network)
    rates = _rates(program)
    pool = BasisPool(program)
    pool.plan(rates)
    solved = [(program, point) for point in rates[:SOLVED]]
    _, scores = pool.plan(rates)
    reference = np.array([_linprog(*point) for point in solved])
    worst = float(np.abs(scores[:SOLVED] / reference - 1).max())
    print(f"{case.name}: {pool.bases} bases, {pool.vertices} dual vertices, {pool.solved} programs solved to find them")
    print(f"  worst relative difference to linprog {worst:.1e}: {'met' if worst <= 1e-9 else 'NOT MET'}")
    yield worst <= 1e-9

    def by_linprog() -> None:
        for point in solved:
            _linprog(*point)

    yield holds(f"  {POINTS:,} points", _a_point(lambda: pool.plan(rates), POINTS, by_linprog), case.claim)

    def one_by_one() -> None:
        for point in rates[:SOLVED]:
            pool.plan(point[None])

    yield holds("  one point at a time", _a_point(one_by_one, SOLVED, by_linprog), 15)


def _table() -> Iterator[bool]:
    inputs = 8
    costs = [0.016, 0.008] * (inputs // 2)
    program = Program.from_network(_chains([(cost, cost) for cost in costs]))
    most = np.full(inputs, 1e4)
    rows = fit(program, most, EPSILON).tables[0]
    listed = _listed(costs)
    same = len(rows) == len(listed) and np.isclose(np.sort(rows.scores), sorted(score for _, score in listed)).all()
    verdict = "the same" if same else "NOT the same"
    print(f"C-FIT, {inputs} inputs at {EPSILON:.0%}: {len(rows):,} rows, {verdict} as listed")
    yield bool(same)
    took = best_of(lambda: fit(program, most, EPSILON), 7)
    print(f"  best time {took:.4f} s, claimed at most 0.1 s: {'met' if took <= 0.1 else 'NOT MET'}")
    yield took <= 0.1
    yield holds("  against plain loops", measured(lambda: fit(program, most, EPSILON), lambda: _listed(costs)), 3)


def _listed(costs: list[float]) -> list[tuple[tuple[float, ...], float]]:
    """Grid points that fit one capacity, less than a cell below it, each with its score."""
    found: list[tuple[tuple[float, ...], float]] = []
    steps = [EPSILON / cost for cost in costs]
    margin = sum(step * cost for step, cost in zip(steps, costs, strict=True))

    def extend(rates: tuple[float, ...], load: float) -> None:
        axis = len(rates)
        if axis == len(costs):
            if load + margin > 1 + 1e-9:
                found.append((rates, sum(rates)))
            return
        for step in range(round(1 / EPSILON) + 1):
            rate = step * steps[axis]
            if load + rate * costs[axis] > 1 + 1e-9:
                break
            extend((*rates, rate), load + rate * costs[axis])

    extend((), 0.0)
    return found


def _linprog(program: Program, rates: Floats) -> float:
    upper = program.upper(rates)
    bounds = [(0.0, None if np.isinf(bound) else bound) for bound in upper]
    return -float(linprog(-program.weights, program.rows, program.limits, bounds=bounds, method="highs").fun)


def _a_point(ours: Callable[[], Any], our_points: int, reference: Callable[[], Any]) -> Ratio:
    """Ratio of the times per point."""
    ratio = measured(ours, reference, repeats=5)
    factor = our_points / SOLVED
    return Ratio(tuple(one * factor for one in ratio.ratios), ratio.ours_s / our_points, ratio.reference_s / SOLVED)


def _rates(program: Program) -> Floats:
    """Random rates, each input up to twice its own capacity."""
    loads = program.unshed(np.eye(program.inputs)) @ program.rows[: program.resources].T
    alone = 1 / (loads / program.limits[: program.resources]).max(axis=1)
    return np.random.default_rng(1).random((POINTS, program.inputs)) * 2 * alone


def _operator(name: str, node: str, source: str, cost: float, selectivity: float = 1.0) -> Operator:
    return Operator(name, node, OperatorKind.DELAY, (source,), cost, selectivity)


def _chains(costs: Any) -> Network:
    """A query per row of costs, with an operator per column, each on its own server."""
    servers = range(len(costs[0]))
    return Network(
        tuple(Node(f"s{server}") for server in servers),
        tuple(Input(f"in{row}") for row in range(len(costs))),
        tuple(
            _operator(f"{server}.{row}", f"s{server}", f"{server - 1}.{row}" if server else f"in{row}", float(cost))
            for row, along in enumerate(costs)
            for server, cost in enumerate(along)
        ),
        tuple(Output(f"out{row}", f"{servers[-1]}.{row}") for row in range(len(costs))),
    )


def _tree() -> Network:
    """Four queries, each splitting twice: 4 inputs, 16 arcs of splits."""
    operators, outputs = [], []
    for query in range(4):
        operators += [
            _operator(f"root{query}", "a", f"in{query}", 0.1 + 0.03 * query),
            _operator(f"left{query}", "b", f"root{query}", 0.2 + 0.02 * query, 0.9),
            _operator(f"right{query}", "c", f"root{query}", 0.25 + 0.02 * query, 0.9),
            _operator(f"first{query}", "d", f"left{query}", 0.3, 0.8),
            _operator(f"second{query}", "d", f"left{query}", 0.15 + 0.1 * query, 0.8),
        ]
        outputs += [
            Output(f"one{query}", f"first{query}", 1 + 0.3 * query),
            Output(f"two{query}", f"second{query}", 2 - 0.3 * query),
            Output(f"three{query}", f"right{query}"),
        ]
    return Network(
        tuple(map(Node, "abcd")), tuple(Input(f"in{query}") for query in range(4)), tuple(operators), tuple(outputs)
    )


if __name__ == "__main__":
    sys.exit(main())
