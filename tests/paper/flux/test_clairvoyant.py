import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.arrivals import Chunk, Drawn, Rows
from adapt.core.stage.conditions.faults import ExternalLoad, SlowDown
from adapt.core.stage.conditions.settings import StageSettings, even_groups, even_owners
from adapt.core.stage.movement.spilling import Memory, MemoryChange
from adapt.core.stage.simulate import Actors, simulate
from paper.flux.clairvoyant import OptimumController, ahead_of


def stage(**changes):
    return StageSettings(4, even_owners(4, 8), even_groups(64, 32), state_tuples=100, **changes)


def test_load_is_known_before_it_comes():
    of = stage(disturbances=(ExternalLoad(1, 2.0, 3.0), SlowDown(2, 0.5, 1.5, 0.0)))
    ahead = ahead_of(of, Drawn())
    np.testing.assert_allclose(ahead.demand(0.0, 1.0).speeds, [1, 1, 0.5, 1])
    np.testing.assert_allclose(ahead.demand(1.5, 2.5).speeds, [1, (1 + 3 / 7) / 2, 1, 1])


def test_memory_is_known_before_it_goes():
    ahead = ahead_of(stage(), Drawn(), Memory(1e6, (MemoryChange(3, 2.0, 5e5), MemoryChange(3, 4.0, 8e5))))
    np.testing.assert_array_equal(ahead.demand(0.0, 1.0).room, [1e6] * 4)
    np.testing.assert_array_equal(ahead.demand(1.0, 2.0).room, [1e6] * 3 + [5e5])
    np.testing.assert_array_equal(ahead.demand(3.5, 4.5).room, [1e6] * 3 + [8e5])


@pytest.mark.parametrize("rows_a_chunk", [3, 100])
def test_rows_count_in_the_period_in_which_they_are_due(rows_a_chunk):
    of = stage()
    due = np.array([0.1, 0.2, 0.3, 2.5, 2.6, 2.7, 2.8])
    groups = np.array([0, 32, 1, 2, 2, 2, 3])
    cost = np.array([1, 2, 3, 4, 5, 6, 5.0])

    def chunks():
        for at in range(0, 7, rows_a_chunk):
            part = slice(at, at + rows_a_chunk)
            yield Chunk(groups[part], np.zeros(len(groups[part]), int), due[part], cost[part])

    work = ahead_of(of, Rows(chunks)).work_s
    assert work.shape == (3, 32)
    np.testing.assert_allclose(work[0, :3], [1, 1, 0])
    np.testing.assert_allclose(work[1], 0)
    np.testing.assert_allclose(work[2, :4], [0, 0, 15 / 4, 5 / 4])


def test_the_undisturbed_stage_is_bound_by_its_cpu():
    assert ahead_of(stage(), Drawn()).bound_rate(0, 10) == pytest.approx(4 / 45.5e-6)


def test_a_loaded_stage_comes_within_its_bound():
    of = stage(disturbances=(ExternalLoad(0, 0.2, 9.0),), buffer_tuples=64)
    ahead = ahead_of(of, Drawn())
    controller = OptimumController(ahead, 0.02)
    run = simulate(of, Drawn(), 2.0, Actors(controller), interval_s=0.5)
    assert run.moves
    assert 0.95 <= run.intervals[-1].throughput / (controller.found[-1].slowest_s ** -1) <= 1.02
    assert run.intervals[-1].throughput <= 1.02 * ahead.bound_rate(1.5, 2.0)


def test_what_knows_nothing_is_refused():
    with pytest.raises(UsageError, match="above 0"):
        OptimumController(ahead_of(stage(), Drawn()), 0.0)
    with pytest.raises(UsageError, match="period"):
        ahead_of(stage(), Drawn(), period_s=0.0)
