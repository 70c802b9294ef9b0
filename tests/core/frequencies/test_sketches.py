"""Summaries that merge: bounds of the heaviest keys, the number of distinct keys."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.frequencies.sketches import DistinctSketch, HeavyKeys, distinct_keys, merge_heavy

streams = st.lists(st.lists(st.none() | st.sampled_from("abcdefgh") | st.just(""), min_size=1, max_size=20), min_size=1)


def heavy(keys, most):
    return HeavyKeys.of(pa.array(keys, pa.string()), most)


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


@given(streams, st.integers(1, 5))
def test_the_cut_into_batches_does_not_decide_between_equal_counts(parts, most):
    in_parts = merge_heavy(heavy(part, len(part)) for part in parts).cut(most)
    at_once = heavy([key for part in parts for key in part], most)
    assert in_parts.keys.equals(at_once.keys)
    assert in_parts.counts.tolist() == at_once.counts.tolist()
    assert in_parts.missed == at_once.missed


def test_equal_counts_go_by_key_and_null_comes_first():
    assert heavy(["b", None, "a", "b", "c"], 3).keys.to_pylist() == ["b", None, "a"]


def test_what_is_cut_off_is_told():
    cut = heavy(["a", "a", "a", "b", "b", "c"], 1)
    assert (cut.keys.to_pylist(), cut.counts.tolist(), cut.missed) == (["a"], [3], 2)
    assert cut.cut(0).missed == 2 + 3


def test_merging_nothing_is_refused():
    with pytest.raises(ValueError, match="no summaries"):
        merge_heavy([])


hashes = st.lists(st.integers(0, 2**64 - 1), max_size=60).map(lambda values: np.array(values, np.uint64))


@given(hashes, hashes, st.integers(3, 30))
def test_merging_sketches_is_sketching_both_streams(one, other, limit):
    merged = DistinctSketch.of(one, limit).merged(DistinctSketch.of(other, limit))
    assert merged.smallest.tolist() == DistinctSketch.of(np.concatenate((one, other)), limit).smallest.tolist()


@given(hashes, st.integers(3, 100))
def test_few_distinct_keys_are_counted_exactly_and_many_never_below_what_was_seen(values, limit):
    distinct = len(np.unique(values))
    estimate = DistinctSketch.of(values, limit).estimate()
    assert estimate == distinct if distinct < limit else estimate >= limit


@pytest.mark.parametrize("true", [5_000, 100_000, 1_000_000])
def test_the_estimate_lies_within_five_standard_errors(true):
    """k = 2048 hashes kept give a relative standard error of 1 / sqrt(2046), 2.2 %."""
    drawn = np.random.default_rng(true).integers(0, 2**64 - 1, true, np.uint64)
    assert DistinctSketch.of(drawn).estimate() == pytest.approx(true, rel=5 / np.sqrt(2046))


def test_null_is_a_distinct_key():
    assert distinct_keys(pa.array(["a", None, "a", None, ""])).to_pylist() == ["a", None, ""]
