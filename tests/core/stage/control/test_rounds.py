from dataclasses import replace

from adapt.core.stage.conditions.arrivals import Drawn
from adapt.core.stage.conditions.growth import Growth
from adapt.core.stage.conditions.settings import Network
from adapt.core.stage.movement.spilling import Memory, MemoryChange
from adapt.core.stage.simulate import Actors, simulate
from tests.core.stage.engine.test_running_stage import small


class Watcher:
    """A controller that keeps what it sees, and moves nothing."""

    def __init__(self, collection_s):
        self._collection_s = collection_s
        self.seen = []

    def collection_s(self, previous):
        return self._collection_s

    def plan(self, observed):
        self.seen.append(observed)
        return ()


def test_a_policy_sees_sizes_limits_and_spilled_input_as_they_were_reported():
    """Reports leave at 0.3 s and arrive at 0.4 s; at 0.35 s worker 0 is left with 600 bytes."""
    of = small(state=Growth(row_bytes=10), network=Network(latency_s=0.1))
    watcher = Watcher(0.2)
    memory = Memory(10**9, (MemoryChange(0, 0.35, 600),))
    simulate(of, Drawn(), 1.2, Actors(watcher, memory))
    first, second, *_ = watcher.seen
    assert first.at_s == 0.4
    assert first.available_bytes.tolist() == [10**9, 10**9]
    assert second.available_bytes.tolist() == [600, 10**9]
    until = simulate(of, Drawn(), 0.3).intervals[-1]
    assert first.state_bytes.sum() == 10 * until.processed
    assert second.on_disk.any()
    assert second.unprocessed[second.on_disk].sum() > 0
    assert (second.unprocessed[~second.on_disk] == 0).all()


def test_a_coarse_idle_clock_rounds_up():
    idle = []
    for clock_s in (0.0, 0.01):
        watcher = Watcher(0.025)
        simulate(replace(small(), seed=3), Drawn(), 0.2, Actors(watcher, idle_clock_s=clock_s))
        idle.append([one.idle_s for one in watcher.seen])
    for exact, coarse in zip(*idle, strict=True):
        assert (coarse >= exact).all()
        assert all(abs(each / 0.01 - round(each / 0.01)) < 1e-9 or each == 0.025 for each in coarse)
