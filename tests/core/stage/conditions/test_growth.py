"""State that grows with what is processed, and shrinks as it expires."""

import re
from dataclasses import dataclass, replace

import numpy as np
import pytest

from adapt.core.errors import BadInput, UsageError
from adapt.core.stage.conditions.arrivals import Chunk, Drawn, Rows
from adapt.core.stage.conditions.faults import Crash, FaultSchedule
from adapt.core.stage.conditions.growth import Growth, Join
from adapt.core.stage.conditions.settings import StageSettings, even_groups, even_owners
from adapt.core.stage.movement.spilling import Memory
from adapt.core.stage.simulate import Actors, assemble, simulate
from tests.core.stage.movement.test_protocol import AnyMoves

GROUPS, ROWS, SPAN_S, WINDOW_S = 500, 6000, 2.0, 0.3
PLAIN = StageSettings(4, even_owners(4, 5), even_groups(GROUPS, 20), buffer_tuples=40)


class SomeMoves(AnyMoves):
    """A controller that asks for any moves, some ten times a second."""

    def collection_s(self, previous):
        return 50 * super().collection_s(previous)


@dataclass(frozen=True)
class Stream:
    """Rows of skewed groups; half of the time there is more of them than workers can process."""

    groups: np.ndarray
    due_s: np.ndarray
    sizes: np.ndarray
    seed: int

    @classmethod
    def of(cls, seed=0):
        chance = np.random.default_rng(seed)
        due_s = np.sort(chance.random(ROWS) * SPAN_S)
        return cls((chance.random(ROWS) ** 2 * GROUPS).astype(np.int64), due_s, chance.integers(0, 400, ROWS), seed)

    @property
    def times(self):
        return np.rint(1e6 * self.due_s).astype(np.int64)

    def rows(self, chunk=700):
        chance = np.random.default_rng(self.seed)
        producers = chance.integers(0, 4, ROWS)
        cost_s = np.where(self.due_s % 1 < 0.5, 1.5e-3, 1e-4)
        columns = self.groups, producers, self.due_s, cost_s

        def chunks():
            for first in range(0, ROWS, chunk):
                part = slice(first, first + chunk)
                cut = (column[part] for column in columns)
                yield Chunk(*cut, sides=self.sizes[part] % 2, times=self.times[part], sizes=self.sizes[part])

        return Rows(chunks)

    def alive(self, journal, now_s, window, born=-1.0):
        """Rows in the state by what was processed and what has arrived alone, of those processed since a time."""
        done = np.zeros(ROWS, bool)
        done[journal["number"]] = True
        waiting = np.flatnonzero((self.due_s <= now_s) & ~done)
        arrived = np.count_nonzero(self.due_s <= now_s)
        watermark = self.times[waiting[0] if len(waiting) else max(0, arrived - 1)]
        kept = journal["number"][journal["at"] > born]
        return kept if window is None else kept[self.times[kept] >= watermark - window]


MODELS = (
    Growth(group_bytes=64, window=int(WINDOW_S * 1e6)),
    Growth(group_bytes=10, row_bytes=80, window=int(WINDOW_S * 1e6)),
    Growth(row_bytes=1, sized=True, window=int(WINDOW_S * 1e6)),
    Growth(group_bytes=3, sized=True),
    Growth(group_bytes=64),
    Growth(row_bytes=80, rows_per_group=5),
)


def counted(growth, stream, alive):
    """State by partition of rows that are alive."""
    rows = np.bincount(stream.groups[alive], minlength=GROUPS)
    kept = np.minimum(rows, growth.rows_per_group) if growth.rows_per_group else rows
    bytes_ = growth.group_bytes * (rows > 0) + growth.row_bytes * kept
    if growth.sized:
        bytes_ = bytes_ + np.bincount(stream.groups[alive], stream.sizes[alive], GROUPS)
    return np.bincount(PLAIN.partition_of, bytes_, 20).astype(int)


@pytest.mark.parametrize("growth", MODELS)
def test_at_1000_times_state_is_that_of_an_independent_count(growth):
    """While partitions move, and some are on disk."""
    stream = Stream.of()
    memory = Memory(
        250_000 if growth.sized else 20_000, disk_bytes_per_s=1e8, seek_s=1e-4, seek_sd_s=4e-6, quantum_s=0.01
    )
    one = assemble(replace(PLAIN, state=growth), stream.rows(), Actors(SomeMoves(1), memory), journal=ROWS)
    shown = []
    for now_s in np.linspace(0.004, 4.0, 1000):
        one.stage.run(float(now_s))
        journal = one.stage.arrays["entry"][: int(one.stage.arrays.world["journalled"])]
        sizes = one.stage.state_bytes()
        np.testing.assert_array_equal(sizes, counted(growth, stream, stream.alive(journal, now_s, growth.window)))
        shown.append(int(sizes.sum()))
    assert one.stage.drained
    assert 0 < shown[50] < max(shown)
    if growth.window is not None:
        assert np.count_nonzero(np.diff(shown) < 0) > 50
    assert len({moved.state_bytes for moved in one.movement.log}) > 10


