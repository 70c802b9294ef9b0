"""Exact counts and sketches of keys."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import count_keys, frequencies_of, merge
from adapt.core.counting.sketches import DistinctSketch, HeavyKeys, merge_heavy
from adapt.core.errors import BadInput
from adapt.core.stream import Weight

keys = st.one_of(st.none(), st.sampled_from(["", "a", "b", "é", "ab"]))
batches = st.lists(st.lists(keys, max_size=8), min_size=1, max_size=5)


def as_dict(frequencies):
    return dict(zip(frequencies.keys.to_pylist(), frequencies.count_low.tolist(), strict=True))


@given(batches)
def test_batches_count_as_one_stream(rows):
    parts = [count_keys(pa.array(batch, pa.string())) for batch in rows]
    whole = [key for batch in rows for key in batch]
    counted = frequencies_of(parts)
    assert as_dict(counted) == Counter(whole)
    assert (counted.total, counted.rows, counted.distinct) == (len(whole), len(whole), len(set(whole)))
    assert counted.count_high is counted.count_low


@given(st.lists(st.tuples(st.sampled_from([None, 0, 1, -7]), st.integers(0, 2**60)), max_size=8))
def test_integer_weights_are_added_exactly(rows):
    column = pa.array([key for key, _ in rows], pa.int64())
    counted = count_keys(column, np.array([weight for _, weight in rows], dtype=np.int64))
    assert counted.counts.dtype == np.int64
    assert dict(zip(counted.keys.to_pylist(), counted.counts.tolist(), strict=True)) == {
        key: sum(weight for other, weight in rows if other == key) for key, _ in rows
    }


def test_float_weights_are_added_in_row_order():
    weights = np.array([1e16, 1.0, -1e16, 1.0])
    counted = count_keys(pa.array(["a"] * 4), weights)
    assert counted.counts.tolist() == [((1e16 + 1.0) - 1e16) + 1.0]


def tallies(counted):
    assert counted.counts.dtype == np.int64
    assert len(counted.keys) == len(set(counted.keys.to_pylist()))
    return dict(zip(counted.keys.to_pylist(), counted.counts.tolist(), strict=True))


dictionaries = st.lists(st.sampled_from(["", "a", "b", "é", "ab"]), unique=True, max_size=5)


@st.composite
def encoded(draw):
    """Rows encoded by a dictionary of which they need not use all, cut out of more rows; and their keys."""
    words = draw(dictionaries)
    places = draw(st.lists(st.none() | st.integers(0, len(words) - 1) if words else st.none(), max_size=12))
    column = pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), pa.array(words, pa.string()))
    first, end = sorted(draw(st.tuples(st.integers(0, len(places)), st.integers(0, len(places)))))
    keys = [None if place is None else words[place] for place in places]
    return column[first:end], keys[first:end]


@given(encoded())
def test_encoded_rows_are_counted_by_the_keys_that_they_name(rows):
    column, keys = rows
    counted = count_keys(column)
    assert tallies(counted) == Counter(keys)
    assert (counted.rows, counted.keys.type) == (len(keys), pa.string())


@given(encoded(), st.data())
def test_encoded_rows_may_have_weights(rows, data):
    column, keys = rows
    weights = data.draw(st.lists(st.integers(0, 9), min_size=len(keys), max_size=len(keys)))
    counted = count_keys(column, np.array(weights, np.int64))
    true = Counter()
    for key, weight in zip(keys, weights, strict=True):
        true[key] += weight
    assert tallies(counted) == dict(true)


whole_numbers = st.lists(st.sampled_from([0, 1, -1, 256, 2**63 - 1, -(2**63)]), max_size=30)


@given(whole_numbers, st.integers(0, 30), st.booleans())
def test_whole_numbers_are_counted_in_one_chunk_or_many_with_nulls_or_without(keys, place, nulls):
    rows = [*keys, None] if nulls else keys
    column = pa.array(rows, pa.int64())
    parts = pa.chunked_array([column[:place], column[place:]], pa.int64())
    for counted in (count_keys(column), count_keys(parts), count_keys(pa.array([7, *rows], pa.int64())[1:])):
        assert tallies(counted) == Counter(rows)
        assert (counted.rows, counted.keys.type) == (len(rows), pa.int64())


def test_merging_is_counting():
    parts = [count_keys(pa.array(["a", "b"])), count_keys(pa.array(["b"]))]
    merged = merge(parts)
    assert (merged.keys.to_pylist(), merged.counts.tolist(), merged.rows) == (["a", "b"], [1, 2], 3)


@pytest.mark.parametrize("amount", [1e300, 2.0**63, float("1e19")])
def test_a_total_beyond_an_int64_is_refused(amount):
    with pytest.raises(BadInput, match=r"the total cost is .* must be below 2\^63"):
        frequencies_of([count_keys(pa.array(["a", "b"]), np.array([amount, 1.0]))], Weight.COST)


streams = st.lists(st.lists(st.none() | st.sampled_from("abcdefgh") | st.just(""), min_size=1, max_size=20), min_size=1)


def heavy(keys, most):
    return HeavyKeys.from_column(pa.array(keys, pa.string()), most)


@given(streams, st.integers(1, 5), st.integers(1, 5))
def test_every_key_weighs_between_its_count_and_that_plus_what_was_missed(parts, kept, kept_in_all):
    whole = merge_heavy(heavy(part, kept) for part in parts).cut(kept_in_all)
    listed = dict(zip(whole.keys.to_pylist(), whole.counts.tolist(), strict=True))
    for key, true in Counter(key for part in parts for key in part).items():
        assert listed.get(key, 0) <= true <= listed.get(key, 0) + whole.missed
    assert len(listed) <= kept_in_all


@given(streams)
def test_nothing_is_missed_while_nothing_is_cut(parts):
    whole = merge_heavy(heavy(part, 10) for part in parts)
    assert whole.missed == 0
    assert dict(zip(whole.keys.to_pylist(), whole.counts.tolist(), strict=True)) == Counter(
        key for part in parts for key in part
    )


hashes = st.lists(st.integers(0, 2**64 - 1), max_size=60).map(lambda values: np.array(values, np.uint64))


@given(hashes, hashes, st.integers(3, 30))
def test_merging_sketches_is_sketching_both_streams(one, other, limit):
    merged = DistinctSketch.from_hashes(one, limit).merged(DistinctSketch.from_hashes(other, limit))
    assert merged.smallest.tolist() == DistinctSketch.from_hashes(np.concatenate((one, other)), limit).smallest.tolist()


@given(hashes, st.integers(3, 100))
def test_few_distinct_keys_are_counted_exactly_and_many_never_below_what_was_seen(values, limit):
    distinct = len(np.unique(values))
    estimate = DistinctSketch.from_hashes(values, limit).estimate()
    assert estimate == distinct if distinct < limit else estimate >= limit


COLUMNS = {
    pa.string(): st.text(max_size=2),
    pa.int64(): st.integers(-3, 40),
    pa.binary(): st.binary(max_size=2),
}


@st.composite
def columns(draw):
    """Distinct keys of some type, null and the empty key among them perhaps."""
    kind = draw(st.sampled_from(list(COLUMNS)))
    return kind, draw(st.lists(st.none() | COLUMNS[kind], unique=True, max_size=60))


def sketch_of(kind, batches, limit):
    sketch = DistinctSketch.empty(limit)
    for batch in batches:
        sketch = sketch.with_keys(pa.array(batch, kind))
    return sketch


@given(columns(), st.integers(3, 80), st.lists(st.integers(0, 59), max_size=30), st.randoms(use_true_random=False))
def test_keys_are_sketched_whatever_their_order_batches_and_repetition(column, limit, again, random):
    kind, keys = column
    repeated = keys + [keys[place % len(keys)] for place in again if keys]
    random.shuffle(repeated)
    step = random.randint(1, 20)
    in_batches = sketch_of(kind, [repeated[first : first + step] for first in range(0, len(repeated), step)], limit)
    at_once = sketch_of(kind, [keys], limit)
    assert in_batches.smallest.tolist() == at_once.smallest.tolist()
    assert len(at_once.smallest) == min(len(keys), limit)
    if len(keys) < limit:
        assert at_once.estimate() == len(keys)


@given(columns(), columns(), st.integers(3, 80))
def test_sketching_on_is_merging_with_the_sketch_of_the_rest(one, other, limit):
    on = sketch_of(one[0], [one[1]], limit).with_keys(pa.array(other[1], other[0]))
    merged = sketch_of(one[0], [one[1]], limit).merged(sketch_of(other[0], [other[1]], limit))
    assert on.smallest.tolist() == merged.smallest.tolist()


@pytest.mark.parametrize("prefix", ["user-", ""])
def test_many_keys_are_estimated_within_five_standard_errors(prefix):
    true, sketch = 60_000, DistinctSketch.empty()
    for first in range(0, true, 5_000):
        keys = [f"{prefix}{place}" for place in range(first, first + 5_000)]
        sketch = sketch.with_keys(pa.array(keys + keys[:100]))
    assert sketch.estimate() == pytest.approx(true, rel=5 / np.sqrt(2046))
