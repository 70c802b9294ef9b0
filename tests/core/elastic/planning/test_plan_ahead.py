"""plan-ahead: scales to the load, and learns from its own moves when to leave it."""

import numpy as np
import pytest

from adapt.core.elastic.planning.capacity import AGES, Capacity, _aged, _mean
from adapt.core.elastic.planning.plan_ahead import PlanAhead
from adapt.core.elastic.planning.prices import Prices
from adapt.core.stage.control.workers import PartitionsSeen
from tests.core.elastic.observations import seen

PARTITIONS = 840
"""As many on each of up to eight workers."""


class Simulated:
    """Rows of 10 ms in partitions that all workers share evenly, or the first of which one worker has alone."""

    def __init__(self, workers, hot=()):
        self.workers, self.at_s, self.waiting, self.processed = workers, 0, 0.0, np.zeros(PARTITIONS)
        self.owners = np.arange(PARTITIONS) % workers
        self.shares = np.full(PARTITIONS, (1 - sum(hot)) / PARTITIONS)
        self.shares[: len(hot)] += hot
        self.owners[: len(hot)] = 0

    def period(self, load, works=True):
        """What is seen of a second; workers do no more than the busiest one lets them."""
        self.at_s += 1
        self.waiting += load
        by_worker = np.bincount(self.owners, self.shares, self.workers)
        done = min(self.waiting, 1 / by_worker.max()) if works else 0.0
        self.waiting -= done
        self.processed += 100 * done * self.shares
        now = PartitionsSeen(8, self.owners, self.processed.copy(), 100 * self.waiting * self.shares, self.owners)
        return seen(
            at_s=float(self.at_s),
            workers=self.workers,
            busy_s=done * by_worker,
            processed=100 * done * by_worker,
            loads=load * by_worker,
            arrived=round(100 * load),
            waiting=round(100 * self.waiting),
            partitions=lambda: now,
        )


def test_workers_follow_the_load():
    policy, stage = PlanAhead(1, 8, Prices(0.5)), Simulated(2)
    for _ in range(20):
        wanted = policy.wanted(stage.period(1.5))
    assert wanted <= 2
    for _ in range(3):
        wanted = policy.wanted(stage.period(5.0))
    assert wanted >= 5


def known(stop_s):
    """Settings of a stage whose rescales all stop it."""
    return lambda counts: (np.full((len(counts),) * 2, stop_s),) * 2 + (np.zeros((len(counts),) * 2),)


def moves(stop_s, hot=(), rescale=0.0, taken=None):
    """Moves in 400 s of a load that changes between 1.6 and 3.2 workers every 20 s; each stops all work."""
    policy, stage, made = PlanAhead(1, 8, Prices(1.0, rescale=rescale), taken), Simulated(4, hot), []
    for at in range(1, 401):
        view = stage.period(1.6 if at // 20 % 2 else 3.2)
        wanted = policy.wanted(view)
        if wanted != stage.workers:
            made.append(wanted)
            stage.workers, stage.owners = wanted, np.arange(PARTITIONS) % wanted
            for _ in range(stop_s):
                stage.period(1.6 if at // 20 % 2 else 3.2, works=False)
    assert stage.waiting < 4 * 3.2
    return made


def test_moves_that_stop_the_stage_are_made_less_often():
    """It follows most changes where a move is free, and few once it has learned that each costs three seconds."""
    free = len(moves(0))
    assert free > 10
    assert len(moves(3)) < free / 2


def test_moves_are_made_less_often_the_more_they_are_priced():
    made = [len(moves(0, rescale=price)) for price in (0.0, 5.0, 1000.0)]
    assert made[0] > made[1] > made[2] == 0


def test_what_the_settings_say_of_restarts_counts_before_the_first_one():
    """Unknown, one is tried; known to stop the stage for a minute, none is; known to be free, many are."""
    assert len(moves(60)) > 0 == len(moves(60, taken=known(60.0)))
    assert len(moves(0, taken=known(0.0))) > 10


def test_moves_that_take_longer_than_the_settings_say_are_made_less_often():
    assert len(moves(3, taken=known(0.0))) < len(moves(0, taken=known(0.0))) / 2


def test_the_same_observations_give_the_same_decisions():
    assert moves(1, taken=known(1.0)) == moves(1, taken=known(1.0))


def given_back_after(stop_s):
    """Seconds from a drop of the load, which lasts, until workers are given back."""
    policy, stage = PlanAhead(1, 8, Prices(1.0), known(stop_s)), Simulated(8)
    for _ in range(40):
        policy.wanted(stage.period(7.0))
    return next(at for at in range(400) if policy.wanted(stage.period(2.0)) < 8)


def test_workers_are_given_back_later_the_longer_the_move_stops_the_stage():
    after = [given_back_after(stop_s) for stop_s in (0.0, 0.5, 1.0, 2.0)]
    assert after == sorted(set(after))


def test_a_placement_that_is_stale_in_a_moment_is_worth_no_more_than_the_present_one():
    """Hot partitions are divided by a new placement, and back on one worker a period later."""
    capacity, stage, counts = Capacity(), Simulated(2, (0.35, 0.35)), np.array([2, 2])
    for at in range(40):
        stage.owners[:2] = (0, 1) if at % 10 == 0 else 0
        capacity.add(stage.period(1.1), 0.01, moved=at % 10 == 0)
    stay, new = capacity.busy(counts, 1)
    assert new > 1.2 * stay
    stay, new = capacity.busy(counts, 100)
    assert new < 1.05 * stay


def test_an_age_is_as_long_as_all_before_it():
    assert [_aged(age) for age in (0, 1, 2, 3, 6, 7, 14, 15, 1000)] == [0, 1, 1, 2, 2, 3, 3, 4, AGES - 1]
    by_age = np.arange(1.0, AGES + 1)
    for since, ahead in ((0, 1), (0, 40), (5, 300)):
        assert _mean(by_age, since, ahead) == pytest.approx(
            np.mean([by_age[_aged(since + one)] for one in range(ahead)])
        )


def test_nothing_is_wanted_before_a_row_was_processed():
    assert PlanAhead(1, 8, Prices()).wanted(Simulated(3).period(0.0)) == 3


def test_it_scales_without_statistics_of_partitions():
    policy = PlanAhead(1, 8, Prices(0.5))
    for at in range(1, 5):
        busy = {"busy_s": np.ones(2), "loads": np.ones(2)}
        wanted = policy.wanted(seen(at_s=float(at), workers=2, arrived=500, waiting=300 * at, **busy))
    assert wanted >= 5
