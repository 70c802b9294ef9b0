"""Counted keys: their intervals, order, tables and the share of the heaviest."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import gammainc
from scipy.stats import beta

from adapt.core.counting.exact import count_keys, frequencies_of
from adapt.core.counting.frequencies import Frequencies, heaviest, key_order, top_share, top_share_interval
from adapt.core.counting.lossy import LossyCounter
from adapt.core.counting.tables import asked_keys_table, counts_table, heaviest_table, rank_share_table
from adapt.core.statistics.beta import beta_part

rows = st.lists(st.none() | st.sampled_from(["", *"aaaaabbcdefg"]), min_size=1, max_size=120)
epsilons = st.sampled_from([0.25, 0.1, 1 / 7])


def lossy(keys, epsilon):
    counter = LossyCounter(epsilon, pa.string(), flush_rows=1)
    counter.update(pa.array(keys, pa.string()))
    return counter.summary().frequencies(epsilon)


def exact(keys):
    return frequencies_of(count_keys(pa.array(keys, pa.string())))


@given(rows, epsilons, st.sampled_from([pa.string(), pa.large_string()]))
def test_every_key_weighs_within_its_interval_listed_or_not(keys, epsilon, kind):
    asked = [*dict.fromkeys(keys), "never seen"]
    true = Counter(keys)
    for counted in (lossy(keys, epsilon), exact(keys)):
        low, high = counted.intervals(pa.array(asked, kind))
        assert low.shape == high.shape == (len(asked),)
        for key, least, most in zip(asked, low, high, strict=True):
            assert max(true[key] - counted.epsilon * len(keys) * (1 + 1e-12), 0) <= least <= true[key] <= most
    assert low.tolist() == high.tolist() == [true[key] for key in asked]


def test_intervals_by_hand():
    counted = Frequencies(
        pa.array(["a", None]), np.array([7, 4]), np.array([7, 6]), 20.0, 20, epsilon=0.1, complete_above=2.0
    )
    low, high = counted.intervals(pa.array([None, "b", "a", "", "a"]))
    assert (low.tolist(), high.tolist()) == ([4, 0, 7, 0, 7], [6, 2, 7, 2, 7])


def test_keys_of_another_type_are_refused():
    with pytest.raises(ValueError, match="keys must be string"):
        exact(["a"]).intervals(pa.array([1]))
    with pytest.raises(ValueError, match="keys must be string"):
        exact(["a"]).intervals(pa.array([b"a"]))


def test_dropped_keys_may_still_weigh_its_upper_bound():
    counted = Frequencies(
        pa.array(["a", "b", "c"]),
        np.array([50, 12, 11]),
        np.array([50, 13, 19]),
        total=100.0,
        rows=100,
        epsilon=0.1,
        complete_above=10.0,
    )
    assert counted.first(1).complete_above == 19
    assert counted.first(1).keys.to_pylist() == ["a"]
    assert counted.first(3) is counted


KINDS = {
    "string": (pa.string(), st.text(max_size=3), lambda key: key.encode()),
    "large_string": (pa.large_string(), st.text(max_size=3), lambda key: key.encode()),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1), lambda key: key.to_bytes(8, "little", signed=True)),
    "binary": (pa.binary(), st.binary(max_size=3), bytes),
}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_order_is_falling_count_then_null_then_key_bytes(kind, data):
    arrow, keys, to_bytes = KINDS[kind]
    listed = data.draw(st.lists(st.one_of(st.none(), keys), unique=True, max_size=12))
    counts = data.draw(st.lists(st.integers(0, 3), min_size=len(listed), max_size=len(listed)))
    order = key_order(pa.array(listed, arrow), np.array(counts, dtype=np.int64))
    plain = sorted(
        range(len(listed)),
        key=lambda at: (-counts[at], listed[at] is not None, b"" if listed[at] is None else to_bytes(listed[at])),
    )
    assert order.tolist() == plain


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 12))
def test_the_heaviest_are_the_first_in_order(counts, most):
    keys = pa.array([f"k{at * 7 % 31}" for at in range(len(counts))], pa.string())
    found = heaviest(keys, np.array(counts, np.int64), most)
    assert found.tolist() == key_order(keys, np.array(counts, np.int64))[:most].tolist()


def test_integers_sort_by_their_little_endian_bytes():
    keys = pa.array([1, 256, -1])
    assert keys.take(pa.array(key_order(keys, np.ones(3)))).to_pylist() == [256, 1, -1]


def test_every_key_is_listed_or_the_rest_is_counted():
    frequencies = frequencies_of(count_keys(pa.array([f"k{at}" for at in range(50)])))
    whole = heaviest_table(frequencies)
    assert (len(whole.rows), whole.note) == (50, "")
    cut = heaviest_table(frequencies, 20)
    assert (cut.rows, cut.note) == (whole.rows[:20], "and 30 more keys")


def test_ranks_end_where_a_key_that_is_not_listed_might_come_in():
    counted = Frequencies(pa.array(["a", "b", "c"]), np.array([50, 20, 9]), np.array([50, 22, 14]), 100, 100)
    assert rank_share_table(counted).values("share") == [0.5, 0.2, 0.09]
    lossy = replace(counted, epsilon=0.1, complete_above=10, distinct=9)
    assert rank_share_table(lossy).values("share") == [0.5, 0.2]


def test_keys_asked_for_are_told_with_what_they_may_weigh():
    lossy = Frequencies(pa.array(["a", None]), np.array([50, 20]), np.array([55, 22]), 100, 100, epsilon=0.1)
    table = asked_keys_table(replace(lossy, complete_above=10), pa.array([None, "z", "a"]))
    assert table.values("key") == ["(null)", "z", "a"]
    assert table.values("count_low") == [20, 0, 50]
    assert table.values("count_high") == [22, 10, 55]


def test_what_a_lossy_counter_promises_stands_below_the_counts():
    lossy = Frequencies(pa.array(["a"]), np.array([50]), np.array([55]), 100, 100, epsilon=0.1, complete_above=10)
    table = counts_table(lossy)
    assert (table.values("counts"), table.values("listed_share")) == (["lossy"], [0.5])
    assert "above 10 is listed" in table.note
    assert "no key was dropped" in counts_table(replace(lossy, complete_above=0)).note
    assert counts_table(replace(lossy, epsilon=0.0)).note == "Counts are exact, and every key above 10 is listed."
    assert counts_table(replace(lossy, epsilon=0.0, complete_above=0)).note == ""


def bounded(low, high, complete_above, total=1000.0):
    low, high = np.array(low, np.int64), np.array(high, np.int64)
    names = pa.array(range(len(low)), pa.int64())
    return Frequencies(names, low, high, total, 1000, epsilon=0.1, complete_above=complete_above)


@pytest.mark.parametrize(
    ("low", "high", "complete_above", "share"),
    [
        ([294, 6], [294, 6], 0.0, (0.294, 0.294)),
        ([80, 70], [90, 130], 50.0, (0.08, 0.13)),
        ([20], [20], 30.0, (0.02, 0.03)),
        ([], [], 30.0, (0, 0.03)),
        ([], [], 0.0, (0, 1)),
    ],
)
def test_the_heaviest_key_may_be_one_that_is_not_listed(low, high, complete_above, share):
    assert top_share(bounded(low, high, complete_above)) == share


def test_without_weight_there_is_none():
    assert top_share(bounded([], [], 0.0, 0.0)) is None


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.floats(1e-6, 1 - 1e-6))
@example(100_001, 100_001, 0.49609375)
def test_the_beta_function_is_that_of_scipy(a, b, x):
    """Above 10^5, a normal approximation is used."""
    assert beta_part(a, b, x) == pytest.approx(beta.cdf(x, a, b), rel=1e-7 if min(a, b) <= 10**5 else 1e-4, abs=1e-12)


@given(st.integers(1, 10**5), st.integers(10**14, 2**63), st.floats(-4, 4))
def test_the_beta_function_of_a_rare_key_is_the_limit_of_poisson(a, b, away):
    x = max(a + away * a**0.5, 1e-3) / b
    assert beta_part(a, b, x) == pytest.approx(gammainc(a, b * x), abs=2e-4)


@given(st.integers(10**6, 2**62), st.integers(10**6, 2**62))
def test_the_interval_of_many_messages_is_the_normal_one(count, more):
    messages = count + more
    share = count / messages
    assert top_share_interval(count, count, messages)[1] - share == pytest.approx(
        1.959964 * (share * (1 - share) / messages) ** 0.5, rel=0.01, abs=1e-15
    )


@given(st.integers(0, 500), st.integers(1, 500))
def test_the_upper_end_is_that_of_clopper_and_pearson_and_the_lower_is_below_theirs(count, more):
    messages = count + more
    low, high = top_share_interval(count, count, messages)
    assert high == pytest.approx(beta.ppf(0.975, count + 1, more), rel=1e-9)
    assert 0 <= low <= (beta.ppf(0.025, count, more + 1) if count else 0) <= count / messages


@pytest.mark.parametrize(
    "shares", [np.full(200, 1 / 200), np.full(3, 1 / 3), np.arange(1, 101) ** -1.0, np.array([0.6, 0.3, 0.1])]
)
@pytest.mark.parametrize("messages", [30, 1000])
def test_the_truth_is_inside_as_often_as_is_promised(shares, messages):
    shares = shares / shares.sum()
    counts = np.random.default_rng(7).multinomial(messages, shares, size=300).max(axis=1)
    ends = {count: top_share_interval(int(count), int(count), messages) for count in np.unique(counts)}
    inside = [ends[count][0] <= shares.max() <= ends[count][1] for count in counts]
    assert np.mean(inside) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 300)


def test_counts_within_bounds_widen_the_interval():
    low, high = top_share_interval(90, 110, 1000)
    assert (low, high) == (top_share_interval(90, 90, 1000)[0], top_share_interval(110, 110, 1000)[1])
