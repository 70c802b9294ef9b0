"""State of a partition in a worker process: as bytes and back."""

from reality.processes.partition import Partition, unpacked


def test_a_partition_is_the_same_after_its_way() -> None:
    sent = Partition(b"12345")
    for group, number in ((3, 10), (9, 11), (3, 12)):
        sent.add(group, number)
    times_s = iter((1.5, 2.5))
    partition, extracted_s, received = unpacked(*sent.packed(7, lambda: next(times_s)))
    assert (partition, extracted_s, received.fixed, received.keys) == (7, [1.5, 2.5], b"12345", sent.keys)
    assert received.keys[3][:2] == [2, 22]
