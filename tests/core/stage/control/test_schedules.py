from math import inf

import pytest

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.faults import BURST_S, SLEEP_S, ExternalLoad, SlowDown
from adapt.core.stage.control.schedules import external_loads, memory_of_workers, slow_downs
from adapt.core.stage.movement.spilling import MemoryChange


def test_loads_are_of_workers_from_one_time_to_another():
    assert external_loads(["3@5s-60s"], 8) == [ExternalLoad(3, 5.0, 60.0)]
    assert external_loads(["1,4@500ms", "0@0-1s:200us/10us"], 8) == [
        ExternalLoad(1, 0.5, inf),
        ExternalLoad(4, 0.5, inf),
        ExternalLoad(0, 0.0, 1.0, 200e-6, 10e-6),
    ]
    assert [one.worker for one in external_loads(["0:2@1s", "all@2s-3s"], 4)] == [0, 1, 2, 0, 1, 2, 3]
    assert external_loads(["3@5s"], 8)[0].burst_s == BURST_S
    assert external_loads(["3@5s"], 8)[0].sleep_s == SLEEP_S


def test_slow_workers_keep_a_part_of_their_speed():
    assert slow_downs(["3@5s-60s:50%", "1@2s-3s:0%"], 4) == [SlowDown(3, 5.0, 60.0, 0.5), SlowDown(1, 2.0, 3.0, 0.0)]


def test_memory_is_that_of_all_workers_and_changes():
    assert memory_of_workers([], 4) == (None, [])
    assert memory_of_workers(["1GB", "0@5s:512MB"], 4) == (1e9, [MemoryChange(0, 5.0, 512e6)])


@pytest.mark.parametrize(
    ("read", "text", "told"),
    [
        (external_loads, "9@5s", "load '9@5s': workers run from 0 to 3 (got 9)"),
        (external_loads, "0:4@5s", "workers run from 0 to 3 (got 4)"),
        (external_loads, "x@5s", "(got 'x')"),
        (external_loads, "3", "load takes a schedule such as 3@5s-60s"),
        (external_loads, "3@", "load takes a schedule"),
        (external_loads, "3@5", "5 needs a unit"),
        (external_loads, "3@5s-4s", "ends before it begins"),
        (external_loads, "3@5s:100us", "load needs burst and sleep"),
        (slow_downs, "3@5s", "slow needs the remaining speed"),
        (slow_downs, "3@5s:half", "slow needs the remaining speed"),
        (memory_of_workers, "3@5s-6s:1GB", "memory needs one time and one size"),
        (memory_of_workers, "3@5s", "memory needs one time and one size"),
        (memory_of_workers, "much", "'much' is not a size"),
        (memory_of_workers, "3@5s:1GB", "memory needs an initial limit"),
    ],
)
def test_what_is_not_written_like_this_is_refused(read, text, told):
    with pytest.raises(UsageError) as refused:
        read([text], 4)
    assert told in str(refused.value)
