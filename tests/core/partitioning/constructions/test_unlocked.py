"""Readj without its trap: the trap and the way out by hand, and that all else is readj."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.partitioning.constructions.readj import readj, unlocked
from adapt.core.partitioning.measures.resources import ResourceFunction, Resources
from adapt.core.partitioning.problem.problem import Problem
from adapt.core.partitioning.schemes.consistent import ConsistentHash


def step(counts, home, channels, letters="LCL"):
    """A step in which all keys are tracked and begin at home."""
    keys = pa.array(range(len(counts)), pa.int64())
    counted = frequencies_of(KeyCounts(keys, np.array(counts, np.int64), int(sum(counts))))
    ring = ConsistentHash(channels, replicas=5)
    return replace(
        Problem.from_counts(ring, ring, counted, counted.keys, Resources.parse(letters)), home=np.array(home, np.int32)
    )


@st.composite
def steps(draw, letters=st.text("CLQ", min_size=3, max_size=3)):
    """A step of any kind, with many equal counts; also with channels that are gone."""
    counts = sorted(draw(st.lists(st.integers(1, draw(st.sampled_from([2, 9, 99]))), max_size=20)), reverse=True)
    channels = draw(st.integers(1, 6))
    home = draw(st.lists(st.integers(0, 7), min_size=len(counts), max_size=len(counts)))
    return step(counts, home, channels, draw(letters))


def loads_of(problem, placed, function=ResourceFunction.LINEAR):
    return np.bincount(placed, function.costs(problem.counts), problem.channels)


def ties(loads):
    return np.count_nonzero(loads == loads.min()) > 1 or np.count_nonzero(loads == loads.max()) > 1


def test_two_empty_channels_stop_readj_but_are_filled_here():
    # The 9 alone is fullest; both empty channels are emptiest, so that filling either leaves the spread at 9.
    problem = step([9, 4, 2, 1], home=[0, 1, 1, 1], channels=4)
    assert readj(problem).tolist() == [0, 1, 1, 1]
    assert sorted(loads_of(problem, unlocked(problem))) == [1, 2, 4, 9]


def test_a_tied_channel_is_given_the_largest_key_up_to_half_the_gap():
    # The 99 is more than half of any gap. Half of 10 is 5, which goes to channel 2; readj then fills channel 3.
    problem = step([99, 5, 3, 2], home=[0, 1, 1, 1], channels=4)
    assert unlocked(problem).tolist() == [0, 2, 1, 3]


def test_two_channels_that_tie_for_the_most_give_too():
    # 6 and 6 against 0 (nothing tied for the least): one 3 goes from channel 0, and readj moves another.
    problem = step([3, 3, 3, 3], home=[0, 0, 1, 1], channels=3)
    assert sorted(loads_of(problem, unlocked(problem))) == [3, 3, 6]


@settings(deadline=None)
@given(steps())
def test_every_key_has_a_channel_in_range_and_answers_do_not_change(problem):
    placed = unlocked(problem)
    assert (placed.dtype, placed.shape) == (np.int32, problem.counts.shape)
    assert ((placed >= 0) & (placed < problem.channels)).all()
    assert unlocked(problem).tolist() == placed.tolist()


@settings(deadline=None)
@given(steps())
def test_where_readj_ends_without_a_tie_it_is_readj(problem):
    placed = readj(problem)
    if problem.channels == 1 or not any(ties(loads_of(problem, placed, function)) for function in problem.functions):
        assert unlocked(problem).tolist() == placed.tolist()


@settings(deadline=None)
@given(steps(st.just("LCL")))
def test_the_spread_is_never_more_than_with_readj(problem):
    assert np.ptp(loads_of(problem, unlocked(problem))) <= np.ptp(loads_of(problem, readj(problem)))


@settings(deadline=None)
@given(steps(st.just("LCL")))
def test_what_is_left_tied_could_not_be_freed(problem):
    """No channel can spare a key that is at most half the gap, for any channel that ties for the least."""
    placed = unlocked(problem)
    loads = loads_of(problem, placed)
    if np.count_nonzero(loads == loads.min()) > 1:
        assert not (problem.counts <= (loads[placed] - loads.min()) / 2).any()


@pytest.mark.parametrize("letters", ["LLL", "LQL", "CCC"])
@pytest.mark.parametrize("channels", [1, 3])
def test_no_key_and_one_key(letters, channels):
    assert unlocked(step([], [], channels, letters)).tolist() == []
    assert unlocked(step([5], [channels - 1], channels, letters)).tolist() == [channels - 1]
