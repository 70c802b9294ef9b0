"""Producers: pull tuples while their buffers have room."""

from typing import Any

import numpy as np

from adapt.core.compiled import fetch_ahead, inlined
from adapt.core.random_bits import GOLDEN, mixed
from adapt.core.stage.engine.kernel.next_event import set_due
from adapt.core.stage.engine.kernel.routing import DRAWN, group_of, random_bits, route_tuple
from adapt.core.stage.records.codes import NONE
from adapt.core.stage.records.finding import group_at, producer_at, row_at, worker_at
from adapt.core.stage.records.queues import FLOW
from adapt.core.stage.records.world import World


@inlined
def fill_pool(world: World, producer_number: int, now: float) -> None:
    """Pull tuples while the buffer has room."""
    producer = producer_at(world, producer_number)
    slot = world.workers + producer_number
    while producer.held < world.pool and producer.free != NONE and producer.capped == 0:
        if world.drawn:
            group = _draw(world, producer_number)
            number = producer.generated
            stamp = now
            cost = DRAWN
        else:
            if world.batched != 0 and producer.admits == 0:
                break
            if producer.row == producer.rows_end:
                if world.horizon <= now:
                    producer.hungry = 1
                    world.hungry += 1
                set_due(world, slot, world.horizon if world.horizon > now else np.inf)
                return
            row = row_at(world, producer.row)
            if row.due > now:
                set_due(world, slot, row.due)
                return
            producer.admits -= world.batched
            producer.row += 1
            group = row.group
            number = row.number
            stamp = row.due
            cost = row.cost
            if stamp == -np.inf:
                stamp = now
            if now > stamp:
                producer.lag = max(producer.lag, now - stamp)
                producer.behind += now - max(stamp, producer.behind_until)
                producer.behind_until = now
        producer.generated += 1
        worker_at(world, producer.host).debt += world.produce
        route_tuple(world, producer_number, group, number, stamp, cost, now)
    if not world.drawn:
        set_due(world, slot, np.inf)
        if world.shared != 0 and producer.free == NONE:
            producer.hungry = 2
            world.hungry += 1
    elif world.pool > 1:
        _expect_draw(world, producer_number)


@inlined
def _draw(world: World, producer_number: int) -> Any:
    """Draw a group by weight, from the producer's random numbers."""
    return group_of(world, random_bits(world, producer_number))


@inlined
def _expect_draw(world: World, producer_number: int) -> None:
    """Prefetch the flow of the next drawn tuple."""
    bits = mixed(producer_at(world, producer_number).random + GOLDEN)
    partition = group_at(world, group_of(world, bits)).partition
    fetch_ahead(world.flow_at, FLOW, producer_number * world.partitions + partition)
