"""A tuple as it goes from place to place."""

from typing import Any

from adapt.core.compiled import inlined


@inlined
def write_tuple(record: Any, group: int, number: int, stamp: float, cost: float) -> None:
    record.group = group
    record.number = number
    record.stamp = stamp
    record.cost = cost


@inlined
def take_in_hand(worker: Any, taken: Any, partition: int, producer: int, since: float) -> None:
    """A tuple becomes the one at hand at a worker, whose consumer took it at a time."""
    worker.group = taken.group
    worker.partition = partition
    worker.producer = producer
    worker.number = taken.number
    worker.stamp = taken.stamp
    worker.cost = taken.cost
    worker.taken = since


@inlined
def pass_acknowledgement(worker: Any, queue: Any) -> None:
    """One tuple less is ahead of the acknowledgement in a connection or line; the last one quiesces the worker."""
    if queue.ack > 0:
        queue.ack -= 1
        if queue.ack == 0:
            worker.acks -= 1
            if worker.acks == 0:
                worker.quiesced = 1
