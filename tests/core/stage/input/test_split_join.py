"""A window join of split keys: every pair of the plain join once, against brute force, whatever moves meanwhile."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.errors import BadInput
from adapt.core.stage.conditions.arrivals import Chunk, Rows
from adapt.core.stage.conditions.growth import Join
from adapt.core.stage.input.split_join import SplitJoin
from adapt.core.stage.simulate import Actors, simulate
from tests.core.stage.conditions.test_join import PLAIN, Stream, digest, joins
from tests.core.stage.movement.test_protocol import AnyMoves
from tests.tiers import examples


def copied(stream, split):
    """The split stream row by row, and the original row of each."""
    turns, further, rows, free = {}, {}, [], len(split.parts)
    for group, parts in enumerate(split.parts.tolist()):
        further[group] = [group, *range(free, free + parts - 1)]
        free += parts - 1
    for at, (group, side) in enumerate(zip(stream.groups.tolist(), stream.sides.tolist(), strict=True)):
        if side == split.side[group]:
            turn = turns.get(group, 0)
            turns[group] = turn + 1
            rows.append((at, further[group][turn % len(further[group])]))
        else:
            rows += [(at, part) for part in (further[group] if side >= 0 else further[group][:1])]
    original = np.array([at for at, _ in rows], np.int64)
    groups = np.array([group for _, group in rows], np.int64)
    columns = (stream.producers, stream.sides, stream.times, stream.cost_s)
    return Stream(groups, *(column[original] for column in columns)), original


@given(joins(), st.booleans(), st.data())
@settings(examples(25))
def test_every_pair_meets_in_one_part(case, moves, data):
    of, stream = case
    of = replace(of, overload=None)
    groups = len(of.partition_of)
    parts = np.array(data.draw(st.lists(st.integers(1, 4), min_size=groups, max_size=groups)), np.int64)
    sides = np.array(data.draw(st.lists(st.integers(0, 1), min_size=groups, max_size=groups)), np.int8)
    split = SplitJoin(parts, sides)
    apart, original = copied(stream, split)
    pairs = apart.pairs(of.join.window)
    assert sorted((original[old], original[new]) for old, new in pairs) == stream.pairs(of.join.window)
    of = replace(of, partition_of=split.partition_of(of.partition_of, of.workers))
    acting = {"controller": AnyMoves(data.draw(st.integers(0, 99)))} if moves else {}
    run = simulate(of, split.rows(stream.rows()), 3.0, Actors(**acting), interval_s=0.02, journal=10**5)
    assert (run.answers, run.pairs) == (len(pairs), digest(pairs))


def test_parts_of_a_hot_key_share_its_matches():
    rows, join = 2_000, Join(10_000, 1e-5)
    stream = Stream.of(rows, 8, 4, 1.0, 0, neither=0.0)
    stream = replace(stream, groups=np.where(np.arange(rows) % 10 < 9, 3, stream.groups))
    split = SplitJoin(np.where(np.arange(8) == 3, 4, 1), np.zeros(8, np.int8))
    plain = simulate(replace(PLAIN, join=join), stream.rows())
    apart = replace(PLAIN, join=join, partition_of=split.partition_of(PLAIN.partition_of, 4))
    run = simulate(apart, split.rows(stream.rows()))
    assert run.answers == plain.answers == len(stream.pairs(10_000))
    matched = [PLAIN.owners[apart.partition_of[group]] for group in (3, *range(8, 11))]
    assert sorted(matched) == [0, 1, 2, 3]


def test_keys_with_more_than_a_worker_s_share_of_rows_or_pairs_are_split():
    rows = np.array([[60, 10, 10, 0], [0, 10, 30, 2]])
    split = SplitJoin.of_hot(rows, 4)
    assert split.parts.tolist() == [2, 1, 3, 1]  # 60 of 122 rows; 300 of 400 pairs
    assert split.side[[0, 2]].tolist() == [0, 1]


def test_a_split_join_needs_sides_and_parts():
    with pytest.raises(BadInput, match="at least 1 part"):
        SplitJoin(np.array([0]), np.array([0], np.int8))
    split = SplitJoin(np.array([2]), np.array([0], np.int8))
    with pytest.raises(BadInput, match="a side for every row"):
        list(split.rows(Rows(lambda: iter([Chunk(np.zeros(1, np.int64), np.zeros(1, np.int64))]))).chunks())
