"""Growth and expiry of state, and spilled tuples on disk."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.stage.engine.kernel.connections import take_in_hand, write_tuple
from adapt.core.stage.records.arrays import (
    NONE,
    UNUSED,
    Records,
    group_at,
    joined_at,
    linked_at,
    live_at,
    pair_at,
    partition_at,
    spilled_at,
    state_at,
    worker_at,
)
from adapt.core.stage.records.world import World


@inlined
def grow(world: World, worker: Any) -> None:
    """Add the current tuple to the state of its group."""
    live = live_at(world, worker.group)
    if world.keeps > 0 and live.rows == world.keeps:
        return
    grown: Any = np.int64(world.row_bytes)
    if world.ranked != 0:
        row = joined_at(world, worker.number & world.joined_last)
        if row.list == NONE:
            return
        row.held = 1
        if world.sized != 0:
            grown += linked_at(world, worker.number & world.joined_last).size
    if live.rows == 0:
        grown += world.group_bytes
    live.rows += 1
    state_at(world, worker.partition).bytes += grown
    _take_room(worker, grown)
    if world.standby != 0:
        twin = pair_at(world, worker.partition).twin
        if twin != NONE:
            _take_room(worker_at(world, twin), grown)


@inlined
def _take_room(worker: Any, grown: int) -> None:
    worker.room -= grown
    if worker.room < 0 and worker.full == 0:
        worker.full = 1


@compiled
def append_rows(
    worlds: Records, first: int, times: NDArray[np.int64], lists: NDArray[np.int64], sizes: NDArray[np.int64]
) -> None:
    """Write rows that are not in the state yet, by rank."""
    world = worlds[0]
    linked = world.sized != 0 or world.joins != 0
    for at in range(len(times)):
        place = (first + at) & world.joined_last
        row = joined_at(world, place)
        row.time = times[at]
        row.list = lists[at]
        row.held = 0
        if linked:
            more = linked_at(world, place)
            more.link = NONE
            more.size = sizes[at]


@compiled
def move_rows(old: Records, new: Records, first: int, end: int) -> None:
    """Copy rows of these ranks into a larger table."""
    for rank in range(first, end):
        new[rank & (len(new) - 1)] = old[rank & (len(old) - 1)]


@compiled
def expire(worlds: Records, earliest: int, end: int) -> None:
    """Remove rows before a time from the state.

    `end` is the rank after the last known row.
    """
    world = worlds[0]
    while world.expired < end:
        place = world.expired & world.joined_last
        row = joined_at(world, place)
        if row.time >= earliest:
            return
        world.expired += 1
        if row.held == 0:
            continue
        group: Any = row.list >> 1
        live = live_at(world, group)
        state = state_at(world, group_at(world, group).partition)
        live.rows -= 1
        state.bytes -= world.row_bytes
        if world.sized != 0:
            state.bytes -= linked_at(world, place).size
        if live.rows == 0:
            state.bytes -= world.group_bytes


@compiled
def lose(worlds: Records, partition: int, end: int) -> None:
    """Mark the rows of a partition as lost; `end` as in `expire`."""
    world = worlds[0]
    for rank in range(world.expired, end):
        row = joined_at(world, rank & world.joined_last)
        if row.list != NONE and group_at(world, row.list >> 1).partition == partition:
            row.held = 0


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
