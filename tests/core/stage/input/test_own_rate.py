"""Need of a trace at its own rate, against sums over all its rows."""

import numpy as np
import pytest

from adapt.core.stage.input.offered_load import BusiestSpan, OwnRate, WorkOverTime


def busiest(due_s, work_s, pieces=1):
    over_time = WorkOverTime()
    for part in np.array_split(np.arange(len(due_s)), pieces):
        over_time.add(due_s[part], work_s[part])
    return over_time.busiest()


@pytest.mark.parametrize("seed", range(5))
def test_the_busiest_hundredth_is_within_that_of_windows_a_little_shorter_and_longer(seed):
    """A window of any place is at least as busy as one between two spans, and spans are fine."""
    chance = np.random.default_rng(seed)
    due_s = np.sort(chance.lognormal(3, 1, 5_000))
    work_s = chance.exponential(1e-3, 5_000)
    found = busiest(due_s, work_s)
    assert found.span_s == pytest.approx(due_s[-1] / 100, rel=0.02)
    cell_s = due_s[-1] / 4096
    ends = due_s + 1e-6

    def most(length_s):
        before = np.searchsorted(due_s, ends - length_s)
        until = np.concatenate([[0], np.cumsum(work_s)])
        return (until[1:] - until[before]).max()

    assert most(found.span_s - cell_s) - 1e-6 <= found.workers * found.span_s <= most(found.span_s) + 1e-6


def test_the_cut_into_chunks_changes_no_bit():
    chance = np.random.default_rng(0)
    due_s, work_s = np.sort(chance.uniform(0, 1e6, 3_000)), chance.uniform(0, 1, 3_000)
    assert busiest(due_s, work_s) == busiest(due_s, work_s, 7) == busiest(due_s, work_s, 3_000)


def test_a_speed_up_does_not_change_the_own_rate():
    chance = np.random.default_rng(1)
    due_s = np.sort(chance.uniform(0, 1e6, 3_000))
    work_s = np.full(3_000, 0.5)
    slow, fast = (
        OwnRate.at_speedup(speedup, 3_000, due_s[-1] / speedup, 0.5, busiest(due_s / speedup, work_s))
        for speedup in (1.0, 1000.0)
    )
    assert fast.rate == pytest.approx(slow.rate)
    assert fast.work == pytest.approx(slow.work)
    assert fast.peak == pytest.approx(slow.peak, rel=0.1)


def test_it_says_when_one_worker_is_enough_and_how_much_faster_it_is_replayed():
    assert OwnRate(2.0, 0.002, 0.5, 60.0).sentence(1.0, None, "") == (
        "At its own rate, 2 rows/s, the trace needs 1 worker, busy 0.2 % of the time and 50 % in its busiest"
        " 1\u202fmin."
    )
    assert OwnRate(0.004, 2e-7, 1e-6, 60.0).sentence(2e6, 1.2, "the busiest worker") == (
        "At its own rate, 0.004 rows/s, the trace needs 1 worker, busy less than 0.01 % of the time; replayed 2,000,000"
        " times as fast, the busiest worker is offered 1.20 times its capacity."
    )
    busy = OwnRate(2000.0, 2.4, 6.0, 60.0)
    assert " needs 3 workers on average and 6 in its busiest 1\u202fmin." in busy.sentence(1.0, None, "")
    assert "; the pool is offered 0.000812 times its capacity." in busy.sentence(1.0, 0.000812, "the pool")


def test_rows_without_a_rate_need_nothing():
    assert OwnRate.at_speedup(None, 10, 0.0, 1.0, None) is None
    assert OwnRate.at_speedup(1.0, 10, 0.0, 1.0, BusiestSpan(1.0, 1.0)) is None
