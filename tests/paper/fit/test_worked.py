"""The numbers that the page must show, against fractions worked by the simplex method in rational arithmetic."""

from fractions import Fraction

import pytest

from paper.claims import Verdict
from paper.fit.figures import boundaries, branches, example, past
from paper.fit.networks import diamond, figure_1, figure_7
from paper.fit.scope import Scope
from paper.fit.worked import (
    TABLE_1,
    at_inputs,
    best,
    fair,
    figure_7_scores,
    fits_up_to,
    greedy,
    linked,
    measured_row,
    takes_up_to,
    weighted,
)
from tests.core.fit.oracles import rational_score

ONES = (1.0, 1.0)


def near(value: Fraction):
    return pytest.approx(float(value), rel=1e-12)


@pytest.mark.parametrize("printed", TABLE_1)
def test_every_row_of_table_1_is_measured_as_printed(printed):
    assert measured_row(printed.rates).numbers == pytest.approx(printed.numbers, abs=1e-12)


@pytest.mark.parametrize(
    ("network", "rates", "score"),
    [
        (figure_1(), ONES, Fraction(3, 5)),
        (figure_7(), (0.2,), Fraction(7, 25)),
        (diamond(), (1.0,), Fraction(7, 27)),
        (linked(0.5), ONES, Fraction(1, 2)),
        (linked(0.7), ONES, Fraction(3, 5)),
        (weighted(), ONES, Fraction(3, 2)),
    ],
)
def test_the_best_scores_are_those_worked_by_hand(network, rates, score):
    assert best(network, rates).score == near(score)
    if not network.links:
        assert float(rational_score(network, rates)) == pytest.approx(float(score), rel=1e-12)


def test_figure_1_optimum_local_plan_and_fair_plan():
    optimum, local, even = best(figure_1(), ONES), greedy(figure_1(), ONES), fair(figure_1(), ONES)
    assert (optimum.keeps["in0 -> A0"], optimum.keeps["in1 -> A1"]) == pytest.approx((1 / 5, 2 / 5), rel=1e-12)
    assert (local.keeps["in0 -> A0"], local.keeps["in1 -> A1"]) == (1, pytest.approx(0, abs=1e-12))
    assert (even.keeps["in0 -> A0"], even.keeps["in1 -> A1"], even.score) == pytest.approx((1 / 4, 1 / 4, 1 / 2))


def test_figure_7_rates_and_scores():
    assert fits_up_to(figure_7()) == pytest.approx(1 / 8, rel=1e-12)
    assert takes_up_to(figure_7()) == pytest.approx(1 / 3, rel=1e-12)
    assert at_inputs(figure_7(), (0.2,)).score == pytest.approx(0.25, rel=1e-12)
    ((_, low, same), (_, local, alone)) = figure_7_scores([0.1, 0.2])
    assert (low, same) == pytest.approx((0.2, 0.2), rel=1e-12)
    assert (local, alone) == pytest.approx((0.28, 0.25), rel=1e-12)


@pytest.mark.parametrize("figures", [example, branches, boundaries, past])
def test_every_claim_that_can_be_worked_by_hand_holds(figures):
    assert not figures.wanted(Scope())
    part = figures.shown(Scope(), {})
    assert part.claims
    assert {judged.verdict for judged in part.claims} == {Verdict.HOLDS}
