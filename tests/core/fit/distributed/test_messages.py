"""What one node tells another: only what changed, late, and enough of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.fit.distributed.distributed import good_enough, small_enough
from adapt.core.fit.distributed.messages import Channel, Exchange, Sheet, Topic, difference
from adapt.core.fit.registry import planner_of
from tests.core.fit.networks import FIGURE_1
from tests.core.fit.options import planner_options

ARCS = np.array([3, 5])
CHANNELS = [Channel(1, 0, Topic.TABLE), Channel(2, 0, Topic.TABLE)]


def sheet(rows, arcs=ARCS):
    return Sheet(arcs, np.array(rows, float).reshape(-1, len(arcs) + 1))


def random_sheet(random, most=8):
    return Sheet(ARCS, random.integers(0, 3, (random.integers(0, most), 3)).astype(float))


def applied(old, new):
    """The new rows, made of the old ones and of those that differ."""
    erased, places = difference(old, new)
    stays = iter(np.delete(old.rows, erased, axis=0).tolist())
    rows = [new.rows[at].tolist() if at in places else next(stays) for at in range(len(new.rows))]
    assert next(stays, None) is None
    return rows


@given(st.integers(0, 2**32))
def test_what_changed_makes_the_new_sheet_of_the_old(seed: int) -> None:
    random = np.random.default_rng(seed)
    old, new = random_sheet(random), random_sheet(random)
    assert applied(old, new) == new.rows.tolist()
    assert len(difference(None, new)[1]) == len(new.rows)
    assert len(difference(new, new)[1]) == len(new.rows) - len({tuple(row) for row in new.rows})


@given(st.integers(0, 2**32))
def test_rows_that_stay_in_order_are_not_sent(seed: int) -> None:
    random = np.random.default_rng(seed)
    old = np.unique(random.integers(0, 9, (30, 3)), axis=0).astype(float)
    new = old.copy()
    changed = random.random(len(old)) < 0.3
    new[changed, 2] += 100 + np.arange(changed.sum())
    erased, places = difference(sheet(old), sheet(new))
    assert erased.tolist() == places.tolist() == np.flatnonzero(changed).tolist()


def test_a_sheet_about_other_arcs_comes_whole() -> None:
    assert list(map(len, difference(sheet([[1, 2, 3]]), sheet([[1, 2, 3]], np.array([3, 6]))))) == [1, 1]


def test_rows_of_tables_are_as_large_as_in_table_3() -> None:
    sizes = {inputs: sheet([], np.arange(inputs)).row_bytes(Topic.TABLE) for inputs in (2, 4, 8)}
    assert sizes == {2: 52, 4: 96, 8: 184}


class Listener:
    def take(self, topic):
        pass


def exchange(delay_s):
    return Exchange(delay_s, {0: Listener()})


@given(st.integers(0, 2**32))
def test_the_last_sheet_arrives(seed: int) -> None:
    random, nodes, last = np.random.default_rng(seed), exchange(0.5), {}
    for _ in range(12):
        channel = CHANNELS[random.integers(2)]
        if last and random.random() < 0.1:
            nodes.keep(set(CHANNELS) - {channel})
            last.pop(channel, None)
            continue
        last[channel] = random_sheet(random, 9)
        nodes.send(channel, last[channel])
        nodes.run(nodes.now + random.exponential(0.5))
    nodes.run(np.inf)
    assert nodes.up_to_date()
    assert nodes.received.keys() == last.keys()
    assert all(nodes.received[channel].same(sheet) for channel, sheet in last.items())


def test_a_sheet_is_sent_once_with_its_rows_and_bytes_and_arrives_after_the_delay() -> None:
    nodes, sent = exchange(0.5), sheet(np.arange(12.0))
    for _ in range(3):
        nodes.send(CHANNELS[0], sent)
        nodes.run(np.inf)
    traffic = nodes.traffic()[CHANNELS[0]]
    assert (traffic.messages, traffic.rows, traffic.erased, traffic.size) == (1, 4, 0, 4 * 52 + 8)
    assert nodes.now == 0.5
    assert nodes.total == traffic


def test_changes_follow_a_message_on_its_way() -> None:
    nodes, rows = exchange(1.0), np.arange(12.0).reshape(4, 3)
    for sent in (rows, rows[:3], rows[1:3]):
        nodes.send(CHANNELS[0], sheet(sent))
    assert not nodes.up_to_date()
    assert nodes.up_to_date(but=Topic.TABLE)
    nodes.run(np.inf)
    traffic = nodes.traffic()[CHANNELS[0]]
    assert (traffic.messages, traffic.rows, traffic.erased) == (3, 4, 2)
    assert nodes.received[CHANNELS[0]].rows.tolist() == rows[1:3].tolist()


@pytest.mark.parametrize("planner", ["d-fit", "d-fit-cuts"])
def test_a_delay_below_0_is_refused(planner: str) -> None:
    with pytest.raises(UsageError, match="delay_s must be at least 0"):
        planner_of(planner, FIGURE_1, planner_options(max_rates=np.ones(2), delay_s=-1.0))


def best_below(rows, scores, point):
    below = [score for row, score in zip(rows, scores, strict=True) if (row[:2] <= point).all()]
    return max(below, default=-1.0)


@given(st.integers(0, 2**32), st.sampled_from([0.05, 0.2, 0.5]))
def test_what_is_good_enough_loses_no_more_than_the_distance(seed: int, distance: float) -> None:
    random = np.random.default_rng(seed)
    rates = np.unique(random.integers(0, 5, (12, 2)), axis=0).astype(float)
    scores = rates @ [1.0, 1.5]
    told = np.column_stack((rates, scores * random.uniform(0.8, 1.2, len(rates))))
    now = rates[random.random(len(rates)) < 0.8]
    new = np.column_stack((now, now @ [1.0, 1.5]))
    result = good_enough(sheet(told), sheet(new), distance)
    for point in random.integers(0, 6, (20, 2)):
        exact = best_below(new, new[:, 2], point)
        below = [row for row in result.rows if (row[:2] <= point).all()]
        assert bool(below) == (exact >= 0) or exact == 0
        if below:
            chosen = max(below, key=lambda row: row[2])
            assert best_below(new, new[:, 2], chosen[:2]) >= (1 - distance) * exact - 1e-12


@given(st.integers(0, 2**32), st.integers(1, 4000))
def test_a_table_of_any_size_has_a_row_wherever_the_whole_table_has_one(seed: int, most_bytes: int) -> None:
    random = np.random.default_rng(seed)
    rates = np.unique(random.integers(0, 9, (60, 2)), axis=0).astype(float)
    rates[0] = 0
    scores = rates @ [1.0, 1.5] * random.uniform(0.7, 1.0, len(rates))
    whole = sheet(np.column_stack((rates, scores)))
    small = small_enough(whole, most_bytes)
    assert 52 * len(small.rows) <= max(most_bytes, 52)
    assert small_enough(whole, 52 * len(rates)).same(whole)
    assert small_enough(whole, None).same(whole)
    assert {tuple(row) for row in small.rows} <= {tuple(row) for row in whole.rows}
    assert (small.rows[:, :2] == 0).all(axis=1).any()


def test_a_larger_table_loses_less() -> None:
    rates = np.stack(np.meshgrid(*[np.arange(20.0)] * 2), axis=-1).reshape(-1, 2)
    scores = rates @ [1.0, 1.5]
    whole, losses = sheet(np.column_stack((rates, scores))), []
    for rows in (2, 10, 40, 120):
        small = small_enough(whole, 52 * rows)
        found = np.array([best_below(small.rows, small.rows[:, 2], point) for point in rates])
        losses.append(float((1 - found[1:] / scores[1:]).max()))
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.2 < 0.9 < losses[0]


def test_nothing_is_sent_where_scores_hardly_changed() -> None:
    rates = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    told = sheet(np.column_stack((rates, [1.0, 1.0, 2.0])))
    new = sheet(np.column_stack((rates, [0.99, 1.0, 1.99])))
    assert good_enough(told, new, 0.1).same(told)
    assert good_enough(told, new, 0.0).same(new)
    assert len(difference(told, good_enough(told, new, 0.02))[1]) == 1
