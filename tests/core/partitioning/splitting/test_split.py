import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.errors import UsageError
from adapt.core.partitioning.schemes.uniform import UniformPartitioner
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.partitioning.splitting.split import Messages, hashed_choice, split
from tests.core.partitioning.splitting.streams import messages_of

every_way = pytest.mark.parametrize("way", Splitting)


def zipf(keys=2000, messages=100_000, exponent=1.0, seed=0):
    shares = np.arange(1, keys + 1) ** -exponent
    counts = np.maximum(shares / shares.sum() * messages, 1).astype(int)
    column = pa.array([f"key{at}" for at in range(keys)])
    counted = frequencies_of(KeyCounts(column, counts, int(counts.sum())))
    return Messages.of_counts(counted, np.random.default_rng(seed))


def loads_of(done):
    return np.bincount(done.places.channels, weights=done.weights, minlength=done.channels)


@st.composite
def streams(draw):
    """A short stream with weights and periods, in which some keys are heavy."""
    size = draw(st.integers(0, 60))
    keys = draw(st.lists(st.sampled_from(["a", "a", "a", "b", "c", "d", None]), min_size=size, max_size=size))
    weights = draw(st.lists(st.integers(1, 5), min_size=size, max_size=size))
    periods = sorted(draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)))
    return messages_of(pa.array(keys, pa.string()), weights, periods)


def plain(messages, way, channels, choices, sources):
    """Message by message, word for word: the weight of each key on each channel, and the merge tuples."""
    keys = messages.keys.take(pa.array(messages.rows)).to_pylist()
    shares = {}
    for key, weight in zip(keys, messages.weights.tolist(), strict=True):
        shares[key] = shares.get(key, 0) + weight
    sent = [[0.0] * channels for _ in range(sources)]
    held, met = {}, {}
    for at, key in enumerate(keys):
        heavy = shares[key] > sum(shares.values()) / (5 * channels)
        number = {"one-choice": 1, "pkg": 2, "d-choices": choices if heavy else 2, "w-choices": 2}[way]
        column = pa.array([key], pa.string())
        able = list(dict.fromkeys(int(hashed_choice(column, choice, channels)[0]) for choice in range(number)))
        if heavy and (way == "w-choices" or (way == "d-choices" and choices >= channels)):
            able = list(range(channels))
        known = sent[at % sources]
        chosen = min(able, key=lambda channel: known[channel])
        known[chosen] += messages.weights[at]
        held[key, chosen] = held.get((key, chosen), 0) + messages.weights[at]
        met.setdefault((messages.periods[at], key), set()).add(chosen)
    return held, sum(len(channels) - 1 for channels in met.values())


@every_way
@given(streams(), st.integers(1, 7), st.integers(2, 5), st.integers(1, 3))
def test_each_message_goes_to_the_least_loaded_choice_of_its_source(way, messages, channels, choices, sources):
    done = split(messages, way, channels, choices=choices, sources=sources)
    held, merges = plain(messages, way, channels, choices, sources)
    names = messages.keys.to_pylist()
    places = zip(done.places.keys.tolist(), done.places.channels.tolist(), done.weights.tolist(), strict=True)
    assert {(names[key], channel): weight for key, channel, weight in places if weight} == held
    assert done.merge_tuples == merges


def test_two_keys_on_two_channels_by_hand():
    """A key alone takes turns on its choices, and is merged once in each period in which it was on both."""
    done = split(messages_of(pa.array(["a"] * 6), periods=[0, 0, 0, 1, 1, 2]), Splitting.W_CHOICES, 2)
    assert loads_of(done).tolist() == [3, 3]
    assert (done.key_periods, done.place_periods, done.merge_tuples) == (3, 5, 2)
    assert (done.channels_per_key, done.choices) == (5 / 3, 2)


def test_one_choice_is_the_uniform_scheme():
    messages = zipf()
    done = split(messages, Splitting.ONE_CHOICE, 9)
    placed = UniformPartitioner(9).channels_of(messages.keys)
    expected = np.bincount(placed[messages.rows], minlength=9)
    assert loads_of(done).tolist() == expected.tolist()
    assert (done.merge_tuples, done.channels_per_key) == (0, 1.0)


def test_as_many_choices_as_channels_are_every_channel():
    messages = zipf()
    every, many = (split(messages, way, 9, choices=9) for way in (Splitting.W_CHOICES, Splitting.D_CHOICES))
    assert every.weights.tolist() == many.weights.tolist()
    assert split(messages, Splitting.D_CHOICES, 9, choices=50).choices == 9


@pytest.mark.parametrize("seed", range(5))
def test_two_choices_balance_as_long_as_no_key_is_too_heavy(seed):
    """Up to a heaviest share of 1/(5N) the imbalance is a part of m/N (Nasir et al., 2015): here a thousandth."""
    messages, channels = zipf(20_000, 500_000, 0.5, seed), 20
    assert np.bincount(messages.rows).max() / len(messages.rows) <= 1 / (5 * channels)
    even = len(messages.rows) / channels
    one, two = (loads_of(split(messages, way, channels)).max() / even for way in (Splitting.ONE_CHOICE, Splitting.PKG))
    assert two < 1.001 < 1.02 < one


@pytest.mark.parametrize("channels", [10, 30, 100])
def test_two_channels_cannot_carry_a_key_of_more_than_twice_the_average(channels):
    """Whatever is done, one of the two has half of the heaviest key; more choices help."""
    messages = zipf(exponent=1.3)
    heaviest = np.bincount(messages.rows).max()
    even = len(messages.rows) / channels
    two, all = (loads_of(split(messages, way, channels)).max() for way in (Splitting.PKG, Splitting.W_CHOICES))
    assert two >= heaviest / 2
    assert all <= 1.01 * even


def test_eight_choices_do_what_all_do_at_moderate_skew():
    messages = zipf()
    fullest = [loads_of(split(messages, way, 32)).max() for way in (Splitting.D_CHOICES, Splitting.W_CHOICES)]
    assert fullest == pytest.approx([len(messages.rows) / 32] * 2, rel=0.005)


@every_way
def test_sources_that_know_only_themselves_balance_together(way):
    """Each source is balanced by itself, so their sum is (Nasir et al., 2015)."""
    messages = zipf(20_000, 500_000, 0.5)
    alone, together = (loads_of(split(messages, way, 10, sources=sources)).max() for sources in (1, 5))
    assert together == pytest.approx(alone, rel=0.005)


@every_way
def test_a_stream_of_nothing_is_split(way):
    done = split(messages_of(pa.array([], pa.string())), way, 4)
    assert loads_of(done).tolist() == [0.0] * 4
    assert (done.merge_tuples, done.channels_per_key) == (0, None)


@pytest.mark.parametrize("numbers", [{"choices": 1}, {"sources": 0}, {"channels": 0}])
def test_impossible_numbers_are_refused(numbers):
    with pytest.raises(UsageError):
        split(zipf(), Splitting.D_CHOICES, **({"channels": 4} | numbers))
