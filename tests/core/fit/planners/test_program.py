"""The program against numbers worked by hand, and against itself written out and solved by others."""

from dataclasses import replace

import numpy as np
import pytest

from adapt.core.fit.network.network import Link
from adapt.core.fit.planners.highs import WarmProgram
from adapt.core.fit.planners.program import Program
from tests.core.fit.networks import DIAMOND, FIGURE_1, FIGURE_7, SHAPES, chains, random_network, random_rates

ONES = np.ones(2)


def best(network, rates):
    """The best flows, score, and shares kept by name of the arc."""
    program = Program.from_network(network)
    rates = np.array(rates, float)
    flows = WarmProgram(program).flows(rates)
    keeps = program.keeps(rates[None], flows[None])[0]
    return (
        flows,
        program.weights @ flows,
        {arc.name: keep for arc, keep in zip(program.wiring.arcs, keeps, strict=True)},
    )


def test_figure_1_keeps_a_fifth_and_two_fifths() -> None:
    flows, score, _ = best(FIGURE_1, [1, 1])
    assert flows == pytest.approx([1 / 5, 2 / 5], rel=1e-12)
    assert score == pytest.approx(3 / 5, rel=1e-12)


def test_figure_7_drops_three_fifths_of_the_bottom_branch() -> None:
    _, score, keeps = best(FIGURE_7, [0.2])
    assert score == pytest.approx(0.28, rel=1e-12)
    assert keeps["root -> bottom"] == pytest.approx(0.4, rel=1e-12)
    assert keeps["in -> root"] == keeps["root -> top"] == 1


def test_figure_7_shed_at_the_input_alone_drops_37_5_percent_and_gives_a_quarter() -> None:
    program = Program.from_network(FIGURE_7)
    load = program.wiring.uses(program.wiring.unshed(np.array([[0.2]])))[0, 0]
    assert 1 - 1 / load == pytest.approx(0.375, rel=1e-12)
    keeps = np.ones((1, 5))
    keeps[0, 0] = 1 / load
    assert program.wiring.scores(program.wiring.flows(np.array([[0.2]]), keeps))[0] == pytest.approx(0.25, rel=1e-12)


def test_figure_7_takes_an_eighth_without_dropping() -> None:
    program = Program.from_network(FIGURE_7)
    assert program.feasible(np.array([[1 / 8], [1 / 8 + 1e-9]])).tolist() == [True, False]


def test_a_diamond_gives_seven_27ths() -> None:
    _, score, keeps = best(DIAMOND, [1])
    assert score == pytest.approx(7 / 27, rel=1e-12)
    assert keeps["in -> a"] == pytest.approx(1 / 3, rel=1e-12)
    assert keeps["a -> c"] == pytest.approx(5 / 9, rel=1e-12)


def test_half_a_tuple_a_second_over_a_link_gives_a_half() -> None:
    sized = tuple(replace(operator, out_bytes=10.0) for operator in FIGURE_1.operators)
    narrow = replace(FIGURE_1, operators=sized, links=(Link("A", "B", 5.0),))
    assert best(narrow, [1, 1])[1] == pytest.approx(1 / 2, rel=1e-12)
    wide = replace(narrow, links=(Link("A", "B", 7.0),))
    assert best(wide, [1, 1])[1] == pytest.approx(3 / 5, rel=1e-12)


def test_a_weight_of_three_starves_the_other_query() -> None:
    flows, score, _ = best(chains([(1.0, 3.0), (2.0, 1.0)], [1.0, 3.0]), [1, 1])
    assert flows == pytest.approx([0, 1 / 2], abs=1e-12)
    assert score == pytest.approx(3 / 2, rel=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_shares_give_the_flows_that_the_program_chose(shape: str) -> None:
    for seed in range(20):
        program = Program.from_network(random_network(seed, shape))
        rates = random_rates(seed, program.inputs, 4)
        warm = WarmProgram(program)
        flows = np.array([warm.flows(point) for point in rates])
        kept = program.wiring.flows(rates, program.keeps(rates, flows))
        assert kept[:, program.drop_arcs] == pytest.approx(flows, abs=1e-12)
        assert program.wiring.scores(kept) == pytest.approx(flows @ program.weights, abs=1e-12)