def test_what_is_in_memory_stays_within_the_limit_but_for_what_is_being_written():
    growth = Growth(row_bytes=80)
    memory = Memory(60_000, disk_bytes_per_s=1e8, seek_s=1e-4, seek_sd_s=4e-6, quantum_s=0.01)
    run = simulate(replace(PLAIN, state=growth), Stream.of().rows(), None, Actors(memory=memory), interval_s=0.02)
    assert run.census.processed == ROWS
    largest = max((one.state_in_memory + one.state_on_disk).max() for one in run.intervals)
    assert max(one.state_in_memory.max() for one in run.intervals) <= 60_000 + largest / 5
    assert max(one.on_disk for one in run.intervals) > 0
    assert run.intervals[0].state_in_memory.sum() < 10_000 < run.intervals[-1].state_in_memory.sum()


def test_state_lost_in_a_crash_begins_anew():
    growth, crash_s = Growth(row_bytes=80, window=int(WINDOW_S * 1e6)), 0.3
    stream, faults = Stream.of(), FaultSchedule((Crash(0, crash_s),), 0.05)
    one = assemble(replace(PLAIN, state=growth), stream.rows(), Actors(faults=faults), journal=ROWS)
    one.stage.run(0.34)
    before = one.stage.state_bytes().copy()
    one.stage.run(0.4)
    journal = one.stage.arrays["entry"][: int(one.stage.arrays.world["journalled"])]
    assert one.recovery.reports[0].lost_state_bytes == before[:5].sum() > 0
    reborn = journal["number"][(journal["at"] > 0.35) & (journal["partition"] < 5)]
    assert one.stage.state_bytes()[:5].sum() == 80 * len(reborn) > 0
    one.stage.run(3.0)
    assert one.stage.state_bytes().min() >= 0


def test_a_join_keeps_its_answers_with_memory_limits_and_with_standby():
    stream, join = Stream.of(), Join(int(WINDOW_S * 1e6), 1e-6)
    settings = replace(PLAIN, join=join)
    plain = simulate(settings, stream.rows())
    memory = Memory(25_000, disk_bytes_per_s=1e8, seek_s=1e-4, seek_sd_s=4e-6, quantum_s=0.01)
    short = simulate(settings, stream.rows(), None, Actors(SomeMoves(2), memory))
    assert max(one.on_disk for one in short.intervals) > 0
    faults = FaultSchedule((Crash(1, 0.3),), 0.02)
    kept = simulate(settings, stream.rows(), None, Actors(SomeMoves(3), faults=faults, standby=True))
    assert kept.crashes[0].promoted > 0
    assert {(one.answers, one.pairs) for one in (plain, short, kept)} == {(plain.answers, plain.pairs)}
    assert plain.answers > 1000


def test_a_run_ends_where_no_worker_can_hold_a_partition():
    run = simulate(replace(PLAIN, join=Join(10**6)), Stream.of().rows(), None, Actors(memory=Memory(3_000)))
    assert re.match(r"partition \d+ has grown to [\d,]+ bytes by .* give workers more memory", run.failed)
    assert 0 < run.census.processed < ROWS


@pytest.mark.parametrize("given", [{"group_bytes": -1}, {"row_bytes": -5}, {"window": -1}, {"rows_per_group": -2}])
def test_a_state_below_zero_is_refused(given):
    with pytest.raises(UsageError, match="must be at least 0"):
        Growth(**given)


def test_what_does_not_go_together_is_refused():
    with pytest.raises(UsageError, match="not both"):
        Growth(row_bytes=1, window=5, rows_per_group=3)
    with pytest.raises(UsageError, match="omit state"):
        replace(PLAIN, join=Join(5), state=Growth())
    with pytest.raises(UsageError, match="random source"):
        assemble(replace(PLAIN, state=Growth(row_bytes=1, window=5)), Drawn())
    lacking = Rows(lambda: iter([Chunk(np.zeros(3, int), np.zeros(3, int))]))
    for growth in (Growth(window=5), Growth(sized=True)):
        with pytest.raises(BadInput, match="for every row"):
            simulate(replace(PLAIN, state=growth), lacking)
