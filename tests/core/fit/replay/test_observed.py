"""Replays whose true values differ, and planners that observe them."""

from dataclasses import replace

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.fit.network.names import DropPlanner, Drops, Flow
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.network_file import read_true
from adapt.core.fit.network.settings import Observing, SheddingSettings
from adapt.core.fit.network.true_values import Drawn
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.replay.bound_rows import Binding
from adapt.core.fit.replay.observed import Judged
from adapt.core.fit.replay.replay import replay_fit
from tests.core.fit.networks import random_network, random_rates
from tests.core.fit.options import fit_options
from tests.core.fit.oracles import scipy_score
from tests.core.fit.replay.test_replay import NETWORK, still, stream

ALL = (DropPlanner.EXACT, DropPlanner.SOLVER, DropPlanner.C_FIT, DropPlanner.D_FIT, DropPlanner.D_FIT_CUTS)
LATE = SheddingSettings(lag_ticks=1, headroom=0.05, epsilon=0.2)
NOW = replace(LATE, lag_ticks=0)
WRONG = """
[[change]]
at = "0s"
operator = "B0"
cost = 0.0045
[[change]]
at = "0s"
operator = "A1"
selectivity = 0.6
"""


def replay(planners, seconds=12, settings=LATE, network=NETWORK, batches=None, **options):
    return replay_fit(
        batches or stream(seconds, low=300),
        Binding(network, settings.tick_us),
        fit_options(planners, settings, **options),
        clock=still,
    )


def keeps(outcome):
    return np.stack([decision.keeps for decision in outcome.decisions])


def table(run, name):
    return {row["planner"]: row for row in run.tables()[name].records()}


def corrected(network):
    """The network with the values of `WRONG`."""
    true = read_true(WRONG, network).over(network, np.zeros(1, np.int64))
    return Network(network.nodes, network.inputs, true.wiring(0).network.operators, network.outputs)


def test_where_the_network_is_right_observing_changes_no_plan() -> None:
    usual, observing = replay(ALL), replay(ALL, observing=Observing(4))
    for one, other in zip(usual.outcomes, observing.outcomes, strict=True):
        assert keeps(one).tolist() == keeps(other).tolist()
        assert one.scores.tolist() == other.scores.tolist()
        assert one.sent == other.sent
    assert set(observing.tables()) - set(usual.tables()) == {"statistics", "errors", "estimates", "changes"}
    assert "observing" not in usual.parameters
    assert not observing.tables()["changes"].rows
    for row in observing.tables()["statistics"].records():
        assert row["cost_error"] == row["selectivity_error"] == row["changes"] == 0
        assert row["estimate_error"] < 0.002


def test_once_estimates_have_converged_plans_are_those_for_the_true_network() -> None:
    settings, planners = replace(NOW, min_rate_change=0.0), (DropPlanner.EXACT, DropPlanner.D_FIT_CUTS)
    told = replay(planners, settings=settings, network=corrected(NETWORK))
    found = replay(planners, settings=settings, true=read_true(WRONG, NETWORK), observing=Observing(3, 0.01))
    blind = replay(planners, settings=settings, true=read_true(WRONG, NETWORK))
    assert found.optimum == pytest.approx(told.optimum, rel=1e-9)
    for one, other, wrong in zip(told.outcomes, found.outcomes, blind.outcomes, strict=True):
        assert keeps(other)[4:] == pytest.approx(keeps(one)[4:], abs=0.02)
        assert np.abs(keeps(wrong)[4:] - keeps(one)[4:]).max() > 0.1
        changes = [change for seen in other.followed.observations for change in seen.changes]
        assert {change.kind for change in changes} == {"cost", "selectivity"}
        last = {(change.kind, change.operator): change.estimate for change in changes}
        assert last[("cost", [each.name for each in NETWORK.operators].index("B0"))] == pytest.approx(0.0045, rel=1e-6)


def test_planners_that_observe_overload_no_node_for_long_and_those_that_believe_the_file_do() -> None:
    steady = stream(20, low=600, high=601)
    blind, seen = (
        replay(ALL, batches=steady, true=read_true(WRONG, NETWORK), observing=each) for each in (None, Observing(3))
    )
    for before, after in zip(blind.outcomes, seen.outcomes, strict=True):
        assert before.overloaded.all()
        assert after.overloaded.sum() <= 4
        assert not after.overloaded[4:].any()
        assert after.ticks[-1].wait_s.max() < 0.5 * before.ticks[-1].wait_s.max()
        lost = [table(run, "statistics")[before.planner]["lost"] for run in (blind, seen)]
        assert lost[1] < lost[0] + 0.01


def test_the_optimum_and_the_load_are_those_of_the_values_of_each_tick() -> None:
    for seed in range(8):
        network = random_network(seed, "tree")
        rates = random_rates(seed, len(network.inputs), 6)
        true = Drawn(drift=0.5, jump=0.5, seed=seed).over(network, np.arange(6))
        shares = np.random.default_rng(seed).uniform(0, 1, (6, len(Wiring.from_network(network).arcs)))
        judged = Judged.by(true, rates, [shares])
        for at in range(6):
            now = true.wiring(at).network
            assert [operator.cost for operator in now.operators] == true.costs[at].tolist()
            assert judged.optimum[at] == pytest.approx(scipy_score(now, rates[at]), rel=1e-7, abs=1e-9)
            flows = Wiring.from_network(now).flows(rates[[at]], shares[[at]])
            assert judged.uses[0][at] == pytest.approx(Wiring.from_network(now).uses(flows)[0])


def test_noise_is_no_change_and_intervals_hold_as_often_as_they_say() -> None:
    rows = stream(300, low=20, high=60)
    options = {"flow": Flow.FLUID, "true": Drawn(noise=0.1, seed=2), "observing": Observing(10)}
    run = replay((DropPlanner.EXACT,), batches=rows, **options)
    row = table(run, "statistics")["exact"]
    assert row["changes"] == 0
    assert 0.92 < row["held"] < 0.975
    assert row["estimate_error"] == pytest.approx(0.1 * np.sqrt(2 / np.pi / 10), rel=0.2)


def test_deltas_that_are_late_leave_nodes_stale_and_are_counted() -> None:
    run = replay(
        (DropPlanner.D_FIT,),
        14,
        flow=Flow.FLUID,
        true=read_true(WRONG, NETWORK),
        observing=Observing(3),
        delay_s=2.0,
    )
    row, outcome = table(run, "statistics")["d-fit"], run.outcomes[0]
    first = min(change["end"] for change in run.tables()["changes"].records())
    stale = [decision.stale for decision in outcome.decisions]
    assert any(stale[int(first) + 1 :]), "after the change, tables are on their way again"
    assert row["replans"] >= 1
    assert row["replan_bytes"] > 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"true": Drawn(drift=0.5), "cost_scale": 1.2}, "cost_scale cannot be combined"),
        (
            {"observing": Observing(3), "settings": replace(LATE, feedback=True)},
            "cannot be combined with feedback",
        ),
        ({"true": Drawn(drift=0.5), "settings": replace(LATE, drops=Drops.WINDOW)}, "need drops=random"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options, said) -> None:
    with pytest.raises(UsageError, match=said):
        replay((DropPlanner.EXACT,), **options)


def test_windows_and_important_changes_out_of_range_are_refused() -> None:
    with pytest.raises(UsageError, match="at least 2"):
        Observing(1)
    with pytest.raises(UsageError, match="at least 0"):
        Observing(2, -0.1)
