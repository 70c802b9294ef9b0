"""Copying of tuples between places."""

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
    """Make a tuple the current one of a worker."""
    worker.group = taken.group
    worker.partition = partition
    worker.producer = producer
    worker.number = taken.number
    worker.stamp = taken.stamp
    worker.cost = taken.cost
    worker.taken = since


@inlined
def leave_queue(world: Any, connection: Any) -> None:
    """Take a connection's first tuple; return a full packet of credits."""
    connection.first += 1
    if connection.first == world.credits:
        connection.first = 0
    connection.count -= 1
    connection.owed += 1
    if connection.owed == world.packet or connection.count == 0:
        connection.owed = 0


@inlined
def pass_acknowledgement(worker: Any, queue: Any) -> None:
    """Count down the tuples ahead of an acknowledgement."""
    if queue.ack > 0:
        queue.ack -= 1
        if queue.ack == 0:
            worker.acks -= 1
            if worker.acks == 0:
                worker.quiesced = 1
