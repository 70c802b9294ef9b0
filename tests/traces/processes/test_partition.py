"""State of a partition in a worker process: as bytes and back."""

import pytest

from adapt.traces.processes.partition import Partition, unpacked


def count(state, group, number, cost_s):
    return {"seen": (state or {"seen": 0})["seen"] + 1}


def test_a_partition_is_the_same_after_its_way() -> None:
    sent = Partition(b"12345")
    for group, number in ((3, 10), (9, 11), (3, 12)):
        sent.process(count, group, number, 0.0)
    times_s = iter((1.5, 2.5))
    partition, extracted_s, received = unpacked(*sent.packed(7, lambda: next(times_s)))
    assert (partition, extracted_s, received.fixed, received.keys) == (7, [1.5, 2.5], b"12345", sent.keys)
    assert received.keys[3][:2] == [2, 22]
    assert received.keys[3][3] == {"seen": 2}


def test_the_digest_depends_on_the_order() -> None:
    one, other = Partition(b""), Partition(b"")
    for number in (1, 2):
        one.process(count, 0, number, 0.0)
        other.process(count, 0, 3 - number, 0.0)
    assert one.keys[0][:2] == other.keys[0][:2]
    assert one.keys[0][2] != other.keys[0][2]


def test_a_state_that_is_no_json_cannot_be_sent() -> None:
    sent = Partition(b"")
    sent.process(lambda *_: {1, 2}, 0, 0, 0.0)
    with pytest.raises(TypeError):
        sent.packed(0, float)
