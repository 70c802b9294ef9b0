"""Compiled event loop of a stage.

One event is pending per consumer (the end of its work, or the arrival that it waits for) and, if tuples come from rows,
one per producer (its next row). Producers of a random source need none: they act when a connection has room again,
which is when their consumer takes a tuple.

At any time, a connection with room has no waiting tuples. So a returned credit releases exactly one waiting tuple, and
the tuple then pulled from the source goes into the buffer, or straight through a connection with room.

Source: Flux, sections 2.3, 2.4, 4 and 5.1.
"""

from typing import Any

import numpy as np

from adapt.core.compiled import compiled
from adapt.core.stage.engine.kernel.routing import fill_pool
from adapt.core.stage.engine.kernel.service import begin_work, finish_tuple
from adapt.core.stage.records.arrays import Records
from adapt.core.stage.records.codes import (
    BACKLOG_DONE,
    FREE,
    GROWN,
    IDLE,
    IN_JOB,
    JOB_DONE,
    NONE,
    QUIESCED,
    REACHED,
    ROWS_WANTED,
    SERVING,
    SPILL_FULL,
)
from adapt.core.stage.records.finding import due_at, partition_at, winner_at, worker_at


@compiled
def advance(worlds: Records, until: float) -> tuple[int, int]:
    """Simulate until `until`, or until Python must decide.

    Returns:
        Return code and worker. `world.now` is the time. The event of that worker stays pending for the next call.
    """
    world = worlds[0]
    while True:
        if world.hungry > 0:
            return ROWS_WANTED, NONE
        slot: Any = np.int64(winner_at(world, 1).slot)  # kernels are compiled once per integer type
        now = due_at(world, slot).at
        if now >= until:
            world.now = until
            return REACHED, NONE
        if world.on_disk > 0 and world.spill_free == NONE:
            return SPILL_FULL, NONE
        world.now = now
        if slot >= world.workers:
            fill_pool(world, slot - world.workers, now)
            continue
        worker = worker_at(world, slot)
        if worker.doing == SERVING:
            finish_tuple(world, slot, now)
            worker.doing = FREE
            if worker.quiesced != 0:
                worker.quiesced = 0
                return QUIESCED, slot
        elif worker.doing == IN_JOB:
            worker.busy += now - worker.since
            worker.doing = FREE
            return JOB_DONE, slot
        elif worker.doing == IDLE:
            waited = now - worker.since
            worker.idle += waited
            worker.debt = max(0.0, worker.debt - waited)
            worker.doing = FREE
        if worker.full == 1:
            worker.full = 2
            return GROWN, slot
        if worker.backlog != NONE and partition_at(world, worker.backlog).spill_head == NONE and worker.job == 0:
            worker.backlog = NONE
            return BACKLOG_DONE, slot
        begin_work(world, slot, now)
