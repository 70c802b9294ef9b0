"""Summaries that merge: bounds of the heaviest keys, the number of distinct keys."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.sketches import DistinctSketch, HeavyKeys, merge_heavy

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
