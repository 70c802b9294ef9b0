"""Choices over a receding horizon against a queue in small steps under all sequences of workers; forecasts."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from adapt.core.elastic.planning.horizon import LATE_FROM, Outlook, costs_ahead
from adapt.core.elastic.planning.moves import MoveCosts
from adapt.core.elastic.planning.outlook import Past
from adapt.core.elastic.planning.prices import GIB, Prices

COUNTS = np.arange(1.0, 4.0)
SEQUENCES = np.array(list(itertools.product(range(1, 4), repeat=5)))
STEPS = 40
"""Steps of a stage."""


def queued(load, moves, prices, begun):
    """Cost of each sequence from 2 workers: a queue in order of arrival, step by step; row by row late or not.

    `moves` are without the price of rescales, which are counted.

    Late is what waits longer than the share of the target latency from which the horizon takes rows to be late.
    """
    before = np.column_stack([np.full(len(SEQUENCES), 2), SEQUENCES[:, :-1]]) - 1
    lost, price = moves.lost[before, SEQUENCES - 1], moves.price[before, SEQUENCES - 1]
    by_step = np.repeat(SEQUENCES, STEPS, axis=1) / STEPS
    since_rescale = by_step * np.tile(np.arange(1, STEPS + 1), 5)
    can = np.clip(since_rescale - np.repeat(lost, STEPS, axis=1), 0, by_step)
    after = np.repeat(SEQUENCES[:, -1:], 2 * STEPS, axis=1) / STEPS
    served = np.cumsum(np.column_stack([np.zeros(len(SEQUENCES)), can, after]), axis=1)
    target_s = LATE_FROM * prices.target_s
    target = round(target_s * STEPS)
    late = np.maximum(0, begun - served[:, target])
    backlog = np.full(len(SEQUENCES), begun)
    for at, come in enumerate(np.repeat(load, STEPS) / STEPS, 1):
        backlog = np.maximum(0, backlog + come - can[:, at - 1])
        late += come * (backlog > served[:, at + target] - served[:, at])
    ends = backlog + prices.late * np.maximum(0, backlog - target_s * SEQUENCES[:, -1])
    rescales = prices.rescale * (before != SEQUENCES - 1).sum(axis=1)
    return SEQUENCES.sum(axis=1) + price.sum(axis=1) + rescales + prices.late * late + ends


def of_the_best_sequences(loads, moves, prices, begun):
    """Mean cost of the best sequence after each number of workers, as found by trying all."""
    costs = [queued(load, moves, prices, begun) for load in loads]
    return np.mean([[cost[SEQUENCES[:, 0] == first].min() for first in (1, 2, 3)] for cost in costs], axis=0)


@pytest.mark.parametrize("seed", range(8))
def test_a_cost_is_that_of_the_best_sequences_where_no_backlog_is_worth_it(seed):
    random = np.random.default_rng(seed)
    loads, prices = random.integers(1, 7, (3, 5)) / 2, Prices(1 / STEPS / LATE_FROM, rescale=random.uniform(0, 2))
    loads[:, 0] = 1
    taken = np.zeros((3, 3)), np.zeros((3, 3)), np.full((3, 3), random.uniform(0, GIB / 20))
    found = costs_ahead(Outlook(1.0, loads), MoveCosts.priced(COUNTS, *taken, prices), COUNTS, prices, 1, 0.0)
    free = MoveCosts.priced(COUNTS, *taken, replace(prices, rescale=0.0))
    assert found.mean(axis=0) == pytest.approx(of_the_best_sequences(loads, free, prices, 0.0))


def test_a_choice_is_hardly_ever_worse_than_the_best():
    """With backlog, stops and state moved, where the horizon approximates; to stay would often be worse."""
    above, stays = [], []
    for seed in range(40):
        random = np.random.default_rng(seed)
        loads = random.uniform(0, 3) * random.uniform(0.5, 1.5, (3, 5))
        prices, begun = Prices(random.uniform(0.2, 1.9) / LATE_FROM), random.uniform(0, 1)
        taken = (np.full((3, 3), random.uniform(0, most)) for most in (0.3, 0.3, 1e8))
        moves = MoveCosts.priced(COUNTS, *taken, prices)
        found = costs_ahead(Outlook(1.0, loads), moves, COUNTS, prices, 1, begun).mean(axis=0)
        best = of_the_best_sequences(loads, moves, prices, begun)
        above.append(best[found.argmin()] / best.min() - 1)
        stays.append(best[1] / best.min() - 1)
    assert np.sum(np.array(above) > 0.01) <= 4 < 12 < np.sum(np.array(stays) > 0.01)
    assert np.mean(above) < 0.02 < 0.1 < np.mean(stays)


def chosen(outlook, moves, prices, workers):
    costs = costs_ahead(outlook, moves, COUNTS, prices, workers - 1, 0.0)
    return int(COUNTS[costs.mean(axis=0).argmin()])


def test_what_is_uncertain_keeps_workers_more():
    free = MoveCosts.priced(COUNTS, *(np.zeros((3, 3)) for _ in range(3)), Prices())
    still, wild = (Outlook(1.0, np.repeat([[one] for one in loads], 4, 1)) for loads in ([0.9] * 3, [0.2, 0.9, 3.0]))
    assert (chosen(still, free, Prices(0.3), 1), chosen(wild, free, Prices(0.3), 1)) == (1, 3)


def test_a_rescale_is_made_only_if_it_pays():
    idle = Outlook(1.0, np.full((1, 4), 0.5))
    for price, wanted in ((1.0, 1), (10.0, 3)):
        moves = MoveCosts(COUNTS, np.zeros((3, 3)), price * (1 - np.eye(3)))
        assert chosen(idle, moves, Prices(1.0), 3) == wanted


def test_a_stale_placement_is_left_only_for_other_workers_and_if_that_pays():
    """Two workers do the work of one: three do that of three. A new placement on two cannot be chosen."""
    counts, busy, load = (
        np.array([2.0, 1.0, 2.0, 3.0]),
        np.array([1.0, 1.0, 2.0, 3.0]),
        Outlook(1.0, np.full((1, 6), 1.5)),
    )
    for stop_s, wanted in ((0.1, 3), (20.0, 0)):
        taken = (np.full((4, 4), one) for one in (stop_s, stop_s, 0.0))
        moves = MoveCosts.of_options(counts, *taken, Prices(0.5), busy)
        costs = costs_ahead(load, moves, busy, Prices(0.5), 0, 0.0)[0]
        assert int(costs.argmin()) == wanted
        assert costs[2] == np.inf
        staying = MoveCosts.of_options(counts, *(np.full((4, 4), 1e6) for _ in range(3)), Prices(0.5), busy)
        assert costs[0] <= costs_ahead(load, staying, busy, Prices(0.5), 0, 0.0)[0, 0]


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
