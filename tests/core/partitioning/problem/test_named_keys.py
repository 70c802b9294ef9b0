"""Keys named as text: pins and lists, their types, and what is said of those that are none."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.errors import BadInput, UsageError
from adapt.core.partitioning.problem.named_keys import (
    NamedKey,
    Pin,
    one_pin_each,
    pinned_keys,
    typed_keys,
    unlisted,
)

TEXTS = frequencies_of(KeyCounts(pa.array(["amazon", "ebay", ""]), np.array([5, 2, 0]), 7))
NUMBERS = frequencies_of(KeyCounts(pa.array([7, -8]), np.array([2, 1]), 3))
BYTES = frequencies_of(KeyCounts(pa.array([b"\x01\xff"]), np.array([2]), 2))


def pin(text, channel, where="--pin"):
    return Pin(NamedKey(text, where), channel)


def named(*texts):
    return [NamedKey(text, f"keys.txt line {line}") for line, text in enumerate(texts, 1)]


@given(st.text(), st.integers(0, 999_999_999))
def test_a_pin_is_a_key_and_a_channel_after_the_last_sign_of_equality(key, channel):
    assert Pin.parse(f"{key}={channel}") == pin(key, channel)


@pytest.mark.parametrize("text", ["", "a", "a=", "a=x", "a=-1", "a=1.0", "a= 1", "a=1e3", "a=٣", "a=10000000000"])
def test_what_is_no_pin_is_refused(text):
    with pytest.raises(UsageError, match=r"takes KEY=CHANNEL with a worker from 0 up"):
        Pin.parse(text)


def test_pins_that_agree_are_one():
    assert one_pin_each([pin("a", 1), pin("b", 0), pin("a", 1, "p.csv line 2")], [2, 4]) == (pin("a", 1), pin("b", 0))


def test_pins_that_disagree_are_refused_with_both_places():
    with pytest.raises(UsageError, match=r"p.csv line 2: key 'a' is pinned to worker 0 here and to 1 by --pin; remove"):
        one_pin_each([pin("a", 1), pin("a", 0, "p.csv line 2")], [2])


@pytest.mark.parametrize(("channels", "there"), [([1], "the only worker is 0"), ([5, 3], "workers run from 0 to 2")])
def test_pins_fit_the_least_of_the_channel_counts(channels, there):
    with pytest.raises(UsageError, match=f"--pin: key 'a' is pinned to worker 3, but {there}"):
        one_pin_each([pin("a", 3)], channels)


@pytest.mark.parametrize(
    ("frequencies", "text", "key"),
    [(TEXTS, "ebay", "ebay"), (TEXTS, "", ""), (NUMBERS, "-8", -8), (BYTES, "01FF", b"\x01\xff")],
)
def test_keys_are_of_the_type_of_those_that_were_counted(frequencies, text, key):
    assert dict(pinned_keys([pin(text, 2)], frequencies)) == {key: 2}
    assert typed_keys(named(text), frequencies).to_pylist() == [key]


@pytest.mark.parametrize(("frequencies", "text"), [(NUMBERS, "x"), (NUMBERS, "007"), (BYTES, "1f0")])
def test_a_key_of_another_type_is_refused_with_its_line(frequencies, text):
    good = "7" if frequencies is NUMBERS else "01ff"
    with pytest.raises(BadInput, match=rf"keys.txt line 2: \w+ keys must be .* \(got '{text}'\)"):
        typed_keys(named(good, text), frequencies)


def test_a_key_that_was_not_counted_is_refused_with_its_line_and_a_near_one():
    with pytest.raises(
        BadInput, match=r"keys.txt line 2: key 'amazn' is not among the 3 counted keys; did you mean 'amazon'\?"
    ):
        typed_keys(named("ebay", "amazn", "x"), TEXTS)


def test_a_lossy_counter_may_have_left_a_key_out_unless_it_says_that_it_lists_all():
    lossy = replace(TEXTS, epsilon=0.1, complete_above=1.0)
    keys = typed_keys(named("ebay", "nobody"), lossy)
    assert (keys.to_pylist(), unlisted(keys, lossy)) == (["ebay", "nobody"], 1)
    with pytest.raises(BadInput, match="nobody"):
        typed_keys(named("nobody"), replace(TEXTS, epsilon=0.1))


def test_two_texts_of_one_key_with_two_channels_are_refused():
    with pytest.raises(BadInput, match="pinned to two workers"):
        pinned_keys([pin("01ff", 0), pin("01FF", 1)], BYTES)
