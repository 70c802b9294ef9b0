"""Compiled event loop of a stage.

One event is pending for each consumer (the end of its work, or the arrival that it waits for) and, where tuples come
by rows, one for each producer (its next row). Producers that are never short of tuples need none: they act when a
connection has room again, which is when their consumer takes a tuple.

Throughout, room in a connection means that no tuple of its producer waits for it. So the credit that a consumer gives
back lets exactly one waiting tuple go, and what is then pulled from the source goes into the pool, or straight through
a connection that has room.

Source: Flux, sections 2.3, 2.4, 4 and 5.1.
"""

from typing import Any

import numpy as np

from adapt.core.compiled import compiled
from adapt.core.stage.engine.kernel.producers import fill_pool
from adapt.core.stage.engine.kernel.service import begin_work, finish_tuple
from adapt.core.stage.records.arrays import Records
from adapt.core.stage.records.codes import (
    BACKLOG_DONE,
    FREE,
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
        Why it returns, and the worker that it is about. `world.now` is the time. The event of that worker is still
        pending: it is seen again at the next call.
    """
    world = worlds[0]
    while True:
        if world.hungry > 0:
            return ROWS_WANTED, NONE
        slot: Any = np.int64(winner_at(world, 1).slot)  # parts are compiled once for each type of number
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
        if worker.backlog != NONE and partition_at(world, worker.backlog).spill_head == NONE and worker.job == 0:
            worker.backlog = NONE
            return BACKLOG_DONE, slot
        begin_work(world, slot, now)
