"""Consumers: what they do next, and the tuple at hand from taken to processed."""

from typing import Any

import numpy as np

from adapt.core.compiled import fetch_ahead, inlined
from adapt.core.stage.engine.kernel.answers import count_matches, insert_row, window_sum
from adapt.core.stage.engine.kernel.commit import commit
from adapt.core.stage.engine.kernel.connections import forward, forward_anywhere
from adapt.core.stage.engine.kernel.cpu_time import done_at
from adapt.core.stage.engine.kernel.next_event import set_due
from adapt.core.stage.engine.kernel.producers import fill_pool
from adapt.core.stage.engine.kernel.shedding import count_shed, sheds
from adapt.core.stage.engine.kernel.spill import spill_tuple, take_spilled
from adapt.core.stage.engine.kernel.standby import finish_mirrored, send_to_twin, take_mirrored
from adapt.core.stage.engine.kernel.tuples import pass_acknowledgement, take_in_hand
from adapt.core.stage.records.codes import IDLE, IN_JOB, NONE, SERVING
from adapt.core.stage.records.finding import (
    connection_at,
    flow_at,
    line_at,
    mirrored_at,
    pair_at,
    partition_at,
    producer_at,
    queued_at,
    service_at,
    site_at,
)
from adapt.core.stage.records.queues import FLOW
from adapt.core.stage.records.tuples import POOLED, QUEUED
from adapt.core.stage.records.world import World


@inlined
def begin_work(world: World, site_number: int, now: float) -> None:
    """A free consumer chooses its next work: a job, spilled input that it is to process, input, or to wait."""
    site = site_at(world, site_number)
    site.since = now
    if site.job != 0:
        site.job = 0
        site.doing = IN_JOB
        set_due(world, site_number, done_at(world, site, now + site.job_io, site.job_cpu))
        return
    if site.backlog != NONE:
        take_spilled(world, site)
        _serve(world, site_number, now)
        return
    soonest = np.inf
    if world.standby != 0:
        place = line_at(world, site_number).head
        if place != NONE:
            entry = mirrored_at(world, place)
            if entry.at <= now:
                take_mirrored(site, entry)
                site.mirrored = 1
                _serve(world, site_number, now)
                return
            soonest = entry.at
    first = site_number * world.sites
    producer: Any = np.int64(site.poll)
    for _ in range(world.sites):
        connection = connection_at(world, first + producer)
        if connection.count > 0:
            at = queued_at(world, (first + producer) * world.credits + connection.first).at
            if at <= now:
                _take(world, site_number, producer, now)
                return
            soonest = min(soonest, at)
        producer += 1
        if producer == world.sites:
            producer = 0
    site.doing = IDLE
    set_due(world, site_number, soonest)


@inlined
def _take(world: World, site_number: int, producer: int, now: float) -> None:
    """A consumer takes the next tuple of a connection, and the producer may send one."""
    site = site_at(world, site_number)
    number = site_number * world.sites + producer
    connection = connection_at(world, number)
    taken = queued_at(world, number * world.credits + connection.first)
    take_in_hand(site, taken, taken.partition, producer, now)
    connection.first += 1
    if connection.first == world.credits:
        connection.first = 0
    connection.count -= 1
    site.poll = producer + 1
    if site.poll == world.sites:
        site.poll = 0
    pass_acknowledgement(site, connection)
    site.doing = SERVING
    if world.hold > 0 and sheds(world, site_number, now):
        site.refused = 1
        set_due(world, site_number, now)
    elif partition_at(world, site.partition).on_disk != 0:
        site.spilling = 1
        set_due(world, site_number, done_at(world, site, now + world.spill, 0.0))
    else:
        _serve(world, site_number, now)
    if connection.turn != NONE:
        forward(world, producer, site_number, now)
        fill_pool(world, producer, now)
    elif world.anywhere and producer_at(world, producer).held > 0:
        forward_anywhere(world, producer, site_number, now)
        fill_pool(world, producer, now)
    if world.pool > 1:
        _expect_take(world, site_number)


@inlined
def _serve(world: World, site_number: int, now: float) -> None:
    """Begin to process the tuple at hand, and pay what the site's producer has used."""
    site = site_at(world, site_number)
    site.doing = SERVING
    site.spilling = 0
    cost = site.cost
    if cost < 0:
        cost = service_at(world, site.cursor).seconds
        site.cursor = (site.cursor + 1) & (world.services - 1)
    if world.joins != 0:
        count_matches(world, site)
        cost += site.matches * world.match
    work = cost + site.debt
    site.debt = 0.0
    set_due(world, site_number, done_at(world, site, now, work))


@inlined
def finish_tuple(world: World, site_number: int, now: float) -> None:
    """The tuple at hand is processed, or written to the spill."""
    site = site_at(world, site_number)
    partition = partition_at(world, site.partition)
    site.busy += now - site.since
    twin: Any = np.int32(NONE)
    if world.standby != 0:
        if site.mirrored != 0:
            finish_mirrored(world, site_number, now)
            return
        twin = pair_at(world, site.partition).twin
    partition.in_flight -= 1
    if site.refused != 0:
        count_shed(world, site, now)
        return
    if site.spilling != 0:
        spill_tuple(world, site, partition)
        return
    partition.processed += 1
    answer: Any = np.int64(0)
    if world.window > 0:
        answer = window_sum(world, site.group, site.number)
        partition.digest = partition.digest * np.int64(6364136223846793005) + answer
    elif world.joins != 0:
        answer = site.matches
        world.answers += site.matches
        world.pairs += site.pairs
        insert_row(world, site.number)
    if twin == NONE:
        commit(world, site_number, site_number, answer, now)
    else:
        send_to_twin(world, site_number, twin, answer, now)


@inlined
def _expect_take(world: World, site_number: int) -> None:
    """Ask for what a consumer takes next but one, and for what is sent in the place of what it takes next.

    By then many others have taken a tuple, so that this would have to come from memory; which it is, is known now.
    """
    producer = site_at(world, site_number).poll
    connection = connection_at(world, site_number * world.sites + producer)
    if connection.turn != NONE:
        flow = flow_at(world, producer * world.partitions + connection.turn)
        fetch_ahead(world.pooled_at, POOLED, producer * world.places + flow.head)
    producer += 1
    if producer == world.sites:
        producer = 0
    number = site_number * world.sites + producer
    connection = connection_at(world, number)
    fetch_ahead(world.queued_at, QUEUED, number * world.credits + connection.first)
    fetch_ahead(world.flow_at, FLOW, producer * world.partitions + connection.turn)
