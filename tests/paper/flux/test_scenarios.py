import numpy as np
import pytest

from adapt.core.stage.movement.controller import Move, Moved
from paper.flux.scenarios import FULL, WORKERS, Drift, capacity_bound, few_hot, mixed, ping_pongs, unloaded


def test_a_partition_that_comes_back_is_a_ping_pong():
    run = unloaded(0.01).run()
    run.moves.extend(Moved(Move(*move), 0) for move in [(7, 0, 1), (8, 0, 1), (7, 1, 2), (7, 2, 0), (7, 0, 3)])
    assert ping_pongs(run) == 1


def test_a_drifting_stream_can_be_asked_for_again_and_its_hot_keys_change():
    drift = Drift(held_s=1.0)
    stream = drift.stream(600_000, seed=3)
    first, again = (list(stream.chunks()) for _ in range(2))
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.groups, other.groups)
    hottest = [set(np.argsort(-np.bincount(chunk.groups))[:10].tolist()) for chunk in first]
    assert 0 < len(hottest[0] & hottest[1]) < 10
    shares = np.sort(np.bincount(first[0].groups) / len(first[0].groups))
    assert shares[-1] < 1 / WORKERS  # no key alone is too much for a worker


def test_the_hottest_worker_is_among_those_that_are_loaded():
    scenario = few_hot(8, seed=2)
    stage = scenario.settings
    by_worker = np.bincount(stage.owners[stage.partition_of], scenario.source.shares, WORKERS)
    loaded = {one.worker for one in stage.disturbances}
    assert len(loaded) == 8
    assert int(np.argmax(by_worker)) in loaded


def test_mixed_disturbances_are_of_different_workers():
    scenario = mixed(4, 3, seed=5)
    loaded = {one.worker for one in scenario.settings.disturbances}
    short = {change.worker for change in scenario.memory.changes}
    assert len(loaded) == 4
    assert len(short) == 3
    assert not loaded & short


def test_the_bound_is_the_cpu_that_is_left():
    assert capacity_bound(0) == FULL
    assert capacity_bound(WORKERS) == pytest.approx(FULL * 3 / 7)
