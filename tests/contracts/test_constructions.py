"""What every construction keeps: a channel in range for each tracked key, always the same, and no input changed."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.partitioning.constructions.level import budgeted_step
from adapt.core.partitioning.constructions.registry import CONSTRUCTIONS, assigned
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.problem.constraints import Constraints
from adapt.core.partitioning.problem.problem import Problem
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.partitioning.schemes.names import Construction, UtilityName

every_construction = pytest.mark.parametrize("construction", CONSTRUCTIONS)


@st.composite
def steps(draw, most_channels=6):
    """A step of any kind: growing, shrinking or neither; keys new, kept, departed and gone; many equal counts."""
    counts = draw(st.lists(st.integers(1, draw(st.sampled_from([2, 9, 99]))), max_size=15))
    keys = [f"k{number}" for number in range(len(counts) + 1)]
    before, after = draw(st.integers(1, most_channels)), draw(st.integers(1, most_channels))
    counted = frequencies_of(
        KeyCounts(pa.array(keys[:-1], pa.string()), np.array(counts, np.int64), sum(counts)),
    )
    current = HybridPartitioner(
        draw(st.dictionaries(st.sampled_from(keys), st.integers(0, before - 1))), ConsistentHash(before, 5)
    )
    loads = draw(st.text("CLQ", min_size=3, max_size=3))
    pinned = st.dictionaries(st.sampled_from(keys), st.integers(0, after - 1))
    return Problem.from_counts(
        current,
        ConsistentHash(after, 5),
        counted,
        counted.keys[: draw(st.integers(0, len(counts)))],
        Resources.parse(loads, draw(st.sampled_from([1.0, 1.2, 3.0]))),
        draw(st.sampled_from(UtilityName)),
        Constraints(pinned=draw(st.just({}) | pinned)),
    )


def test_every_name_has_a_construction():
    assert set(CONSTRUCTIONS) == set(Construction)


@every_construction
@settings(deadline=None)
@given(problem=steps())
def test_each_key_has_a_channel_in_range_or_that_of_its_pin_and_answers_do_not_change(construction, problem):
    given_arrays = [problem.counts, problem.home, problem.hashed, problem.loads, problem.theta, problem.state]
    copies = [array.copy() for array in given_arrays]
    placed = CONSTRUCTIONS[construction](problem)
    assert (placed.dtype, placed.shape) == (np.int32, problem.counts.shape)
    assert ((placed >= 0) & (placed < problem.channels)).all()
    assert ((problem.pinned < 0) | (placed == problem.pinned)).all()
    assert CONSTRUCTIONS[construction](problem).tolist() == placed.tolist()
    assert all(np.array_equal(array, copy) for array, copy in zip(given_arrays, copies, strict=True))


@every_construction
@settings(deadline=None, max_examples=30)
@given(problem=steps(), part=st.sampled_from([0, 0.1, 0.5]))
def test_no_more_moves_by_choice_than_the_limit_and_b_is_never_above_that_of_the_start(construction, problem, part):
    budget = part * float(problem.state.sum())
    limited = replace(problem, budget=lambda: budget)
    by_choice = (problem.home < problem.channels) & (problem.pinned < 0)
    for placed in (CONSTRUCTIONS[construction](limited), assigned(construction, limited)[1]):
        assert problem.state[by_choice & (placed != problem.home)].sum() <= budget * (1 + 1e-9)
        assert part or (placed == problem.start)[by_choice].all()
    step, free = budgeted_step(limited), problem.pinned < 0
    assert step.log_b(placed[free]) <= step.log_b(problem.start[free])


@every_construction
@settings(deadline=None)
@given(problem=steps(most_channels=1))
def test_one_channel_takes_every_key(construction, problem):
    assert not CONSTRUCTIONS[construction](problem).any()
