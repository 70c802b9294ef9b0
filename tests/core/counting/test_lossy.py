"""Lossy counts, per item and in batches, and sums of heavy keys."""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adapt.core.counting import sketches
from adapt.core.counting.lossy import LossyCounter, merge_lossy
from adapt.core.counting.sketches import HeavySums
from adapt.core.errors import BadInput
from adapt.core.stream import KeyType, Weight
from tests.core.counting.entries_bound import most_entries
from tests.core.counting.per_item import PerItemLossyCounter

KEYS = {
    pa.string(): [None, "", "a", "b", "é", "ab", *map(str, range(20))],
    pa.int64(): [None, 0, 1, -1, 256, 2**63 - 1, -(2**63), *range(2, 20)],
    pa.binary(): [None, b"", b"\x00", b"\xff\xfe", *(bytes([byte]) for byte in range(1, 20))],
}
WEIGHTS = {
    Weight.COUNT: st.just(1),
    Weight.BYTES: st.integers(0, 9) | st.integers(0, 2**54),
    Weight.COST: st.sampled_from([0.0, 1.0]) | st.floats(0, 1e9),
}
ENCODINGS = {
    "plain": lambda column: column,
    "dictionary": lambda column: column.dictionary_encode(),
    "small dictionary": lambda column: column.dictionary_encode().cast(pa.dictionary(pa.int16(), column.type)),
    "chunks": lambda column: pa.chunked_array([column[: len(column) // 3], column[len(column) // 3 :]], column.type),
    "large": lambda column: column.cast({pa.string(): pa.large_string()}.get(column.type, column.type)),
}

kinds = st.sampled_from(list(KEYS))
epsilons = st.sampled_from([0.9, 0.5, 0.34, 0.25, 0.1, 1 / 7, 1 / 49, 0.011])
cuts = st.lists(st.integers(0, 150), max_size=6)
rooms = st.sampled_from([0, 0, 1, 5, 12])


@st.composite
def streams(draw, weights=tuple(Weight), most=150):
    """The Arrow type of the keys, what rows weigh, and rows of a key and its weight: few heavy keys, many light."""
    kind, weight = draw(kinds), draw(st.sampled_from(weights))
    ranks = st.integers(0, 2) | st.integers(0, len(KEYS[kind]) - 1)
    rows = draw(st.lists(st.tuples(ranks, WEIGHTS[weight]), max_size=most))
    return kind, weight, [(KEYS[kind][rank], amount) for rank, amount in rows]


def column(rows, kind):
    return pa.array([key for key, _ in rows], kind)


def amounts(rows, weight):
    if weight is Weight.COUNT:
        return None
    return np.array([amount for _, amount in rows], np.float64 if weight is Weight.COST else np.int64)


def counter_of(stream, epsilon, places=(), flush_rows=1, encodings=("plain",), purge_above=0):
    """A counter that was given the rows in batches, cut at the places, each encoded in its turn."""
    kind, weight, rows = stream
    counter = LossyCounter(epsilon, kind, weight, flush_rows=flush_rows, purge_above=purge_above)
    ends = [0, *sorted(min(place, len(rows)) for place in places), len(rows)]
    for number, (first, end) in enumerate(pairwise(ends)):
        part = rows[first:end]
        encode = ENCODINGS[encodings[number % len(encodings)]]
        counter.update(encode(column(part, kind)), amounts(part, weight))
    return counter


def per_item(stream, epsilon):
    kind, weight, rows = stream
    names = {pa.string(): KeyType.STRING, pa.int64(): KeyType.INT64, pa.binary(): KeyType.BINARY}
    counter = PerItemLossyCounter(epsilon, names[kind], weight)
    for key, amount in rows:
        counter.add(key, amount)
    return counter.summary()


def weighed(rows):
    """What each key weighs, exactly."""
    true: Counter = Counter()
    for key, amount in rows:
        true[key] += Fraction(amount)
    return true


def bounds(summary):
    listed = zip(summary.keys.to_pylist(), summary.counts.tolist(), summary.errors.tolist(), strict=True)
    return {key: (count, error) for key, count, error in listed}


def assert_promises(summary, rows, epsilon, missed=None):
    """Every promise, for every key; whole numbers to the last digit, floats but for what adding them up rounds off."""
    true, listed = weighed(rows), bounds(summary)
    n = sum(true.values())
    off = 0 if summary.counts.dtype == np.int64 else float(n) * 1e-12
    most = Fraction(epsilon) * n * (1 + Fraction(1, 10**12)) if missed is None else missed
    assert len(listed) == len(summary)
    assert set(listed) <= set(true)
    assert summary.rows == len(rows)
    assert abs(summary.total - n) <= off
    assert 0 <= summary.missed <= most + off
    for key, weight in true.items():
        if key in listed:
            count, error = listed[key]
            assert weight - most - off <= count <= weight + off
            assert weight <= count + error + off
            assert 0 <= error <= summary.missed + off
        else:
            assert weight <= summary.missed + off


def assert_same(one, other):
    assert one.keys.equals(other.keys)
    for name in ("counts", "errors"):
        assert getattr(one, name).dtype == getattr(other, name).dtype
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    for name in ("missed", "total", "rows"):
        assert getattr(one, name) == getattr(other, name)
        assert type(getattr(one, name)) is type(getattr(other, name))
    assert one.distinct.smallest.tolist() == other.distinct.smallest.tolist()


@given(streams(), epsilons, st.integers(1, 40), rooms)
def test_every_key_has_its_bounds_whatever_the_rows(stream, epsilon, flush_rows, room):
    counter = counter_of(stream, epsilon, flush_rows=flush_rows, purge_above=room)
    assert_promises(counter.summary(), stream[2], epsilon)


@given(streams(), epsilons, st.integers(1, 40), cuts, st.lists(st.sampled_from(list(ENCODINGS)), min_size=1))
def test_the_same_rows_in_other_batches_and_encodings_give_the_same_summary(
    stream, epsilon, flush_rows, places, encodings
):
    whole = counter_of(stream, epsilon, flush_rows=flush_rows)
    cut = counter_of(stream, epsilon, places, flush_rows, encodings)
    assert_same(cut.summary(), whole.summary())
    assert (cut.entries, cut.memory) == (whole.entries, whole.memory)


def test_a_purge_by_hand():
    counter = LossyCounter(0.5, pa.string(), flush_rows=5)
    counter.update(pa.array([*"aaabc"]))  # two windows of two rows have closed: what weighs 2 or less goes
    assert bounds(counter.summary()) == {"a": (3, 0)}
    counter.update(pa.array([*"bbbbd"]))  # b may have weighed 2 before; a weighs 3, and 5 may be missed now
    assert bounds(counter.summary()) == {"b": (4, 2)}
    assert (counter.summary().missed, counter.entries, counter.memory.entries, counter.memory.buffer) == (5, 1, 1, 3)


@given(streams([Weight.COUNT, Weight.BYTES]), epsilons, st.integers(1, 40), rooms)
def test_purges_are_those_of_the_definition_row_by_row(stream, epsilon, flush_rows, room):
    """Entries (c_a, c_e) as the paper has them, let go where a purge is due and there is no more room."""
    _, weight, rows = stream
    window = math.ceil(1 / epsilon)
    step = max(flush_rows, window) if weight is Weight.COUNT else flush_rows
    entries: dict = {}
    missed = n = 0
    for first in range(0, len(rows), step):
        for key, amount in rows[first : first + step]:
            c_a, c_e = entries.get(key, (0, missed))
            entries[key] = (c_a + amount, c_e)
            n += amount
        if len(entries) > room or missed:
            missed = n // window
        entries = {key: (c_a, c_e) for key, (c_a, c_e) in entries.items() if c_a + c_e > missed}
    summary = counter_of(stream, epsilon, flush_rows=flush_rows, purge_above=room).summary()
    assert bounds(summary) == entries
    assert (summary.missed, summary.total) == (missed, n)


@given(streams(), epsilons, st.integers(1, 40))
def test_a_stream_of_no_more_keys_than_there_is_room_for_is_counted_exactly(stream, epsilon, flush_rows):
    true = weighed(stream[2])
    summary = counter_of(stream, epsilon, flush_rows=flush_rows, purge_above=len(true)).summary()
    assert summary.missed == 0
    assert not summary.errors.any()
    listed = {key: count for key, (count, _) in bounds(summary).items()}
    assert listed == pytest.approx({key: float(weight) for key, weight in true.items() if weight}, rel=1e-12)


@given(streams(), epsilons, st.integers(1, 12), rooms)
def test_no_purge_keeps_more_entries_than_the_bound_or_than_there_is_room_for(stream, epsilon, flush_rows, room):
    kind, weight, rows = stream
    window = math.ceil(1 / epsilon)
    step = max(flush_rows, window) if weight is Weight.COUNT else flush_rows
    counter = LossyCounter(epsilon, kind, weight, flush_rows=step, purge_above=room)
    for end in range(step, len(rows) + 1, step):
        last = rows[end - step : end]
        counter.update(column(last, kind), amounts(last, weight))
        total, purged = (float(sum(amount for _, amount in part)) for part in (rows[:end], last))
        if purged:
            assert counter.entries <= max(most_entries(epsilon, total, purged) * (1 + 1e-12), room)
        assert counter.entries <= counter.memory.entries <= counter.memory.buffer


def test_the_bound_on_entries_is_nearly_reached_by_keys_that_come_just_often_enough():
    """In window j as many keys as fit that come m - j + 1 times at once, and so outlive all m windows."""
    window, windows = 600, 20
    rows: list[str] = []
    for first in range(windows):
        times = windows - first + 1
        keys = [f"{first}-{place}" for place in range(window // times)] * times
        rows += keys + ["rest"] * (window - len(keys))
    counter = LossyCounter(1 / window, pa.string(), flush_rows=window)
    counter.update(pa.array(rows))
    bound = most_entries(1 / window, len(rows), window)
    assert bound == pytest.approx(window * (1 + math.log(windows)))
    assert sum(window // (windows - first + 1) for first in range(windows)) <= counter.entries <= bound
    assert counter.entries > 0.6 * bound


@given(streams([Weight.COUNT]), epsilons, st.integers(1, 40), rooms)
def test_the_batch_form_keeps_every_bound_of_the_per_item_form(stream, epsilon, flush_rows, room):
    """It misses no more, and its upper bounds are as low or lower: it purges at fewer places."""
    batch = counter_of(stream, epsilon, flush_rows=flush_rows, purge_above=room).summary()
    item = per_item(stream, epsilon)
    assert_promises(batch, stream[2], epsilon)
    assert_promises(item, stream[2], epsilon)
    assert batch.missed == item.missed if room == 0 else batch.missed <= item.missed
    assert (batch.total, batch.rows) == (item.total, item.rows)
    assert batch.distinct.smallest.tolist() == item.distinct.smallest.tolist()
    ours, theirs = bounds(batch), bounds(item)
    for key in weighed(stream[2]):
        assert sum(ours.get(key, (batch.missed,))) <= sum(theirs.get(key, (item.missed,)))


@given(streams([Weight.COUNT]), st.integers(1, 8))
def test_a_purge_at_each_window_is_the_per_item_form(stream, windows):
    """Where both purge at the same rows, they keep the same keys."""
    kind, weight, rows = stream
    rows = rows[: 8 * windows]
    rows = rows[: len(rows) // 8 * 8]
    batch = counter_of((kind, weight, rows), 1 / 8, flush_rows=8).summary()
    assert_same(batch, per_item((kind, weight, rows), 1 / 8))


def parts_of(stream, epsilon, places, flush_rows, room=0):
    kind, weight, rows = stream
    ends = [0, *sorted(min(place, len(rows)) for place in places), len(rows)]
    return [
        counter_of((kind, weight, rows[first:end]), epsilon, flush_rows=flush_rows, purge_above=room).summary()
        for first, end in pairwise(ends)
    ]


def nested(parts, random):
    """All parts merged two or three at a time, in some order."""
    left = list(parts)
    while len(left) > 1:
        random.shuffle(left)
        taken = random.randint(2, 3)
        left = [*left[taken:], merge_lossy(left[:taken])]
    return left[0]


@given(streams(), epsilons, cuts, st.integers(1, 20), rooms, st.randoms(use_true_random=False))
def test_merging_in_any_split_order_and_nesting_keeps_the_bounds(stream, epsilon, places, flush_rows, room, random):
    parts = parts_of(stream, epsilon, places, flush_rows, room)
    flat, deep = merge_lossy(parts), nested(parts, random)
    assert_promises(flat, stream[2], epsilon)
    assert_promises(deep, stream[2], epsilon)
    if stream[1] is not Weight.COST:
        assert_same(deep, flat)


@given(streams(), epsilons, st.integers(0, 12), cuts, st.integers(0, 12))
def test_a_cut_summary_keeps_the_bounds_with_what_it_says_is_missed_and_merges_on(stream, epsilon, most, places, then):
    whole = counter_of(stream, epsilon).summary()
    cut = whole.cut(most)
    assert len(cut) == min(most, len(whole))
    may_weigh = dict(zip(whole.keys.to_pylist(), (whole.counts + whole.errors).tolist(), strict=True))
    dropped = may_weigh.keys() - cut.keys.to_pylist()
    assert all(may_weigh[key] >= may_weigh[gone] for key in cut.keys.to_pylist() for gone in dropped)
    assert cut.missed == max([whole.missed, *(may_weigh[gone] for gone in dropped)])
    assert cut.counts.tolist() == sorted(cut.counts.tolist(), reverse=True)
    assert_promises(cut, stream[2], epsilon, missed=cut.missed)
    merged = merge_lossy(part.cut(most) for part in parts_of(stream, epsilon, places, 7)).cut(then)
    assert len(merged) <= then
    assert_promises(merged, stream[2], epsilon, missed=merged.missed)


@given(streams(), epsilons)
def test_frequencies_say_what_the_summary_knows(stream, epsilon):
    summary = counter_of(stream, epsilon).summary()
    counted = summary.frequencies(epsilon, stream[1])
    true = weighed(stream[2])
    assert counted.keys.equals(summary.keys)
    assert (counted.count_high - counted.count_low).tolist() == pytest.approx(summary.errors.tolist(), abs=1e-3)
    assert (counted.rows, counted.weight) == (len(stream[2]), stream[1])
    assert summary.missed <= counted.complete_above <= summary.missed * (1 + 1e-15)
    assert counted.distinct == len(true)  # fewer than are estimated


@pytest.mark.parametrize("weight", [Weight.BYTES, Weight.COST])
def test_weights_are_given_where_rows_weigh_and_only_there(weight):
    with pytest.raises(ValueError, match=f"by {weight} needs a weight for each row"):
        LossyCounter(0.1, pa.string(), weight).update(pa.array(["a"]))
    with pytest.raises(ValueError, match="by count takes no weights"):
        LossyCounter(0.1, pa.string()).update(pa.array(["a"]), np.ones(1))
    with pytest.raises(ValueError, match="1 weights do not fit 2 rows"):
        LossyCounter(0.1, pa.string(), weight).update(pa.array(["a", "b"]), np.ones(1))


@pytest.mark.parametrize("amount", [-1.0, float("inf"), float("nan")])
def test_a_weight_that_is_none_is_refused(amount):
    counter = LossyCounter(0.1, pa.string(), Weight.COST)
    counter.update(pa.array(["b", "a"]), np.array([1.0, amount]))
    with pytest.raises(BadInput, match=r"the weight of key 'a' must be finite and at least 0"):
        counter.summary()
    with pytest.raises(BadInput, match=r"the weight of key 'a' must be finite and at least 0"):
        PerItemLossyCounter(0.1, weight=Weight.COST).add("a", amount)


def test_more_weight_than_an_int64_holds_is_refused_in_one_batch_in_many_and_in_a_merge():
    half = np.array([2**62])
    at_once = LossyCounter(0.1, pa.string(), Weight.BYTES)
    at_once.update(pa.array(["a", "b"]), np.array([2**62, 2**62]))
    with pytest.raises(BadInput, match="overflows an int64"):
        at_once.summary()
    one_by_one = LossyCounter(0.1, pa.string(), Weight.BYTES, flush_rows=1)
    one_by_one.update(pa.array(["a"]), half)
    part = one_by_one.summary()
    with pytest.raises(BadInput, match="overflows an int64"):
        one_by_one.update(pa.array(["b"]), half)
    with pytest.raises(BadInput, match="overflows an int64"):
        merge_lossy([part, part])
    by_item = PerItemLossyCounter(0.1, weight=Weight.BYTES)
    by_item.add("a", 2**62)
    by_item.add("b", 2**62)
    with pytest.raises(BadInput, match="overflows an int64"):
        by_item.summary()


def test_merging_nothing_is_refused():
    with pytest.raises(ValueError, match="no summaries"):
        merge_lossy([])


windows = st.integers(2, 12)
rows = st.lists(st.none() | st.sampled_from(["", *"aaabbcdefgh"]), max_size=100)


def literal(keys, window):
    """Section 4.1.2: the entries (c_a, c_e) by key, and the number of windows that closed."""
    entries = {}
    for row, key in enumerate(keys, 1):
        i = math.ceil(row / window)
        c_a, c_e = entries.get(key, (0, i - 1))
        entries[key] = (c_a + 1, c_e)
        if row % window == 0:
            entries = {key: (c_a, c_e) for key, (c_a, c_e) in entries.items() if not c_a + c_e <= i}
    return entries, len(keys) // window


def counted(keys, epsilon, key_type=KeyType.STRING):
    counter = PerItemLossyCounter(epsilon, key_type)
    for key in keys:
        counter.add(key)
    return counter


def entries_of(summary):
    return dict(
        zip(summary.keys.to_pylist(), zip(summary.counts.tolist(), summary.errors.tolist(), strict=True), strict=True)
    )


@given(rows, windows)
def test_entries_are_those_of_the_paper_after_every_row(keys, window):
    counter = PerItemLossyCounter(1 / window)
    for row, key in enumerate(keys, 1):
        counter.add(key)
        entries, _ = literal(keys[:row], window)
        assert counter.entries == len(entries)
    entries, closed = literal(keys, window)
    summary = counter.summary()
    assert entries_of(summary) == entries
    assert (summary.missed, summary.total, summary.rows) == (closed, len(keys), len(keys))


@given(rows, st.floats(0.02, 0.98))
def test_a_window_is_the_least_whole_number_not_below_1_over_epsilon(keys, epsilon):
    wanted = 1 / Fraction(epsilon)
    assume(abs(wanted - round(wanted)) > 1e-12)  # a third, as a float, is a little less than a third
    assert entries_of(counted(keys, epsilon).summary()) == literal(keys, math.ceil(wanted))[0]


def test_two_windows_by_hand():
    # ceil(1 / 0.3) = 4 rows a window. The first closes with i = 1 and lets b go, which was there once;
    # b comes back in the second with c_e = 1, twice, and outlives its end: 2 + 1 > 2. c does not: 1 + 1 <= 2.
    counter = counted([*"aaab", *"bbac"], 0.3)
    assert entries_of(counter.summary()) == {"a": (4, 0), "b": (2, 1)}
    assert counter.summary().missed == 2


PART = st.dictionaries(st.one_of(st.none(), st.integers(0, 30)), st.tuples(st.integers(0, 9), st.integers(0, 9)))


def merged(parts, missed=0):
    sums = HeavySums(("first", "second"), weighing=2)
    for part in parts:
        first, second = (np.array([amounts[at] for amounts in part.values()], np.int64) for at in (0, 1))
        sums.add(pa.array(part, pa.int64()), {"first": first, "second": second}, missed)
    keys, amounts = sums.done()
    told = zip(keys.to_pylist(), amounts["first"].tolist(), amounts["second"].tolist(), strict=True)
    return {key: (first, second) for key, first, second in told}, sums.missed


def true_sums(parts):
    first, second = Counter(), Counter()
    for part in parts:
        first.update({key: amounts[0] for key, amounts in part.items()})
        second.update({key: amounts[1] for key, amounts in part.items()})
    return {key: (first[key], second[key]) for part in parts for key in part}


@given(st.lists(PART, min_size=1, max_size=8))
def test_few_keys_are_summed_exactly_and_put_in_order(parts):
    told, missed = merged(parts, missed=3)
    assert told == true_sums(parts)
    assert missed == 3 * len(parts)
    weights = [sum(amounts) for amounts in told.values()]
    assert weights == sorted(weights, reverse=True)


@pytest.mark.parametrize("most", [1, 3, 8])
@given(parts=st.lists(PART, min_size=1, max_size=8))
def test_what_is_left_out_is_within_the_bound(most, parts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sketches, "MOST_KEYS", most)
        told, missed = merged(parts)
    assert len(told) <= 2 * most + max(map(len, parts))
    for key, amounts in true_sums(parts).items():
        listed = told.get(key, (0, 0))
        assert listed[0] <= amounts[0]
        assert listed[1] <= amounts[1]
        assert sum(amounts) <= sum(listed) + missed
