"""Windows that no worker can hold are refused before anything is simulated."""

from dataclasses import replace

import numpy as np
import pytest

from adapt.core.errors import BadInput
from adapt.core.stage.conditions.arrivals import Chunk, Rows
from adapt.core.stage.conditions.growth import Growth, Join
from adapt.core.stage.movement.spilling import Memory, MemoryChange, check_room
from adapt.core.stage.simulate import simulate
from tests.core.stage.conditions.test_growth import MODELS, PLAIN, Stream, counted


def least(growth, stream):
    """Most that a partition needs after any row, by counting the rows of its window."""
    found = 0
    for row in range(0, len(stream.times), 7):
        alive = np.arange(row + 1)
        if growth.window is not None:
            alive = alive[stream.times[alive] >= stream.times[row] - growth.window]
        found = max(found, counted(growth, stream, alive).max())
    return int(found)


@pytest.mark.parametrize("growth", MODELS)
def test_what_is_needed_is_the_count_of_a_window(growth):
    stream = Stream.of()
    needed = least(growth, stream)
    settings = replace(PLAIN, state=growth)
    check_room(stream.rows().chunks(), settings, Memory(needed * 1.1))
    with pytest.raises(BadInput, match=rf"by row [\d,]+ partition \d+ needs more than {needed - 1:,} bytes .* memory"):
        check_room(stream.rows().chunks(), settings, Memory(5.0, (MemoryChange(1, 0.5, needed - 1),)))


def test_a_run_needs_at_least_as_much():
    stream, join = Stream.of(), Join(300_000)
    run = simulate(replace(PLAIN, join=join), stream.rows(), None, interval_s=0.001)
    settings = replace(PLAIN, join=join)
    with pytest.raises(BadInput, match=r"in a window of 300.ms, the most that any worker has"):
        check_room(stream.rows().chunks(), settings, Memory(4000.0))
    check_room(stream.rows().chunks(), settings, Memory(float(max(one.state_in_memory.max() for one in run.intervals))))


def test_a_row_of_negative_size_is_refused():
    rows = Rows(lambda: iter([Chunk(np.zeros(3, int), np.zeros(3, int), sizes=np.array([5, -3, 2]))]))
    with pytest.raises(BadInput, match="a row has -3 bytes, but state cannot shrink as rows are added; fix column"):
        check_room(rows.chunks(), replace(PLAIN, state=Growth(sized=True)), Memory())
