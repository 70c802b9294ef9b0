import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.stage.conditions.faults import Capacity, Crash, ExternalLoad, SlowDown

spans = st.tuples(st.integers(0, 3), st.floats(0, 5), st.floats(0.1, 5), st.floats(0, 1))


def one_a_worker(drawn):
    """At most one disturbance of each worker."""
    return [
        SlowDown(worker, start, start + lasts, speed)
        for worker, start, lasts, speed in {one[0]: one for one in drawn}.values()
    ]


@given(st.lists(spans, max_size=6), st.floats(0, 12))
def test_capacity_is_the_speed_of_all_workers_added_up_in_small_steps(drawn, until):
    disturbances = one_a_worker(drawn)
    middles = (np.arange(2000) + 0.5) * until / 2000
    speeds = np.full(2000, 4.0)
    for one in disturbances:
        speeds -= np.where((one.start_s <= middles) & (middles < one.end_s), 1 - one.speed, 0)
    whole = Capacity.from_disturbances(4, disturbances)
    assert whole.by(until) == pytest.approx(speeds.sum() * until / 2000, abs=4 * until / 2000 * 12 + 1e-9)
    each = sum(Capacity.of_worker(worker, disturbances).by(until) for worker in range(4))
    assert whole.by(until) == pytest.approx(each)
    if until > 0:
        assert whole.by(whole.until(whole.by(until))) == pytest.approx(whole.by(until))


def test_a_loaded_worker_keeps_what_it_keeps_and_a_dead_one_nothing():
    assert Capacity.from_disturbances(2, [ExternalLoad(1, 0.0, np.inf)]).by(7) == pytest.approx(10)
    dead = Capacity.from_disturbances(1, [Crash(0, 2.0)])
    assert dead.by(9) == 2.0
    assert dead.until(2.1) == np.inf
    assert Capacity.from_disturbances(1, [Crash(0, 2.0, 5.0)]).until(2.5) == pytest.approx(5.5)
