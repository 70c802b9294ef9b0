"""Which keys are tracked, by hand and by the definition."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import Frequencies, MeasuredColumn
from adapt.core.errors import UsageError
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.problem.tracking import (
    COARSEST,
    FINEST,
    MOST_TRACKED,
    Known,
    epsilon_for,
    measured_sentences,
    theta,
    threshold,
    tracked_keys,
)


def counted(**counts: int) -> Frequencies:
    keys = pa.array(list(counts), pa.string())
    return frequencies_of(KeyCounts(keys, np.array(list(counts.values()), dtype=np.int64), sum(counts.values())))


def test_theta_by_hand():
    assert theta(1.5, 4) == pytest.approx(0.5 / (1 + 1.5 / 3))
    assert theta(1, 4) == 0


def test_theta_is_how_far_the_fullest_channel_lies_above_the_mean():
    # One channel at alpha, N - 1 at 1: the case that Eq. 15 is derived from.
    loads = [1.2, *[1.0] * 9]
    assert theta(1.2, 10) == pytest.approx(1.2 / (sum(loads) / 10) - 1)


def test_constant_resources_need_no_tracking():
    assert threshold(counted(a=3, b=1), Resources.parse("CCC"), 4) == 1
    assert tracked_keys(counted(a=3, b=1), Resources.parse("CCC"), 4).to_pylist() == []


@given(st.lists(st.integers(1, 50), min_size=1, max_size=12), st.text("CLQ", min_size=3, max_size=3), st.integers(2, 6))
def test_threshold_is_the_definition(counts, letters, channels):
    """Section 4.1.3, word for word, with L_k as an average per channel."""
    stream = frequencies_of(KeyCounts(pa.array(range(len(counts))), np.array(counts), sum(counts)))
    f, size, room = [count / sum(counts) for count in counts], len(counts), 0.3 * theta(1.7, channels)
    plain = {"C": 1.0, "L": room / channels, "Q": math.sqrt(room / (size * channels))}
    collected = [share for share in f if share >= min(plain[letter] for letter in letters)]
    others = size - len(collected)
    load = sum(share**2 for share in collected)
    if others:
        load += others * ((1 - sum(collected)) / others) ** 2
    raised = plain | {"Q": math.sqrt(room * load / channels)}
    expected = min(raised[letter] for letter in letters)
    assert threshold(stream, Resources.parse(letters, 1.7, 0.3), channels) == pytest.approx(expected)


def test_the_hottest_keys_of_a_quadratic_resource_give_it_the_error_of_a_linear_one():
    """Section 5.4: at 10^6 keys and z = 1, Eq. 17 gives 4.2e-6, and 1.76e-4 tracks the same 39 keys."""
    shares = 1 / np.arange(1, 10**6 + 1)
    shares /= shares.sum()
    assert epsilon_for(QUADRATIC, 10, 10**6) == pytest.approx(4.2e-6, rel=0.01)
    assert epsilon_for(QUADRATIC, 10, Known(10**6, 1.0, shares[:100])) == epsilon_for(LINEAR, 10, 10**6)
    of_all = Frequencies(pa.array(range(10**6)), shares, shares, total=1.0, rows=10**6, distinct=10**6)
    assert len(tracked_keys(of_all, QUADRATIC, 10)) == len(tracked_keys(of_all, LINEAR, 10)) == 39


@given(st.lists(st.integers(1, 50), min_size=1, max_size=12), st.data())
def test_known_keys_never_make_the_error_too_large(counts, data):
    counts = sorted(counts, reverse=True)
    stream = frequencies_of(KeyCounts(pa.array(range(len(counts))), np.array(counts), sum(counts)))
    known = np.array(counts[: data.draw(st.integers(0, len(counts)))], float)
    resources = Resources.parse("LQL", 1.2, 0.1)
    wanted = epsilon_for(resources, 10, Known(len(counts), sum(counts), known))
    assert epsilon_for(resources, 10, len(counts)) * (1 - 1e-9) <= wanted
    assert wanted <= max(0.1 * threshold(stream, resources, 10), 1e-9) * (1 + 1e-9)


def test_keys_that_reach_delta_are_tracked_in_tie_order():
    resources = Resources.parse("LLL", 1.5, 1.0)
    # delta = theta / 4 = (1/3) / 4 = 1/12
    stream = counted(e=1, d=2, c=2, b=5, a=14)
    assert tracked_keys(stream, resources, 4).to_pylist() == ["a", "b", "c", "d"]


def test_upper_bounds_decide_for_lossy_counts():
    lossy = Frequencies(
        pa.array(["a", "b", "c"]), np.array([50, 1, 0]), np.array([50, 1, 20]), total=100.0, rows=100, epsilon=0.2
    )
    assert tracked_keys(lossy, Resources.parse("LLL", 1.5, 1.0), 4).to_pylist() == ["a", "c"]


def test_a_given_number_of_keys_can_be_tracked():
    assert tracked_keys(counted(a=3, c=2, b=2), Resources(), 4, track=2).to_pylist() == ["a", "b"]
    assert tracked_keys(counted(a=3, c=2, b=2), Resources(), 4, track=9).to_pylist() == ["a", "b", "c"]
    with pytest.raises(UsageError, match="max_pins must be at least 0"):
        tracked_keys(counted(a=3), Resources(), 4, track=-1)


def test_one_channel_tracks_nothing():
    assert tracked_keys(counted(a=3), Resources(), 1).to_pylist() == []
    assert tracked_keys(counted(a=3), Resources(), 1, track=5).to_pylist() == []


def test_an_empty_stream_tracks_nothing():
    assert len(tracked_keys(counted(), Resources(), 4)) == 0


LINEAR = Resources.parse("LCL", 1.2, 0.1)
QUADRATIC = Resources.parse("LQL", 1.2, 0.1)


def test_the_error_is_a_tenth_of_delta_at_the_paper_s_defaults():
    # theta = 0.2 / (1 + 1.2 / 9) = 3 / 17, delta = 0.1 theta / 10
    assert epsilon_for(LINEAR, 10, 10**6) == pytest.approx(0.1 * 0.1 * 3 / 17 / 10)
    assert epsilon_for(LINEAR, 10, 10**6) == pytest.approx(1.7647e-4, abs=5e-9)


def test_the_error_of_a_quadratic_resource_is_a_tenth_of_its_delta_of_eq_17():
    assert epsilon_for(QUADRATIC, 10, 10**6) == pytest.approx(0.1 * math.sqrt(0.1 * 3 / 17 / 10 / 10**6))


@given(st.text("CLQ", min_size=3, max_size=3), st.integers(1, 10**8), st.integers(1, 500), st.integers(1, 500))
def test_the_error_serves_every_smaller_number_of_channels(letters, domain, channels, fewer):
    resources = Resources.parse(letters, 1.3, 0.1)
    for_most = epsilon_for(resources, channels + fewer, domain)
    assert for_most <= epsilon_for(resources, channels, domain)
    assert 0 < for_most <= COARSEST


@given(st.integers(2, 100), st.integers(1, 10**8), st.integers(2, 100))
def test_the_error_falls_with_the_domain_for_quadratic_resources_alone(channels, domain, times):
    assert epsilon_for(QUADRATIC, channels, domain * times) <= epsilon_for(QUADRATIC, channels, domain)
    assert epsilon_for(LINEAR, channels, domain * times) == epsilon_for(LINEAR, channels, domain)


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=12), st.sampled_from(["LCL", "LLL", "LQL"]), st.integers(2, 60)
)
def test_the_error_is_at_most_a_tenth_of_the_delta_that_the_counts_give(counts, letters, channels):
    """Eq. 17, before any key is known, is the least that a quadratic delta can be."""
    stream = frequencies_of(KeyCounts(pa.array(range(len(counts))), np.array(counts), sum(counts)))
    resources = Resources.parse(letters, 1.2, 0.1)
    wanted = 0.1 * threshold(stream, resources, channels)
    assert epsilon_for(resources, channels, len(counts)) <= wanted * (1 + 1e-12)


def test_a_number_of_keys_to_track_asks_for_a_tenth_of_a_tenth_of_their_even_share():
    assert epsilon_for(LINEAR, 10, 10**6, track=1000) == pytest.approx(0.1 / 10_000)
    assert epsilon_for(LINEAR, 10, 10**6, track=1) == epsilon_for(LINEAR, 10, 10**6)
    assert epsilon_for(LINEAR, 10, 10**6, track=0) == epsilon_for(LINEAR, 10, 10**6)


def test_the_error_has_bounds():
    assert epsilon_for(Resources.parse("CCC"), 10, 10**6) == COARSEST
    assert epsilon_for(LINEAR, 1, 10**6) == epsilon_for(LINEAR, 2, 10**6)
    assert epsilon_for(Resources.parse("LLL", 1.0, 0.1), 10, 10**6) == FINEST
    assert 0 < epsilon_for(QUADRATIC, 10, 0) <= COARSEST


def measured(**of: tuple[int, int]) -> Frequencies:
    """Exact counts and bytes by key."""
    told = counted(**{key: count for key, (count, _) in of.items()})
    values = np.array([of[key][1] for key in told.keys.to_pylist()], float)
    return replace(told, measured=(MeasuredColumn("bytes", values, values.sum()),))


def test_keys_that_are_heavy_as_measured_are_tracked_beside_those_that_come_often():
    stream = measured(often=(900, 1), heavy=(1, 900), both=(90, 90), light=(9, 9))
    by_bytes = Resources.parse("LLL", 1.5, 0.5, ["state=bytes"])
    room = 0.5 * theta(1.5, 4) / 4
    assert 90 / 1000 > room > 9 / 1000
    assert tracked_keys(stream, Resources.parse("LLL", 1.5, 0.5), 4).to_pylist() == ["often", "both"]
    assert tracked_keys(stream, by_bytes, 4).to_pylist() == ["often", "both", "heavy"]
    only_bytes = replace(by_bytes, measured=("bytes",) * 3)
    assert tracked_keys(stream, only_bytes, 4).to_pylist() == ["both", "heavy"]


def test_so_many_keys_are_those_with_the_largest_share_of_a_load():
    stream = measured(often=(600, 1), more=(300, 2), heavy=(1, 900), light=(99, 97))
    by_bytes = Resources.parse(measure=["network=bytes"])
    assert tracked_keys(stream, by_bytes, 4, track=2).to_pylist() == ["often", "heavy"]
    assert tracked_keys(stream, by_bytes, 4, track=9).to_pylist() == stream.keys.to_pylist()


def test_a_column_that_is_nothing_tracks_nothing():
    stream = measured(a=(1, 0), b=(1, 0))
    assert tracked_keys(stream, Resources.parse("CCC", measure=["state=bytes"]), 4).to_pylist() == []


def test_counts_are_as_good_whatever_is_measured():
    """Counting lossily must list the keys that are heavy in a column, so the letters set its error."""
    by_bytes = Resources.parse(measure=["state=bytes", "computation=bytes", "network=bytes"])
    assert epsilon_for(by_bytes, 10, 1000) == epsilon_for(Resources(), 10, 1000)


def test_what_is_measured_on_unlisted_keys_is_told():
    stream = measured(a=(60, 10), b=(20, 30))
    lossy = replace(stream, total=100, epsilon=0.01, complete_above=1, distinct=40)
    by_bytes = Resources.parse(measure=["state=bytes"])
    told = partial(measured_sentences, resources=by_bytes, channels=4)
    assert told(stream) == told(lossy) == []
    (much,) = told(replace(lossy, measured=(MeasuredColumn("bytes", np.array([10.0, 30.0]), 80.0),)))
    assert "bytes: 50 % is on unlisted keys" in much
    assert "count exactly, or with --weight bytes" in much
    (little,) = told(replace(lossy, measured=(MeasuredColumn("bytes", np.array([10.0, 30.0]), 40.01),)))
    assert "--weight" not in little


def zipf_counts(keys: int, z: float) -> Frequencies:
    counts = np.maximum(np.rint(1e7 * np.arange(1, keys + 1) ** -z), 1).astype(np.int64)
    return frequencies_of(KeyCounts(pa.array(range(keys)), counts, int(counts.sum())))


def test_a_least_number_is_tracked_beside_those_that_reach_delta():
    stream = zipf_counts(50_000, 0.8)
    by_delta = tracked_keys(stream, Resources(), 10)
    assert len(by_delta) < 1000
    assert tracked_keys(stream, Resources(), 10, least=1000).equals(stream.keys[:1000])
    assert tracked_keys(stream, Resources(), 10, least=5).equals(by_delta)
    assert tracked_keys(stream, Resources(), 10, track=7, least=1000).equals(stream.keys[:7])
    assert len(tracked_keys(stream, Resources(), 1, least=1000)) == 0


def test_keys_that_are_held_stay_while_there_is_room():
    stream = zipf_counts(50_000, 0.8)
    held = stream.keys.take(pa.array([30_000, 2000, 5]))
    assert tracked_keys(stream, Resources(), 10, least=1000, held=held).equals(
        stream.keys.take(pa.array([*range(1000), 2000, 30_000]))
    )
    assert tracked_keys(stream, Resources(), 10, track=7, held=held).equals(stream.keys[:7])
    unlisted = pa.array([10**6], stream.keys.type)
    assert tracked_keys(stream, Resources(), 10, least=1000, held=unlisted).equals(stream.keys[:1000])
    many = tracked_keys(stream, Resources(), 10, least=1000, held=stream.keys[500:])
    assert many.equals(stream.keys[:MOST_TRACKED])
    assert len(tracked_keys(stream, Resources(), 1, least=1000, held=held)) == 0
    none_listed = Frequencies(stream.keys[:0], np.zeros(0), np.zeros(0), 10, 10, distinct=5)
    assert len(tracked_keys(none_listed, Resources(), 10, least=1000, held=held)) == 0


@given(st.sampled_from([0.6, 0.8, 1.0, 1.1]), st.integers(2, 40))
def test_more_are_tracked_only_as_far_as_the_heaviest_key_needs_company_that_is_placed(z, channels):
    stream = zipf_counts(20_000, z)
    tracked = len(tracked_keys(stream, Resources(), channels, least=100))
    shares = stream.count_low / stream.total

    def over_mean(keys):
        return channels * shares[0] + 1.05 * (1 - shares[:keys].sum())

    if channels * shares[0] > 1.2:
        assert tracked == max(100, len(tracked_keys(stream, Resources(), channels)))
    else:
        assert over_mean(tracked) <= 1.2 or tracked == MOST_TRACKED
        fewest = max(100, len(tracked_keys(stream, Resources(), channels)))
        assert tracked == fewest or over_mean(tracked - 1) > 1.2
