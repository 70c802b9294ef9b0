"""Barriers of aligned checkpoints.

Source: Carbone et al., "Lightweight asynchronous snapshots for distributed dataflows", 2015.
"""

from adapt.core.compiled import compiled, inlined
from adapt.core.stage.records.arrays import Records
from adapt.core.stage.records.finding import barrier_at, channel_at, connection_at
from adapt.core.stage.records.world import World


@inlined
def leave_channel(world: World, worker: int, producer: int, tuples: int) -> None:
    """Count down the tuples of a channel ahead of its barrier."""
    number = worker * world.workers + producer
    channel = channel_at(world, number)
    if channel.ahead > 0 and tuples > 0:
        channel.ahead = max(0, channel.ahead - tuples)
        if channel.ahead == 0:
            _reach(world, worker, number)


@inlined
def _reach(world: World, worker: int, number: int) -> None:
    """Stop a channel at its barrier; the last barrier of a worker lets all go on."""
    channel_at(world, number).stopped = 1
    barrier = barrier_at(world, worker)
    barrier.missing -= 1
    if barrier.missing == 0:
        for producer in range(world.workers):
            channel_at(world, worker * world.workers + producer).stopped = 0
        world.unaligned -= 1
        world.barriers = world.unaligned > 0
        world.hungry += 1


@compiled
def send_barriers(worlds: Records) -> None:
    """Let every producer send a barrier to every worker, behind the tuples it has."""
    world = worlds[0]
    world.barriers = 1
    world.unaligned = world.workers
    for number in range(world.workers * world.workers):
        channel = channel_at(world, number)
        channel.ahead = connection_at(world, number).count + channel.waiting
    for worker in range(world.workers):
        barrier_at(world, worker).missing = world.workers


@compiled
def arrive_alone(worlds: Records, number: int) -> None:
    """Let the barrier of a channel arrive that had no tuples ahead."""
    world = worlds[0]
    _reach(world, number // world.workers, number)
