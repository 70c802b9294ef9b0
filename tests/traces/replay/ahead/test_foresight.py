"""How long a replay takes: foreseen from parts of known length, against the length of all of it."""

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.arrivals import Chunk, Rows
from adapt.traces.replay.ahead.foresight import Foresight, Length
from adapt.traces.replay.ahead.parts import first_rows, two_rows


class Machine:
    """A machine with known speeds, and its clock."""

    def __init__(self, row_s, tick_s, start_s=0.0):
        self.row_s, self.tick_s, self.start_s = row_s, tick_s, start_s
        self.now_s, self.rows, self.said = 0.0, 0, []

    def of_rows(self, count):
        self.rows += count
        self.now_s += self.start_s + count * self.row_s

    def of_ticks(self, count):
        self.now_s += self.start_s + count * self.tick_s

    def foresees(self, length, times=1.0, allowed=False):
        foresight = Foresight(lambda: self.now_s, self.said.append, allowed)
        foresight.foresee(length, self.of_rows, self.of_ticks, "give --offered", times)
        return self.said


@pytest.mark.parametrize("start_s", [0.0, 0.05, 3.0])
def test_the_estimate_is_the_time_of_all_rows_and_periods_without_that_to_start(start_s):
    machine = Machine(row_s=1e-5, tick_s=1e-3, start_s=start_s)
    (said,) = machine.foresees(Length(9_000_000, 100_000, 2))
    assert said.startswith("the run takes about 3\u202fmin 10\u202fs on this machine")
    assert said.endswith(" (2 cases of 9,000,000 rows and 100,000 control periods)")
    assert machine.rows < 100_000, "a part of the rows is enough"


def test_several_runs_at_once_take_their_share():
    said = Machine(row_s=1e-5, tick_s=0.0).foresees(Length(60_000_000, cases=4), times=0.5)
    assert said == ["the run takes about 5\u202fmin on this machine (4 cases of 60,000,000 rows)"]


def test_a_run_of_less_than_a_minute_says_nothing_and_a_small_one_is_not_measured():
    machine = Machine(row_s=1e-5, tick_s=0.0)
    assert machine.foresees(Length(5_900_000, cases=2)) == []
    assert machine.rows > 0
    small = Machine(row_s=1.0, tick_s=1.0)
    assert small.foresees(Length(400_000, 900, cases=2)) == []
    assert small.rows == 0


def test_a_run_of_more_than_an_hour_has_to_be_asked_for():
    length = Length(2, 36_500_000)
    with pytest.raises(UsageError) as refused:
        Machine(row_s=1e-5, tick_s=1e-4).foresees(length)
    assert str(refused.value) == (
        "the run would take about 1\u202fh on this machine (1 case of 2 rows and 36,500,000 control periods);"
        " give --offered, or give --yes"
    )
    assert refused.value.exit_code == 2
    assert len(Machine(row_s=1e-5, tick_s=1e-4).foresees(length, allowed=True)) == 1


def test_rows_that_take_no_time_are_no_endless_measurement():
    assert Machine(row_s=0.0, tick_s=0.0).foresees(Length(10**12, 10**12)) == []


def stream(due_s):
    groups = np.arange(len(due_s))
    parts = [slice(0, 3), slice(3, 7), slice(7, len(due_s))]
    whole = Chunk(groups, groups % 2, None if due_s is None else np.asarray(due_s, float))
    return Rows(lambda: (whole.taken(part) for part in parts))


def chunks(rows):
    return [(chunk.groups.tolist(), chunk.due_s.tolist()) for chunk in rows.chunks()]


def test_the_first_rows_arrive_in_the_time_given_in_their_own_rhythm():
    rows = stream([0, 1, 3, 4, 8, 9, 10, 11, 12])
    assert chunks(first_rows(rows, 5, 2.0)) == [([0, 1, 2], [0.0, 0.25, 0.75]), ([3, 4], [1.0, 2.0])]
    assert chunks(first_rows(rows, 3, 5.0)) == [([0, 1, 2], [0.0, 1.0, 3.0])], "they are not slowed down"
    assert sum(len(groups) for groups, _ in chunks(first_rows(rows, 100, 5.0))) == 9


def test_the_first_row_twice_is_a_time_with_nothing_to_do():
    assert chunks(two_rows(stream([5, 6, 7, 8]), 60.0)) == [([0, 0], [0.0, 60.0])]
