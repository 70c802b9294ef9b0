"""Plans for Window Drop against what it really keeps."""

import numpy as np
import pytest

from adapt.core.fit.network.names import DropPlanner, OperatorKind
from adapt.core.fit.network.network import Input, Network, Node, Operator, Output, Window
from adapt.core.fit.registry import planner_of
from adapt.core.fit.running.window_drop import WindowAware
from tests.core.fit.running.literal_window_drop import WindowDrop

MAP, AGGREGATE = OperatorKind.MAP, OperatorKind.AGGREGATE


def network(window, filtered=1.0):
    """A map before an aggregate, and a branch beside it."""
    return Network(
        (Node("A"),),
        (Input("in"),),
        (
            Operator("parse", "A", MAP, ("in",), 0.001),
            Operator("pages", "A", AGGREGATE, ("parse",), 0.002, 0.1, window=window),
            Operator("alarm", "A", MAP, ("parse",), 0.001, filtered),
        ),
        (Output("per page", "pages", 40.0), Output("alarms", "alarm")),
    )


def aware(window, batch):
    of = network(window)
    return WindowAware.for_network(planner_of(DropPlanner.EXACT, of), of, batch)


@pytest.mark.parametrize("batch", [1, 5, 40])
def test_what_is_kept_loads_nodes_as_the_planner_meant_it(batch: int) -> None:
    planner = aware(Window(10, 2, True), batch)
    rates = np.array([[100.0], [300.0], [500.0], [2000.0]])
    plans = planner.plan(rates)
    kept, _ = planner.flows(rates, plans.keeps)
    uses = planner.wiring.uses(kept)
    assert (uses <= 1 + 1e-9).all()
    assert plans.keeps[0].tolist() == [1.0] * 5
    for arc, share in ((0, kept[:, 0] / rates[:, 0]), (1, kept[:, 1] / kept[:, 0])):
        for point in range(4):
            drop = WindowDrop((Window(10, 2, True),), plans.keeps[point, arc], 3, arc, batch)
            assert drop.keeps(np.arange(60_000)).mean() == pytest.approx(share[point], abs=5 / np.sqrt(30_000 / batch))


def test_scores_are_those_of_windows_and_near_those_of_tuples_where_batches_are_long() -> None:
    rates = np.array([[500.0], [900.0]])
    best = planner_of(DropPlanner.EXACT, network(Window(10, 2, True))).plan(rates).scores
    scores = [aware(Window(10, 2, True), batch).plan(rates).scores for batch in (1, 5, 20, 1000)]
    assert (np.diff(scores, axis=0) >= -1e-9).all()
    assert (scores[0] < 0.9 * best).all()
    assert scores[-1] == pytest.approx(best, rel=0.01)


def test_without_overlap_in_batches_of_one_windows_are_tuples() -> None:
    rates = np.array([[500.0]])
    best = planner_of(DropPlanner.EXACT, network(Window(10, 10, True))).plan(rates)
    plans = aware(Window(10, 10, True), 1).plan(rates)
    assert plans.keeps == pytest.approx(best.keeps, abs=1e-9)
    assert plans.scores == pytest.approx(best.scores)


def test_without_aggregates_plans_are_left_as_they_are() -> None:
    of = Network((Node("A"),), (Input("in"),), (Operator("a", "A", MAP, ("in",), 0.01),), (Output("out", "a"),))
    planner = planner_of(DropPlanner.EXACT, of)
    rates = np.array([[50.0], [400.0]])
    assert WindowAware.for_network(planner, of).plan(rates).keeps.tolist() == planner.plan(rates).keeps.tolist()
