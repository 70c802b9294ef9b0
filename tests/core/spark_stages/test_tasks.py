"""What even tasks win, against a stage that runs millisecond by millisecond; causes of a long task."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.spark_stages.tasks import Cause, Task, TimesOfTasks


def ran(lengths, slots):
    """Tasks in order on slots, started one by one as a slot is free; and when the last one ends."""
    now, waiting, running, tasks = 1, list(enumerate(lengths)), {}, {}
    while waiting or running:
        for index in [each for each, end in running.items() if end == now]:
            del running[index]
        while waiting and len(running) < slots:
            index, length = waiting.pop(0)
            running[index], tasks[index] = now + length, (now, now + length)
        now += 1
    return [tasks[index] for index in range(len(lengths))], now - 2


def task(start, end, rows=1, host="h", collection=0):
    return Task(host, start, end, collection, rows, 10 * rows, 0)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(1, 4))
def test_won_is_the_time_of_the_stage_less_that_of_even_tasks(lengths, slots):
    spans, wall = ran(lengths, slots)
    times = TimesOfTasks.of([task(*span) for span in spans])
    assert times.slots == min(slots, len(lengths))
    total = sum(lengths)
    _, even = ran([total] * len(lengths), slots)  # times the number of tasks
    assert times.won_s * 1e3 == pytest.approx(max(0, wall - even / len(lengths)), abs=1e-6)
    assert times.seconds.mean * 1e3 == pytest.approx(total / len(lengths))


@given(st.integers(1, 50), st.integers(1, 12), st.integers(1, 4))
def test_even_tasks_win_nothing_also_if_they_wait_for_other_stages(length, tasks, gap):
    spans = [(1 + at * (length + gap), 1 + at * (length + gap) + length) for at in range(tasks)]
    assert TimesOfTasks.of([task(*span) for span in spans]).won_s == pytest.approx(0)


def test_slots_are_no_more_than_the_cores():
    tasks = [task(1, 11), task(2, 12), task(10, 30)]
    assert [TimesOfTasks.of(tasks, None, cores).slots for cores in (0, 2)] == [3, 2]


@pytest.mark.parametrize(
    ("longest", "others", "cause"),
    [
        (task(1, 101, rows=1000), [task(1, 11, rows=100)] * 5, Cause.DATA),
        (task(1, 101, rows=100), [task(1, 11, rows=100)] * 5, Cause.UNKNOWN),
        (task(1, 101, rows=100, collection=80), [task(1, 11, rows=100)] * 5, Cause.COLLECTION),
        (task(1, 101, 100, "slow"), [task(1, 61, 100, "slow"), *[task(1, 11, 100)] * 5], Cause.HOST),
        (task(1, 101, rows=0), [task(1, 11, rows=0)] * 5, Cause.UNKNOWN),
    ],
)
def test_the_cause_is_what_explains_the_longest_task(longest, others, cause):
    times = TimesOfTasks.of([*others, longest])
    assert times.cause is cause
    assert (times.seconds.longest, times.seconds.largest) == (0.1, 0.1)
