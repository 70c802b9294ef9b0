"""Spilled tuples of partitions on disk."""

from typing import Any

from adapt.core.compiled import inlined
from adapt.core.stage.engine.kernel.tuples import take_in_hand, write_tuple
from adapt.core.stage.records.codes import NONE, UNUSED
from adapt.core.stage.records.finding import partition_at, spilled_at
from adapt.core.stage.records.world import World


@inlined
def spill_tuple(world: World, worker: Any, partition: Any) -> None:
    """Append the current tuple to the spill of its partition."""
    place = world.spill_free
    written = spilled_at(world, place)
    world.spill_free = written.link
    write_tuple(written, worker.group, worker.number, worker.stamp, worker.cost)
    written.producer = worker.producer
    written.taken = worker.taken
    written.link = NONE
    if partition.spill_head == NONE:
        partition.spill_head = place
    else:
        spilled_at(world, partition.spill_tail).link = place
    partition.spill_tail = place
    partition.spilled += 1


@inlined
def take_spilled(world: World, worker: Any) -> None:
    """Take the next spilled tuple of the backlog."""
    partition = partition_at(world, worker.backlog)
    place = partition.spill_head
    taken = spilled_at(world, place)
    partition.spill_head = taken.link
    partition.spilled -= 1
    partition.in_flight += 1
    taken.link = world.spill_free
    world.spill_free = place
    take_in_hand(worker, taken, worker.backlog, taken.producer, taken.taken)
    taken.number = UNUSED
