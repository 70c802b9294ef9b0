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


def rescales(stop_s):
    """Rescales in 400 s of a load that changes between 1.6 and 3.2 workers every 20 s; each stops all work."""
    policy, workers, waiting, stopped, made = PlanAhead(1, 8, Prices(1.0)), 4, 0.0, 0, 0
    for at in range(1, 401):
        load = 1.6 if at // 20 % 2 else 3.2
        waiting += load
        if stopped:
            stopped -= 1
            continue
        done = min(waiting, workers)
        waiting -= done
        busy = np.full(workers, done / workers)
        rows = {"processed": (busy * 100).astype(int), "arrived": round(load * 100), "waiting": round(waiting * 100)}
        wanted = policy.wanted(seen(at_s=float(at), workers=workers, busy_s=busy, loads=busy, **rows))
        if wanted != workers:
            made, workers, stopped = made + 1, wanted, stop_s
    assert waiting < 2 * 3.2
    return made


def test_rescales_that_stop_the_stage_are_made_less_often():
    """It follows most changes where a rescale is free, and few once it has learned that each costs three seconds."""
    free = rescales(0)
    assert free > 10
    assert rescales(3) < free / 2


def test_nothing_is_wanted_before_a_row_was_processed():
    assert PlanAhead(1, 8, Prices()).wanted(observed(1, 3, 0.0)) == 3
