"""The splitter: counts as the sliding counter does, routes as its plan says, and adopts plans in order."""

import threading

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.counting.sliding import SlidingLossyCounter, SlidingWindow
from adapt.core.engines.names import Engine
from adapt.core.errors import BadInput, UsageError
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.loop.splitter import Splitter
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import KeyType, Weight
from adapt.core.units.row_or_time_span import Length

ROWS = SlidingWindow(Length(4000, in_rows=True))


def zipf_keys(rows, seed=0, keys=300, shift=0):
    """Keys of a Zipf stream; a shift makes other keys the hot ones."""
    shares = 1 / np.arange(1, keys + 1)
    drawn = np.random.default_rng(seed).choice(keys, rows, p=shares / shares.sum())
    return pa.array([f"key {(number + shift) % keys}" for number in drawn.tolist()])


def splitter(channels=4, window=ROWS, **given):
    return Splitter(channels, Recipe(max_pins=20), window=window, epsilon=1e-3, **given)


def imbalance(splitter, keys):
    loads = np.bincount(splitter.route(keys), minlength=splitter.plan.channels)
    return loads.max() / loads.mean()


def test_it_starts_with_hashing_and_a_plan_lowers_the_imbalance():
    keys, one = zipf_keys(10_000), splitter()
    hashing = Plan(Scheme.HYBRID, 4, KeyType.STRING).partitioner()
    assert (one.route(keys) == hashing.channels_of(keys)).all()
    one.observe(keys)
    before, proposal = imbalance(one, keys), one.propose()
    assert imbalance(one, keys) == before  # a proposal changes nothing
    one.adopt(proposal)
    assert one.plan is proposal.plan
    assert imbalance(one, keys) < before
    assert (one.route(keys) == proposal.plan.partitioner().channels_of(keys)).all()


@given(st.lists(st.integers(1, 2500), min_size=1, max_size=6), st.integers(0, 5))
@settings(max_examples=20, deadline=None)
def test_batches_decide_nothing(sizes, seed):
    keys, cut, whole = zipf_keys(8000, seed), splitter(), splitter()
    whole.observe(keys)
    first = 0
    for size in sizes:
        cut.observe(keys.slice(first, size))
        first += size
    cut.observe(keys.slice(first).dictionary_encode())
    assert cut.propose().plan.content_hash() == whole.propose().plan.content_hash()


def test_keys_one_by_one_are_counted_and_routed_as_in_batches():
    keys, batched, single = zipf_keys(6000), splitter(), splitter()
    batched.observe(keys)
    for key in keys.to_pylist():
        single.observe_key(key)
    assert batched.propose().plan.content_hash() == single.propose().plan.content_hash()
    batched.adopt(batched.propose())
    some = keys.slice(0, 200)
    assert [batched.route_key(key) for key in some.to_pylist()] == batched.route(some).tolist()


def test_it_counts_as_the_sliding_counter_and_builds_as_build_does():
    keys, one = zipf_keys(9000), splitter()
    counter = SlidingLossyCounter(1e-3, pa.string(), ROWS)
    counter.update(keys)
    one.observe(keys)
    counted = counter.summary().frequencies(1e-3)
    assert one.counted().keys.equals(counted.keys)
    made = build_plan(counted, Recipe(max_pins=20), 4, previous=one.plan)
    assert one.propose().plan.content_hash() == made.content_hash()


def test_what_was_long_ago_is_forgotten():
    one = splitter()
    one.observe(zipf_keys(6000))
    one.observe(zipf_keys(12_000, shift=150))
    assert "key 150" in one.propose().plan.explicit
    assert one.counted().keys[0].as_py() == "key 150"


def test_weights_and_times():
    minutes = SlidingWindow(Length.parse("10s"))
    one = splitter(window=minutes, weight=Weight.BYTES)
    keys, sizes = pa.array(["small", "large"] * 3000), np.array([1, 50] * 3000)
    one.observe(keys, sizes, np.arange(6000) * 1000)
    assert one.counted().keys.to_pylist() == ["large", "small"]
    with pytest.raises(ValueError, match="needs a weight for each row"):
        one.observe(keys)
    with pytest.raises(BadInput, match="rows must be in time order"):
        one.observe(keys, sizes, np.arange(6000))


def test_moves_are_the_pinned_keys_whose_channel_changes():
    one = splitter()
    one.observe(zipf_keys(8000))
    one.adopt(one.propose())
    one.observe(zipf_keys(8000, seed=1, shift=40))
    before, proposal = one.plan, one.propose()
    keys, was, is_now, state = proposal.moved
    pinned = {*before.explicit, *proposal.plan.explicit}
    old, new = before.partitioner(), proposal.plan.partitioner()
    assert {*keys.to_pylist()} == {key for key in pinned if old.channel_of(key) != new.channel_of(key)}
    assert [old.channel_of(key) for key in keys.to_pylist()] == was.tolist()
    assert [new.channel_of(key) for key in keys.to_pylist()] == is_now.tolist()
    assert (np.diff(state) <= 0).all()
    assert state.sum() == pytest.approx(proposal.moved_state)  # the base is as it was
    assert [row["key"] for row in proposal.moves().records()] == keys.to_pylist()


def test_other_channels():
    one = splitter()
    one.observe(zipf_keys(8000))
    one.adopt(one.propose())
    one.adopt(one.propose(6))
    assert one.plan.channels == 6
    assert set(one.route(zipf_keys(8000)).tolist()) == set(range(6))


def test_plans_are_adopted_in_order():
    one = splitter()
    one.observe(zipf_keys(8000))
    first, second = one.propose(), one.propose(5)
    one.adopt(first)
    with pytest.raises(UsageError, match="follows another plan than the one in force; propose again"):
        one.adopt(second)
    with pytest.raises(UsageError, match="observe some before proposing"):
        splitter().propose()


@pytest.mark.parametrize(
    ("plan", "wrong"),
    [
        (Plan(Scheme.HYBRID, 5, KeyType.STRING), "5 channels, not 4"),
        (Plan(Scheme.HYBRID, 4, KeyType.INT64), "int64 keys, not string"),
        (Plan(Scheme.HYBRID, 4, KeyType.STRING, base=Engine.KAFKA), "base kafka"),
    ],
)
def test_a_plan_of_another_kind_is_refused(plan, wrong):
    with pytest.raises(UsageError, match=wrong):
        splitter(plan=plan)


def test_keys_of_another_type_are_refused():
    one = splitter()
    for wrong in (one.observe, one.route):
        with pytest.raises(UsageError, match="was made for string keys"):
            wrong(pa.array([1, 2]))
    one.observe(pa.nulls(5))
    assert one.route(pa.nulls(2)).tolist() == [one.route_key(None)] * 2


def test_many_threads_lose_no_row():
    one, keys = splitter(window=SlidingWindow(Length(10**6, in_rows=True))), zipf_keys(5000)

    def work():
        for at in range(0, 5000, 500):
            one.observe(keys.slice(at, 500))
            one.route(keys)
            one.observe_key("single")
            one.counted()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert one.counted().total == 4 * 5010
