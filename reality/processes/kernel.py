"""Compiled parts of the driver of processes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined, load
from adapt.core.stage.engine.kernel.connections import leave_queue, pass_acknowledgement, send_waiting, take_in_hand
from adapt.core.stage.engine.kernel.orders import halt, pause, refill, restart, resume, schedule
from adapt.core.stage.engine.kernel.routing import commit, fill_pool
from adapt.core.stage.records.arrays import (
    NONE,
    Records,
    connection_at,
    due_at,
    partition_at,
    queued_at,
    service_at,
    worker_at,
)
from adapt.core.stage.records.world import World
from reality.processes.records import DONE, FACTOR


@compiled
def produce(worlds: Records, now: float) -> float:
    """Let producers pull due rows; returns the next due time."""
    world = worlds[0]
    world.now = now
    soonest = np.inf
    for producer in range(world.workers):
        if due_at(world, world.workers + producer).at <= now:
            fill_pool(world, producer, now)
        soonest = min(soonest, due_at(world, world.workers + producer).at)
    return soonest


@compiled
def unsent(worlds: Records, worker_number: int, sent: NDArray[np.int32], out: Records) -> int:
    """Collect unsent rows of a worker; returns their number.

    Args:
        sent: Rows of each connection that were sent, updated; by worker, then producer.
    """
    world = worlds[0]
    worker = worker_at(world, worker_number)
    rows = 0
    for producer in range(world.workers):
        number = worker_number * world.workers + producer
        connection = connection_at(world, number)
        for passed in range(sent[number], connection.count):
            row = queued_at(world, number * world.credits + (connection.first + passed) % world.credits)
            cost = row.cost
            if cost < 0:
                cost = service_at(world, worker.cursor).seconds
                worker.cursor = (worker.cursor + 1) & (world.services - 1)
            to = out[rows]
            to.partition = row.partition
            to.group = row.group
            to.producer = producer
            to.number = row.number
            to.cost = cost
            rows += 1
        sent[number] = connection.count
    return rows


@compiled
def finish(worlds: Records, worker_number: int, done: Records, sent: NDArray[np.int32], totals: Records) -> int:
    """Account for the rows that a worker has processed, in their order.

    Args:
        sent: As in `unsent`.
        totals: State that each key must have, updated with the rows that are committed; shape (groups,).

    Returns:
        The first row that was not expected next; -1 if all were.
    """
    world = worlds[0]
    last = world.last
    for at in range(len(done)):
        row = done[at]
        producer: Any = np.int64(row.producer)
        partition: Any = np.int64(row.partition)
        if not _finish_one(world, worker_number, producer, partition, row, sent, totals):
            return at
        last = max(last, world.last)
        world.last = last
    return -1


@inlined
def _finish_one(
    world: World,
    worker_number: int,
    producer: int,
    partition: int,
    row: Any,
    sent: NDArray[np.int32],
    totals: Records,
) -> bool:
    """Take the next row of a connection, return its credit and commit it."""
    number = worker_number * world.workers + producer
    connection = connection_at(world, number)
    queued = queued_at(world, number * world.credits + connection.first)
    if connection.count == 0 or queued.number != row.number or queued.partition != partition:
        return False
    worker = worker_at(world, worker_number)
    take_in_hand(worker, queued, partition, producer, row.taken)
    leave_queue(world, connection)
    sent[number] -= 1
    pass_acknowledgement(worker, connection)
    if connection.owed == 0 and connection.turn != NONE:  # before anything fills a pool, which would overtake
        send_waiting(world, producer, worker_number, world.now)
        fill_pool(world, producer, world.now)
    record = partition_at(world, partition)
    record.in_flight -= 1
    record.processed += 1
    _total(totals, worker.group, row.number)
    commit(world, worker, worker_number, 0, row.done)
    return True


@inlined
def _total(totals: Records, group: int, number: int) -> None:
    """Add a row to the state that its key must have."""
    total = totals[group]
    total.count += 1
    total.sum += number
    total.digest = total.digest * np.uint64(FACTOR) + np.uint64(number)


def load_kernels(worlds: Records, sent: NDArray[np.int32], room: Records, totals: Records) -> None:
    """Load all kernels of the driver before rows are due.

    Args:
        sent: Rows of each connection that were sent.
        room: Room for rows to send.
        totals: State that each key must have.
    """
    done = np.frombuffer(bytes(DONE.itemsize), DONE)  # read-only, as in a report
    for kernel, arguments in (
        (produce, (0.0,)),
        (unsent, (0, sent, room)),
        (finish, (0, done, sent, totals)),
        (refill, ()),
        (pause, (0,)),
        (restart, (0, 0)),
        (halt, (0,)),
        (resume, (0, 0)),
        (schedule, (0, 0.0)),
    ):
        load(kernel, worlds, *arguments)
