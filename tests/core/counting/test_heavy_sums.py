"""The heaviest keys of many summaries: the bounds hold however much had to be left out."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting import sketches
from adapt.core.counting.sketches import HeavySums

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
