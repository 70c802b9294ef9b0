"""The order in which greedy local plans close arcs, against values computed anew at every step."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.fit.network.names import OperatorKind
from adapt.core.fit.network.network import Input, Network, Node, Operator, Output
from adapt.core.fit.planners.program import Program
from adapt.core.fit.tables.local_plans import DropOrder
from tests.core.fit.networks import delay, random_network


def meeting_again(seed: int) -> Network:
    """Two splits one below the other, whose branches meet again in one output; each operator has another one."""
    random = np.random.default_rng(seed)
    costs = (random.integers(1, 17, 6) / [8, 8, 32, 32, 8, 1]).tolist()  # what all flow into closes first
    operators = (
        delay("first", "A", "in", costs[0]),
        delay("second", "A", "first", costs[1]),
        delay("left", "A", "second", costs[2], 0.5),
        delay("right", "A", "second", costs[3], 0.25),
        Operator("union", "A", OperatorKind.UNION, ("left", "right"), costs[4]),
        delay("last", "A", "union", costs[5]),
    )
    outputs = [Output(f"out {each.name}", each.name, float(random.integers(1, 9))) for each in operators]
    return Network((Node("A"),), (Input("in"),), operators, tuple(outputs))


@given(st.integers(0, 2**32), st.sampled_from(["tree", "dag", "meeting again"]))
def test_each_arc_that_closes_has_the_least_value_per_load_of_those_open(seed: int, shape: str) -> None:
    program = Program.from_network(
        meeting_again(seed) if shape == "meeting again" else random_network(seed, shape, nodes=1, inputs=2, size=9)
    )
    arcs = range(len(program.drop_arcs))
    splits = np.flatnonzero(program.input_of < 0)
    passed = np.zeros((len(arcs), len(arcs)))  # from an arc to those below it
    for row, split in enumerate(splits):
        passed[:, split] = -program.rows[program.resources + row]
        passed[split, split] = 0.0
    closed = set[int]()

    def is_open(arc: int) -> bool:
        return arc not in closed and (program.input_of[arc] >= 0 or any(map(is_open, np.flatnonzero(passed[:, arc]))))

    def total(arc: int, of: np.ndarray) -> float:
        below = [each for each in np.flatnonzero(passed[arc]) if each not in closed]
        return of[arc] + sum(passed[arc, each] * total(each, of) for each in below)

    def ratios() -> dict[int, float]:
        loads = {arc: total(arc, program.rows[0]) for arc in arcs if is_open(arc)}
        return {arc: total(arc, program.weights) / load for arc, load in loads.items() if load > 1e-9}

    for arc in DropOrder.from_program(program).arcs.tolist():
        left = ratios()
        assert left[arc] == pytest.approx(min(left.values()), rel=1e-9)
        closed.add(arc)
    assert ratios() == {}
