import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.flux.policies.guarded_policy import SeveralMoves
from adapt.core.flux.policies.settling import PATIENCE_S, SettlingController
from tests.core.flux.observations import observed

WORKERS, RATE = 4, 20_000


def saturated(owners, speeds, seconds, chance):
    """Statistics of a stage whose slowest worker is the bottleneck; partitions are alike, and tuples come by chance."""
    per_worker = np.bincount(owners, minlength=len(speeds))
    rate = (RATE * speeds / np.maximum(1, per_worker))[per_worker > 0].min()
    tuples = chance.poisson(rate * seconds, len(owners))
    done = np.bincount(owners, tuples, len(speeds))
    busy = np.minimum(1.0, done / (RATE * speeds * seconds))
    return observed((1 - busy) * seconds, owners, tuples, collected_s=np.full(len(speeds), seconds))


def bottleneck(owners, speeds):
    return (np.bincount(owners, minlength=len(speeds)) / speeds).max()


def settled(controller, owners, speeds, seed, seconds=0.15, rounds=200):
    chance = np.random.default_rng(seed)
    moved = []
    for _ in range(rounds):
        moves = controller.plan(saturated(owners, speeds, seconds, chance))
        moved.append(len(moves))
        for move in moves:
            assert owners[move.partition] == move.donor
            owners[move.partition] = move.receiver
    return moved


@pytest.mark.parametrize("slow", [1, 2, 3])
def test_the_stage_ends_near_its_bound_and_then_rests(slow):
    """The several moves alone stop at 1.2."""
    owners = np.repeat(np.arange(WORKERS), 64)
    speeds = np.array([3 / 7] * slow + [1.0] * (WORKERS - slow))
    bound = len(owners) / speeds.sum()
    moved = settled(SettlingController(), owners, speeds, seed=slow)
    assert moved[0] > 0
    assert bottleneck(owners, speeds) <= 1.04 * bound
    assert sum(moved[100:]) <= 12


@given(st.integers(0, 2**20))
def test_nothing_moves_by_chance(seed):
    owners = np.repeat(np.arange(WORKERS), 64)
    assert sum(settled(SettlingController(), owners, np.ones(WORKERS), seed, rounds=12)) == 0


def test_a_stage_that_keeps_up_gains_nothing_by_fine_moves():
    owners = np.array([0] * 11 + [1] * 10)
    seen = observed([0.45, 0.5], owners, np.full(21, 1000))
    controller = SettlingController()
    assert all(len(controller.plan(seen)) == 0 for _ in range(50))


def test_fine_moves_wait_for_statistics():
    owners = np.array([0] * 66 + [1] * 62)
    chance = np.random.default_rng(0)
    controller = SettlingController()
    rounds = int(PATIENCE_S / 0.15)
    for _ in range(rounds):
        assert len(controller.plan(saturated(owners, np.ones(2), 0.15, chance))) == 0
    later = [controller.plan(saturated(owners, np.ones(2), 0.15, chance)) for _ in range(30)]
    first = next(moves for moves in later if moves)
    assert {(move.donor, move.receiver) for move in first} == {(0, 1)}


@pytest.mark.parametrize(("idle", "moves"), [(0.02, True), (0.005, False)])
def test_fine_moves_end_where_all_cpu_is_at_work(idle, moves):
    """A receiver that is idle for a longer time than chance makes it, yet leaves little of all CPU."""
    owners = np.repeat(np.arange(WORKERS), 64)
    seen = observed([0.0, 0.0, 0.0, WORKERS * idle], owners, np.full(len(owners), 10_000))
    controller = SettlingController()
    assert any(controller.plan(seen) for _ in range(10)) is moves


def test_a_collection_takes_time():
    with pytest.raises(UsageError, match="above 0"):
        SettlingController(SeveralMoves(), 0.0)


def test_statistics_before_a_worker_died_do_not_count():
    controller = SettlingController()
    for workers in (4, 3, 4):
        owners = np.resize(np.arange(workers), 60)
        assert len(controller.plan(observed(np.zeros(workers), owners, np.full(60, 50)))) == 0
