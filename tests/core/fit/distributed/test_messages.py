"""What one node tells another: only what changed, and enough of it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.fit.distributed.messages import Delta, Sheet, Topic, good_enough, small_enough

ARCS = np.array([3, 5])


def sheet(rows, arcs=ARCS):
    return Sheet(arcs, np.array(rows, float).reshape(-1, len(arcs) + 1))


def random_sheet(random, most=8):
    return Sheet(ARCS, random.integers(0, 3, (random.integers(0, most), 3)).astype(float))


@given(st.integers(0, 2**32))
def test_what_changed_makes_the_new_sheet_of_the_old(seed: int) -> None:
    random = np.random.default_rng(seed)
    old, new = random_sheet(random), random_sheet(random)
    delta = Delta.between(old, new)
    assert delta.applied(old).same(new)
    assert len(old.rows) - len(delta.erased) + len(delta.rows) == len(new.rows)
    assert Delta.between(None, new).applied(None).same(new)
    nothing = Delta.between(new, new)
    distinct = {tuple(row) for row in new.rows}
    assert len(nothing.rows) == len(new.rows) - len(distinct)


@given(st.integers(0, 2**32))
def test_rows_that_stay_in_order_are_not_sent(seed: int) -> None:
    random = np.random.default_rng(seed)
    old = np.unique(random.integers(0, 9, (30, 3)), axis=0).astype(float)
    new = old.copy()
    changed = random.random(len(old)) < 0.3
    new[changed, 2] += 100 + np.arange(changed.sum())
    delta = Delta.between(sheet(old), sheet(new))
    assert delta.erased.tolist() == delta.places.tolist() == np.flatnonzero(changed).tolist()


def test_a_sheet_about_other_arcs_comes_whole() -> None:
    old, new = sheet([[1, 2, 3]]), sheet([[1, 2, 3]], np.array([3, 6]))
    delta = Delta.between(old, new)
    assert (len(delta.rows), len(delta.erased)) == (1, 1)
    assert delta.applied(old).same(new)


def test_rows_of_tables_are_as_large_as_in_table_3() -> None:
    for inputs, size in [(2, 52), (4, 96), (8, 184)]:
        rows = Sheet(np.arange(inputs), np.ones((1, inputs + 1)))
        assert Delta.between(None, rows).size(Topic.TABLE) == size


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
    assert Delta.between(None, small).size(Topic.TABLE) <= max(most_bytes, 52)
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
    assert len(Delta.between(told, good_enough(told, new, 0.02)).rows) == 1
