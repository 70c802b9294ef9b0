"""Two stages in a row, whose consumers share the CPU of their site, as two worlds that advance together.

What is made of a tuple of the first is routed by the producer of the second at the same site.
"""

import math
from typing import Any

import numpy as np

from adapt.core.compiled import compiled, inlined
from adapt.core.random_bits import GOLDEN, MIX1, mixed, uniform
from adapt.core.stage.engine.kernel.next_event import set_due
from adapt.core.stage.engine.kernel.producers import fill_pool
from adapt.core.stage.engine.kernel.routing import DRAWN, group_of, route_tuple
from adapt.core.stage.engine.kernel.service import begin_work, finish_tuple
from adapt.core.stage.records.arrays import Records
from adapt.core.stage.records.codes import (
    BLOCKED,
    FREE,
    IDLE,
    IN_JOB,
    JOB_DONE,
    NONE,
    QUIESCED,
    REACHED,
    ROWS_WANTED,
    SERVING,
)
from adapt.core.stage.records.finding import cpu_at, due_at, producer_at, site_at, window_at, winner_at


@compiled
def advance_two(worlds: Records, until: float) -> tuple[int, int, int]:
    """As `advance`, for two stages in a row. A CPU works for one consumer at a time, to the end of what that does.

    Where both have something to do they take turns.

    Returns:
        Why it returns, the site that it is about, and of which stage.
    """
    first, second = worlds[0], worlds[1]
    for site_number in range(first.sites):  # what Python has done may have made room, or work
        _unblock(worlds, site_number, first.now)
        _share(worlds, site_number, first.now)
    while True:
        if first.hungry > 0:
            return ROWS_WANTED, NONE, 0
        stage = 0
        now = due_at(first, winner_at(first, 1).slot).at
        if due_at(second, winner_at(second, 1).slot).at < now:
            stage = 1
            now = due_at(second, winner_at(second, 1).slot).at
        if now >= until:
            first.now = until
            second.now = until
            return REACHED, NONE, 0
        first.now = now
        second.now = now
        world = worlds[stage]
        slot: Any = np.int64(winner_at(world, 1).slot)
        if slot >= world.sites:
            fill_pool(world, slot - world.sites, now)
            continue
        site = site_at(world, slot)
        if site.doing == SERVING:
            finish_tuple(world, slot, now)
            site.doing = FREE
            cpu_at(first, slot).since = now
            if stage == 0:
                _make(worlds, slot, now)
            if site.quiesced != 0:
                site.quiesced = 0
                return QUIESCED, slot, stage
        elif site.doing == IN_JOB:
            site.busy += now - site.since
            site.doing = FREE
            cpu_at(first, slot).since = now
            return JOB_DONE, slot, stage
        elif site.doing == IDLE:
            site.idle += now - site.since
            site.doing = FREE
        _share(worlds, slot, now)


@inlined
def _share(worlds: Records, site_number: int, now: float) -> None:
    """A CPU that has no work is given some, if there is any; who waits for it, or for room, has no event."""
    first, second = worlds[0], worlds[1]
    one, two = site_at(first, site_number), site_at(second, site_number)
    idle = not (one.doing == SERVING or one.doing == IN_JOB or two.doing == SERVING or two.doing == IN_JOB)
    if idle and (one.doing == FREE or two.doing == FREE):
        _give_work(worlds, site_number, now)
    if (one.doing == FREE or one.doing == BLOCKED) and due_at(first, site_number).at < np.inf:
        set_due(first, site_number, np.inf)
    if two.doing == FREE and due_at(second, site_number).at < np.inf:
        set_due(second, site_number, np.inf)


@inlined
def _give_work(worlds: Records, site_number: int, now: float) -> None:
    """The free consumers of a site look for work in turn, until one has some; it pays what both producers have used."""
    first, second = worlds[0], worlds[1]
    one, two, cpu = site_at(first, site_number), site_at(second, site_number), cpu_at(first, site_number)
    waited = now - cpu.since
    cpu.since = now
    cpu.idle += waited
    debt = max(0.0, one.debt + two.debt - waited)
    one.debt = 0.0
    two.debt = 0.0
    for step in range(2):
        stage = (cpu.turn + step) & 1
        mine = one if stage == 0 else two
        if mine.doing == FREE:
            mine.debt += debt
            debt = 0.0
            begin_work(worlds[stage], site_number, now)
            if mine.doing != IDLE:
                cpu.turn = 1 - stage
                if stage == 1 and mine.doing == SERVING:
                    producer: Any = np.int64(two.producer)
                    _unblock(worlds, producer, now)
                return
            debt = mine.debt
            mine.debt = 0.0
    one.debt = debt


@inlined
def _make(worlds: Records, site_number: int, now: float) -> None:
    """What a consumer of the first stage makes of the tuple that it has processed; it waits if there is no room for it.

    How many tuples and of which groups follows from whose tuple it was, so that any order of processing makes the same.
    """
    first, second = worlds[0], worlds[1]
    site, cpu = site_at(first, site_number), cpu_at(first, site_number)
    bits = mixed(np.uint64(site.number) * GOLDEN + np.uint64(site.producer) * MIX1 + np.uint64(1))
    whole = math.floor(second.selectivity)
    cpu.left = whole
    if uniform(bits) < second.selectivity - whole:
        cpu.left += 1
    cpu.bits = bits
    cpu.value = site.number
    if first.window > 0:
        cpu.value = window_at(first, site.group).sum
    _hand_on(worlds, site_number, now)
    if cpu.left > 0:
        site.doing = BLOCKED
        site.since = now


@inlined
def _hand_on(worlds: Records, site_number: int, now: float) -> None:
    """The second stage's producer takes what the first stage's consumer has made, as far as it has room."""
    first, second = worlds[0], worlds[1]
    site, cpu, producer = site_at(first, site_number), cpu_at(first, site_number), producer_at(second, site_number)
    while cpu.left > 0 and producer.held < second.pool:
        cpu.bits += GOLDEN
        cpu.left -= 1
        producer.generated += 1
        site.debt += second.produce
        route_tuple(second, site_number, group_of(second, mixed(cpu.bits)), cpu.value, site.stamp, DRAWN, now)


@inlined
def _unblock(worlds: Records, site_number: int, now: float) -> None:
    """A consumer of the first stage that waits for room may have it now."""
    first = worlds[0]
    site = site_at(first, site_number)
    if site.doing == BLOCKED:
        _hand_on(worlds, site_number, now)
        if cpu_at(first, site_number).left == 0:
            site.idle += now - site.since
            site.doing = FREE
            set_due(first, site_number, now)
