import numpy as np

from adapt.core.stage.conditions.arrivals import Drawn
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


def test_a_loaded_stage_comes_within_its_bound():
    of = stage(disturbances=(ExternalLoad(0, 0.2, 9.0),), buffer_tuples=64)
    ahead = ahead_of(of, Drawn())
    controller = OptimumController(ahead, 0.02)
    run = simulate(of, Drawn(), 2.0, Actors(controller), interval_s=0.5)
    assert run.moves
    assert 0.95 <= run.intervals[-1].throughput / (controller.found[-1].slowest_s ** -1) <= 1.02
    assert run.intervals[-1].throughput <= 1.02 * ahead.bound_rate(1.5, 2.0)
