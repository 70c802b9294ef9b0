"""The cheapest schedule against all sequences of workers, and one window against small steps of time."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adapt.core.elastic.planning.cheapest_schedule import cheapest_schedule, cost_of_schedule
from adapt.core.elastic.planning.known_load import KnownLoad
from adapt.core.elastic.planning.moves import MoveCosts
from adapt.core.elastic.planning.prices import GIB, Prices
from adapt.core.elastic.planning.window_model import backlog_after, late_work
from tests.tiers import examples

COUNTS = np.arange(1.0, 4.0)


@st.composite
def problems(draw):
    """Four windows, up to three workers."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    work = random.gamma(1, 1.5, 4)
    target_s, late = draw(st.sampled_from([0.2, 1.0, 3.0])), draw(st.sampled_from([0.0, 1.0, 10.0]))
    prices = Prices(target_s, late, rescale=draw(st.sampled_from([0.0, 0.5, 2.0])))
    stop_s, delay_s, moved = (np.full((3, 3), random.uniform(0, most)) for most in (1.5, 1.0, GIB / 10))
    moves = MoveCosts.priced(COUNTS, stop_s, delay_s, moved, prices)
    return KnownLoad(1.0, work), moves, prices


@examples(30)
@given(problems(), st.integers(1, 3), st.sampled_from([1.0, 0.8]))
def test_no_sequence_of_workers_is_cheaper(problem, start, used):
    found = cheapest_schedule(*problem, start, used)
    sequences = itertools.product(range(1, 4), repeat=4)
    best = min(cost_of_schedule(np.array(one), *problem, start, used) for one in sequences)
    own = cost_of_schedule(found.workers, *problem, start, used)
    assert own == pytest.approx(found.cost)
    assert best <= own * (1 + 1e-12)
    assert own <= best + found.gap + 1e-9
    assert found.gap <= 1e-3 * best


def test_a_rescale_costs_its_price_and_one_not_made_nothing():
    load, taken = KnownLoad(1.0, np.full(4, 1.5)), (np.zeros((3, 3)),) * 3
    for workers, rescales in (([2, 2, 2, 2], 0), ([3, 3, 1, 1], 2), ([1, 2, 3, 2], 4)):
        costs = []
        for prices in (Prices(1.0), Prices(1.0, rescale=7.0)):
            moves = MoveCosts.priced(COUNTS, *taken, prices)
            costs.append(cost_of_schedule(np.array(workers), load, moves, prices, 2))
        assert costs[1] - costs[0] == pytest.approx(7 * rescales)


def test_workers_come_before_a_peak_and_go_where_a_rescale_is_worth_it():
    work = np.array([1.0, 1.0, 6.0, 6.0, 1.0, 1.0, 6.0, 1.0, 1.0, 1.0])
    load, prices = KnownLoad(2.0, work), Prices(0.5)
    free = MoveCosts(COUNTS, *(np.zeros((3, 3)) for _ in range(2)))
    assert cheapest_schedule(load, free, prices, 1).workers.tolist() == [1, 1, 3, 3, 1, 1, 3, 1, 1, 1]
    dear = MoveCosts(COUNTS, np.zeros((3, 3)), 5.0 * (1 - np.eye(3)))
    assert cheapest_schedule(load, dear, prices, 1).workers.tolist() == [1, 1, 3, 3, 3, 3, 3, 1, 1, 1]


amounts = st.floats(0, 10)


@given(amounts, amounts, st.floats(0.1, 10), st.floats(0.1, 5))
def test_a_window_is_what_small_steps_make_of_it(backlog, work, capacity, limit):
    assume(abs(work - capacity) > 0.01)
    steps = 2000
    left = backlog + (work - capacity) * (np.arange(steps) + 0.5) / steps
    assert late_work(backlog, work, capacity, limit) == pytest.approx(work * np.mean(left > limit), abs=2 * 10 / steps)
    each = backlog
    for _ in range(50):
        each = max(0.0, each + (work - capacity) / 50)
    assert backlog_after(backlog, work, capacity) == pytest.approx(each, abs=1e-9)
