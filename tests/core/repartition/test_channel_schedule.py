"""Schedules of channel counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.repartition.decisions import Schedule

HOUR = 3_600_000_000


def test_a_step_holds_from_its_time_until_the_next():
    schedule = Schedule.parse("0h:8,6h:12,1d:4")
    at = {0: 8, 6 * HOUR - 1: 8, 6 * HOUR: 12, 24 * HOUR - 1: 12, 24 * HOUR: 4, 10**17: 4}
    assert {offset: schedule.channels_at(offset) for offset in at} == at


def test_a_number_alone_holds_all_the_time():
    assert Schedule.parse("8") == Schedule.fixed(8)
    assert Schedule.fixed(8).channels_at(10**17) == 8


@given(st.dictionaries(st.integers(1, 10**16), st.integers(1, 1000), max_size=5), st.integers(1, 1000))
def test_a_schedule_reads_back_as_it_was_written(later, first):
    schedule = Schedule(((0, first), *sorted(later.items())))
    assert Schedule.parse(str(schedule)) == schedule


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1h:8", "must start at 0h"),
        ("0h:8,2h:9,2h:10", "got 2h after 2h"),
        ("0h:8,3h:9,2h:10", "got 2h after 3h"),
        ("0h:0", "from 1 to 2147483647 (got 0)"),
        ("0", "from 1 to 2147483647 (got 0)"),
        ("0h:-3", "'-3'"),
        ("0h:eight", "'eight'"),
        ("0h:8,12", "'12' has no time"),
        ("0h:8,", "'' has no time"),
        ("1:8", "'1:8': 1 needs a unit"),
        ("", "''"),
        ("2.5", "'2.5'"),
        ("99999999999", "from 1 to 2147483647"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_with_the_reason(text, told):
    with pytest.raises(UsageError) as refused:
        Schedule.parse(text)
    assert told in str(refused.value)


def test_a_schedule_without_steps_is_refused():
    with pytest.raises(UsageError, match="at least one"):
        Schedule(())
