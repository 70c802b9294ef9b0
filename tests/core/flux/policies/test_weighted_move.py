"""Slicer's weighted moves, on observations made by hand and against every single move."""

import numpy as np
import pytest
from hypothesis import given

from adapt.core.errors import UsageError
from adapt.core.flux.policies.weighted_move import WeightedMoves
from adapt.core.stage.movement.controller import Move
from tests.core.flux.observations import observations, observed


def loads_after(seen, moves):
    """Utilization of each worker, and of each partition, with these moves."""
    by_worker = np.maximum(1, seen.processed_by_worker)
    used = [float(one) for one in seen.utilization]
    shares = zip(seen.owners.tolist(), seen.processed.tolist(), strict=True)
    parts = [used[owner] * rows / int(by_worker[owner]) for owner, rows in shares]
    loads = used.copy()
    for move in moves:
        loads[move.donor] -= parts[move.partition]
        loads[move.receiver] += parts[move.partition]
    return loads, parts


def test_the_partition_that_evens_most_moves_first():
    """Worker 0 is full with 50, 31 and 19 %, worker 1 does 20 %: the higher one is then at 70, 69 or 81 %."""
    seen = observed([0.0, 0.8], [0, 0, 0, 1], [50, 31, 19, 20])
    assert WeightedMoves(0.25).plan(seen) == (Move(1, 0, 1),)
    assert WeightedMoves(1.0).plan(seen) == (Move(1, 0, 1),)


def test_no_more_moves_than_the_budget():
    owners, processed = [0] * 100 + [1] * 100, [10] * 100 + [0] * 100
    seen = observed([0.0, 1.0], owners, processed)
    assert len(WeightedMoves().plan(seen)) == 18
    assert len(WeightedMoves(1.0).plan(seen)) == 50
    assert len(WeightedMoves(1e-6).plan(seen)) == 1


@given(observations())
def test_each_move_is_the_best_of_the_hottest_worker(seen):
    moves = WeightedMoves().plan(seen)
    assert len({move.partition for move in moves}) == len(moves) <= max(1, int(0.09 * len(seen.owners)))
    assert not {move.donor for move in moves} & {move.receiver for move in moves}
    for index, move in enumerate(moves):
        loads, parts = loads_after(seen, moves[:index])
        gone = {one.partition for one in moves[:index]}
        assert seen.owners[move.partition] == move.donor
        assert loads[move.donor] == pytest.approx(max(loads))
        assert loads[move.receiver] == pytest.approx(min(loads))
        higher = {
            partition: max(loads[move.donor] - parts[partition], loads[move.receiver] + parts[partition])
            for partition in np.flatnonzero(seen.owners == move.donor).tolist()
            if partition not in gone
        }
        assert higher[move.partition] == pytest.approx(min(higher.values()))
        assert higher[move.partition] < loads[move.donor]


def test_even_workers_rest():
    assert WeightedMoves().plan(observed([0.5, 0.5], [0, 1], [10, 10])) == ()
    assert WeightedMoves().plan(observed([1.0, 1.0], [0, 1], [0, 0])) == ()


def test_a_budget_is_above_0():
    with pytest.raises(UsageError, match="churn must be above 0"):
        WeightedMoves(0.0)
