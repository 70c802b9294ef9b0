import pytest

from adapt.core.stage.movement.controller import Move, Moved
from paper.flux.scenarios import FULL, WORKERS, capacity_bound, ping_pongs, unloaded


def test_a_partition_that_comes_back_is_a_ping_pong():
    run = unloaded(0.01).run()
    run.moves.extend(Moved(Move(*move), 0) for move in [(7, 0, 1), (8, 0, 1), (7, 1, 2), (7, 2, 0), (7, 0, 3)])
    assert ping_pongs(run) == 1


def test_the_bound_is_the_cpu_that_is_left():
    assert capacity_bound(0) == FULL
    assert capacity_bound(WORKERS) == pytest.approx(FULL * 3 / 7)
