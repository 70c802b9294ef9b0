"""Load shedding: the drop probability rises with occupancy."""

from typing import Any

import numpy as np

from adapt.core.compiled import inlined
from adapt.core.random_bits import GOLDEN, mixed, uniform
from adapt.core.stage.engine.kernel.commit import leave_batch
from adapt.core.stage.records.finding import held_at, part_at, refusal_at, worker_at
from adapt.core.stage.records.world import World


@inlined
def sheds(world: World, worker_number: int, now: float) -> Any:
    """Shed the current tuple at random, or buffer it."""
    worker = worker_at(world, worker_number)
    first = worker_number * world.hold
    while worker.held > 0 and held_at(world, first + worker.held_first).since + world.held_for <= now:
        worker.held -= 1
        worker.held_first += 1
        if worker.held_first == world.hold:
            worker.held_first = 0
    bits = mixed(mixed(world.draws + np.uint64(worker.producer)) + np.uint64(worker.number) * GOLDEN)
    if uniform(bits) < part_at(world, worker.held).shed:
        return True
    place = worker.held_first + worker.held
    if place >= world.hold:
        place -= world.hold
    kept = held_at(world, first + place)
    kept.since = now
    kept.partition = worker.partition
    worker.held += 1
    worker.held_most = max(worker.held_most, worker.held)
    return False


@inlined
def count_shed(world: World, worker: Any, now: float) -> None:
    """Count a shed tuple, by worker and by time slot."""
    worker.refused = 0
    worker.shed += 1
    if world.batched != 0:
        leave_batch(world)
    if world.refusals > 0:
        at = min(int((now - world.watched_from) / world.refusal_s), world.refusals - 1)
        refusal_at(world, at).count += 1
