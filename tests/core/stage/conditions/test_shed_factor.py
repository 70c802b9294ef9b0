"""The shed factor, by itself and in a stage."""

from collections import deque
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.arrivals import Chunk, Drawn, Rows
from adapt.core.stage.conditions.names import DropCurve
from adapt.core.stage.conditions.settings import StageSettings, even_groups, even_owners
from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor, Thresholds, through
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.simulate import simulate
from tests.core.stage.stages import stages

shares = st.floats(0.01, 0.99)
forms = st.sampled_from([*DropCurve, through([(0, 0), (0.3, 0.9), (1, 1)]), np.sqrt])


@pytest.mark.parametrize(("tau", "shed"), [(0.0, 0.0), (0.79, 0.0), (0.8, 0.1), (0.9, 0.55), (1.0, 1.0), (1.7, 1.0)])
def test_it_jumps_to_b_at_tau2_and_rises_straight_to_1(tau: float, shed: float) -> None:
    assert ShedFactor(0.8, 0.1).part(np.array([tau])) == pytest.approx([shed], rel=1e-12)


def test_the_quadratic_form_and_a_users_function() -> None:
    assert ShedFactor(0.8, 0.2, DropCurve.QUADRATIC).part(np.array([0.9])) == pytest.approx([0.4])
    assert ShedFactor(0.5, 0.0, np.sqrt).part(np.array([0.5, 0.625])) == pytest.approx([0.0, 0.5])
    assert ShedFactor(0.5, 0.0, through([(0, 0), (0.5, 0.1), (1, 1)])).part(np.array([0.875])) == pytest.approx([0.55])


@given(shares, st.floats(0, 1), forms, st.integers(1, 300))
def test_any_shed_factor_is_a_part_and_keeps_all_below_tau2(tau2, least, form, capacity) -> None:
    table = ShedFactor(tau2, least, form).table(capacity)
    tau = np.arange(capacity + 1) / capacity
    assert ((table >= 0) & (table <= 1)).all()
    assert table[-1] == 1
    assert (table[tau < tau2] == 0).all()
    assert (table[tau >= tau2] >= least).all()
    assert (np.diff(table) >= -1e-12).all()


@pytest.mark.parametrize(
    ("taus", "named"),
    [
        ((0.0, 0.4, 0.8, 0.9), "tau0 must be above 0"),
        ((0.5, 0.4, 0.8, 0.9), "tau1 must be above tau0, 0.5"),
        ((0.1, 0.8, 0.8, 0.9), "tau2 must be above tau1, 0.8"),
        ((0.1, 0.4, 0.95, 0.9), "tau3 must be above tau2, 0.95"),
        ((0.1, 0.4, 0.8, 1.1), "tau3 must be at most 1"),
        ((float("nan"), 0.4, 0.8, 0.9), "tau0 must be above 0"),
    ],
)
def test_thresholds_out_of_order_are_refused_by_name(taus, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        Thresholds(*taus)


def test_numbers_out_of_range_are_refused() -> None:
    for wrong in (
        lambda: ShedFactor(1.0),
        lambda: ShedFactor(0.5, 1.5),
        lambda: through([]),
        lambda: through([(0, 2)]),
    ):
        with pytest.raises(UsageError):
            wrong()
    with pytest.raises(UsageError, match="ascending"):
        through([(0.5, 0), (0.5, 1)])
    with pytest.raises(UsageError, match="at least 1"):
        Overload(ShedFactor(), 0, 1.0)
    with pytest.raises(UsageError, match="above 0"):
        Overload(ShedFactor(), 10, 0.0)


def offered(rate_per_s, seconds):
    """Rows at an even rate, in turn to two workers."""
    due_s = np.arange(int(rate_per_s * seconds)) / rate_per_s
    groups = np.arange(len(due_s), dtype=np.int32) % 2
    return Rows(lambda: iter([Chunk(groups, groups, due_s, None)]))


def shedding(factor, capacity, window_s):
    return StageSettings(2, even_owners(2, 1), even_groups(2, 2), overload=Overload(factor, capacity, window_s), seed=3)


@pytest.mark.parametrize(("least", "ratio"), [(0.0, 1.0), (0.0, 1.8), (0.3, 1.2), (0.0, 0.7)])
def test_a_worker_settles_where_what_it_takes_is_what_it_lets_go(least: float, ratio: float) -> None:
    """tau = rho (1 - SF(tau)): 5/6 for rho = 1, tau2 = 0.8 and B = 0; on tau2 itself if the jump to B is too much."""
    factor, capacity, window_s = ShedFactor(0.8, least), 400, 0.2
    run = simulate(shedding(factor, capacity, window_s), offered(2 * ratio * capacity / window_s, 2.0), interval_s=0.2)
    kept = np.array([one.processed for one in run.intervals[4:9]]) / (2 * capacity)
    slope = (1 - least) / (1 - factor.tau2)
    settled = ratio * (1 - least + slope * factor.tau2) / (1 + ratio * slope)
    expected = ratio if ratio < factor.tau2 else max(factor.tau2, settled)
    assert kept.mean() == pytest.approx(expected, abs=0.02)
    assert run.census.shed > 0 or ratio < factor.tau2
    assert run.census.whole
    assert run.census.shed + run.census.processed == run.census.generated


def test_without_overload_nothing_is_shed_and_with_ample_capacity_nothing_changes() -> None:
    rows = offered(20_000, 0.5)
    plain = StageSettings(2, even_owners(2, 1), even_groups(2, 2), seed=3)
    ample = replace(plain, overload=Overload(ShedFactor(), 10**6, 0.1))
    first, second = (simulate(each, rows, journal=10_000) for each in (plain, ample))
    assert first.census == second.census
    assert first.census.shed == 0
    assert np.array_equal(first.journal, second.journal)


def test_with_a_random_source_it_is_refused() -> None:
    with pytest.raises(UsageError, match="load shedding needs rows"):
        simulate(shedding(ShedFactor(), 10, 0.1), Drawn(), 1.0)


@settings(max_examples=25)
@given(stages(), st.integers(1, 40), st.floats(1e-4, 5e-3), shares, st.integers(1000, 100_000))
def test_every_tuple_is_somewhere_and_no_worker_holds_more_than_it_can(of, capacity, window_s, tau2, rate) -> None:
    of = replace(of, overload=Overload(ShedFactor(tau2), capacity, window_s))
    due_s = np.arange(300) / rate
    groups = np.arange(300, dtype=np.int32) % len(of.partition_of)
    producers = np.arange(300, dtype=np.int32) % of.workers
    stage = Stage(of, Rows(lambda: iter([Chunk(groups, producers, due_s, None)])), journal=300)
    stage.run(1.0)
    census = stage.census()
    assert census.whole
    taken = {worker: deque() for worker in range(of.workers)}
    for entry in stage.arrays["entry"][: census.processed]:
        held = taken[int(entry["worker"])]
        held.append(float(entry["at"]))
        # Tuples are held from when they are taken, which is one service time before.
        while held and held[0] <= entry["at"] - window_s:
            held.popleft()
        assert len(held) <= capacity + 1
