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
def take_in_hand(site: Any, taken: Any, partition: int, producer: int, since: float) -> None:
    """A tuple becomes the one at hand at a site, whose consumer took it at a time."""
    site.group = taken.group
    site.partition = partition
    site.producer = producer
    site.number = taken.number
    site.stamp = taken.stamp
    site.cost = taken.cost
    site.taken = since


@inlined
def pass_acknowledgement(site: Any, queue: Any) -> None:
    """One tuple less is ahead of the acknowledgement in a connection or line; the last one quiesces the site."""
    if queue.ack > 0:
        queue.ack -= 1
        if queue.ack == 0:
            site.acks -= 1
            if site.acks == 0:
                site.quiesced = 1
