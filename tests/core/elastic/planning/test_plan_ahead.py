"""plan-ahead: scales to the load, and learns from its own rescales when to leave it."""

import numpy as np

from adapt.core.elastic.planning.plan_ahead import PlanAhead
from adapt.core.elastic.planning.prices import Prices
from tests.core.elastic.observations import seen


def observed(at, workers, load, waiting=0, **given):
    """A period in which rows of 10 ms keep so many workers busy, as far as there are some."""
    done = min(load, workers)
    busy = np.full(workers, done / workers)
    rows = {"processed": (busy * 100).astype(int), "arrived": int(load * 100), "waiting": waiting}
    return seen(at_s=float(at), workers=workers, busy_s=busy, loads=busy, **rows | given)


def test_workers_follow_the_load():
    policy = PlanAhead(1, 8, Prices(0.5))
    for at in range(20):
        wanted = policy.wanted(observed(at, 2, 1.8))
    assert wanted <= 2
    for at in range(20, 23):
        wanted = policy.wanted(observed(at, 2, 5.0, waiting=300 * (at - 19)))
    assert wanted >= 5


def test_rescales_that_stop_the_stage_are_made_less_often():
    """Between 2 and 3 workers every six periods: worth following only where a rescale costs next to nothing."""

    def rescales(stop_s):
        policy, workers, at, made = PlanAhead(1, 8, Prices(1.0)), 4, 0.0, 0
        while at < 240:
            at += 1
            load = 1.6 if int(at) // 6 % 2 else 3.2
            wanted = policy.wanted(observed(at, workers, load))
            if wanted != workers:
                made, workers = made + 1, wanted
                at += stop_s
                policy.wanted(observed(at + 1, workers, load, waiting=int(100 * load * stop_s)))
        return made

    assert rescales(20) < rescales(0)


def test_nothing_is_wanted_before_a_row_was_processed():
    assert PlanAhead(1, 8, Prices()).wanted(observed(1, 3, 0.0)) == 3
