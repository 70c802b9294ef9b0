"""Costs over a receding horizon against all sequences of workers; forecasts from the past."""

import itertools

import numpy as np
import pytest

from adapt.core.elastic.planning.horizon import Outlook, costs_ahead
from adapt.core.elastic.planning.moves import MoveCosts
from adapt.core.elastic.planning.outlook import Past
from adapt.core.elastic.planning.prices import Prices
from adapt.core.elastic.planning.window_model import late_work

COUNTS = np.arange(1.0, 4.0)


def until_drained(backlog, load, workers, target_s):
    """Work that arrives while a backlog takes longer than the target."""
    return load * max(0.0, backlog / workers - target_s) / (1 - min(0.9, load / workers))


def literal(first, sequence, load, moves, prices, begun):
    """Cost of going to `first` now and of a sequence from the second stage on, one load, from 2 workers."""
    counts = (2, first, *sequence)
    cost = backlog = 0.0
    for at, (before, now) in enumerate(itertools.pairwise(counts)):
        i, j = before - 1, now - 1
        carried = backlog + moves.lost[i, j] if at else begun + moves.lost[i, j]
        if at > 1:
            carried = 0.0
            cost += moves.lost[i, j] - moves.stop[i, j]
        limit = prices.target_s * now
        backlog = max(0.0, carried + load[at] - now)
        cost += moves.price[i, j] + now + prices.late * late_work(carried, load[at], now, limit)
        if at == 0:
            cost += prices.late * min(begun, max(0.0, carried - limit))
        elif at == 1:
            cost += backlog + prices.late * until_drained(backlog, load[at], now, prices.target_s)
        else:
            cost += (1 + prices.late) * backlog
            cost += prices.late * until_drained(moves.stop[i, j], load[at], now, prices.target_s)
    return cost


@pytest.mark.parametrize("seed", range(8))
def test_the_cost_of_a_choice_is_that_of_the_best_sequence_after_it(seed):
    random = np.random.default_rng(seed)
    loads, prices = random.uniform(0, 3.5, (3, 5)), Prices(random.uniform(0.2, 2))
    moves = MoveCosts.priced(COUNTS, *(np.full((3, 3), one) for one in (0.3, 0.2, 1e8)), prices)
    found = costs_ahead(Outlook(1.0, loads), moves, COUNTS, prices, 2, 0.5)
    for first, cost in enumerate(found, 1):
        rest = list(itertools.product(range(1, 4), repeat=4))
        best = [min(literal(first, one, load, moves, prices, 0.5) for one in rest) for load in loads]
        assert cost == pytest.approx(np.mean(best))


def chosen(outlook, moves, prices, workers):
    return int(COUNTS[np.argmin(costs_ahead(outlook, moves, COUNTS, prices, workers, 0.0))])


def test_what_is_uncertain_keeps_workers_more():
    free = MoveCosts.priced(COUNTS, *(np.zeros((3, 3)) for _ in range(3)), Prices())
    still, wild = (Outlook(1.0, np.repeat([[one] for one in loads], 4, 1)) for loads in ([0.9] * 3, [0.2, 0.9, 3.0]))
    assert (chosen(still, free, Prices(0.3), 1), chosen(wild, free, Prices(0.3), 1)) == (1, 3)


def test_a_rescale_is_made_only_if_it_pays():
    idle = Outlook(1.0, np.full((1, 4), 0.5))
    for price, wanted in ((1.0, 1), (10.0, 3)):
        moves = MoveCosts(COUNTS, np.zeros((3, 3)), price * (1 - np.eye(3)), np.zeros((3, 3)))
        assert chosen(idle, moves, Prices(1.0), 3) == wanted


def past_of(rates):
    past = Past()
    for at, rate in enumerate(rates, 1):
        past.add(float(at), 1.0, float(rate))
    return past


def test_a_rhythm_is_foreseen_and_a_still_load_stays():
    rates = [1.0] * 10 + [5.0] * 5
    outlook = past_of(rates * 20 + rates[:9]).outlook(1.0, 1)
    middle = np.median(outlook.work, axis=0)
    assert middle[0] < 2
    assert middle[2:5].max() > 4
    still = past_of([2.0] * 100).outlook(1.0, 2)
    assert np.median(still.work, axis=0) == pytest.approx(4.0)


def test_a_gap_of_a_rescale_is_filled():
    past = past_of([1.0, 1.0])
    past.add(6.0, 1.0, 5.0)
    assert past._rates.tolist() == [1, 1, 2, 3, 4, 5]
