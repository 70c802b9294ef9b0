"""Initial arrays of a stage."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.costs.profile import Pause
from adapt.core.errors import UsageError
from adapt.core.histogram import BINS
from adapt.core.stage.conditions.arrivals import Drawn, Made, Rows, Source, alias_table
from adapt.core.stage.conditions.faults import segments_of
from adapt.core.stage.conditions.names import QueueingName, Router
from adapt.core.stage.conditions.settings import StageSettings, of_workers
from adapt.core.stage.records.arrays import FREE, NONE, UNUSED, Arrays, Records
from adapt.core.stage.records.world import CONNECTION, FLOW, HELD, MIRRORED, PAUSE, POOLED, QUEUED

MOST_BYTES = 4 << 30
"""Most memory of the buffers of a stage."""

SERVICE_TIMES = 2**16
"""Number of drawn service times; each worker cycles through them from its own offset."""

LEAST_SERVICE_S = 1e-9

PAUSES = 1024
"""Drawn pauses of a worker, which it repeats."""


def prepare(settings: StageSettings, source: Source | Made, journal: int = 0, standby: bool = False) -> Arrays:
    """All arrays at time 0; arguments as in `Stage`."""
    workers, partitions, groups = settings.workers, settings.partitions, len(settings.partition_of)
    pool, credits = settings.held_tuples, settings.network.connection_tuples
    queueing = settings.queueing
    own = queueing.engine is QueueingName.FLUX
    places = (pool + 2 * workers * credits if standby else pool) if own else 0
    copies = 2 if standby else 1
    hold = settings.overload.capacity_tuples if settings.overload else 0
    mirrored = MIRRORED.itemsize if standby else 0
    of_worker = places * (POOLED.itemsize + mirrored) + hold * HELD.itemsize + partitions * FLOW.itemsize
    size = workers * (of_worker + workers * (credits * QUEUED.itemsize + CONNECTION.itemsize))
    if size > MOST_BYTES:
        raise UsageError(
            f"the buffers of {workers:,} workers would take {size / 2**30:,.1f} GiB, and at most"
            f" {MOST_BYTES / 2**30:g} GiB are simulated; decrease --producers buffer, --network connection-buffer,"
            " --shed or the number of workers"
        )
    slots = 2 ** int(np.ceil(np.log2(2 * workers)))
    segments, firsts = segments_of(workers, settings.disturbances)
    cursors = np.arange(workers) * (SERVICE_TIMES // workers)
    chance = np.random.default_rng([settings.seed, 1])
    parts = settings.overload.factor.table(hold) if settings.overload else np.empty(0)
    pause_from, pauses = _pauses(settings)
    arrays = Arrays()
    arrays.fill(
        "worker",
        workers,
        doing=FREE,
        segment=firsts[:-1],
        segments_end=firsts[1:],
        cursor=cursors,
        backlog=NONE,
        room=UNUSED,
        pause_from=pause_from,
    )
    arrays.fill(
        "producer",
        workers,
        random=chance.integers(0, 2**64, workers, np.uint64),
        host=np.arange(workers, dtype=np.int32),
    )
    arrays.fill("connection", workers**2, turn=NONE)
    arrays.fill("queued", workers**2 * credits)
    arrays.fill("flow", workers * partitions, head=NONE, tail=NONE)
    if not own:
        arrays.fill("channel", workers**2, head=NONE, tail=NONE)
        arrays.fill("barrier", workers)
    arrays.fill("pooled", workers * places, link=np.tile(chain(places), workers))
    arrays.fill("partition", partitions, owner=settings.owners, spill_head=NONE, spill_tail=NONE)
    arrays.fill("state", partitions, bytes=settings.state_sizes() * settings.costs.tuple_bytes)
    shares = None if isinstance(source, Rows) else source.shares
    thresholds, aliases = alias_table(shares, groups)
    arrays.fill("group", groups, partition=settings.partition_of, threshold=thresholds, alias=aliases)
    if settings.growth:
        arrays.fill("live", groups)
    if settings.window:
        arrays.fill("window", copies * groups)
        arrays.fill("past", copies * groups * settings.window)
    if settings.join:
        arrays.fill("newest", 2 * groups, at=NONE)
    arrays.put("segment", segments)
    if standby:
        arrays.fill("pair", partitions, twin=NONE)
        arrays.fill("kept", workers * partitions, head=NONE, tail=NONE)
        arrays.fill("line", workers, head=NONE, tail=NONE)
        arrays.fill("mirror", workers * places, link=chain(workers * places))
    arrays.fill("entry", journal)
    arrays.fill("latency", 2)
    arrays.fill("bin", 2 * BINS)
    arrays.fill("service", SERVICE_TIMES, seconds=service_times(settings))
    arrays.put("pause", pauses)
    arrays.fill("held", workers * hold)
    arrays.fill("part", len(parts), shed=parts)
    arrays.fill("due", slots, at=np.inf)
    arrays["due"]["at"][:workers] = 0.0
    arrays.fill("winner", slots, slot=_winners(arrays["due"]["at"]))
    world = arrays.world
    world["workers"], world["partitions"], world["groups"] = workers, partitions, groups
    world["pool"], world["places"], world["credits"], world["window"] = pool, places, credits, settings.window
    world["packet"] = settings.network.packet_tuples
    world["fetch"] = queueing.fetch_rows if queueing.engine is QueueingName.KAFKA else 1
    if not own:
        world["shared"] = world["lines"] = 1
        world["cap"] = queueing.channel_rows if queueing.engine is QueueingName.FLINK else 0
        world["batched"] = queueing.engine is QueueingName.SPARK
        arrays["producer"]["free"] = NONE
    bandwidths = of_workers("bandwidths", settings.network.link_bits_per_s, workers)
    world["links"] = np.isfinite(bandwidths).any()
    arrays["worker"]["link"] = 8 * settings.costs.tuple_bytes / bandwidths
    world["standby"] = standby
    world["anywhere"] = settings.router is Router.RIVER
    world["drawn"] = isinstance(source, Drawn)
    world["slots"], world["services"], world["entries"] = slots, SERVICE_TIMES, journal
    world["pauses"] = len(pauses) // workers
    world["horizon"], world["spill_free"] = np.inf if isinstance(source, Made) else -np.inf, NONE
    world["latency"] = settings.network.latency_s
    world["read" if queueing.has_logs else "produce"] = settings.costs.produce_s
    if settings.join is not None:
        world["joins"], world["apart"], world["match"] = 1, settings.join.window, settings.join.match_s
    growth = settings.growth
    if growth is not None:
        world["grows"], world["ranked"], world["keeps"] = 1, growth.is_ranked, growth.rows_per_group
        world["sized"] = growth.sized
        world["group_bytes"], world["row_bytes"] = growth.group_bytes, growth.row_bytes
    if settings.overload is not None:
        world["hold"], world["held_for"] = hold, settings.overload.window_s
        world["draws"] = np.random.default_rng([settings.seed, 2]).integers(0, 2**64, dtype=np.uint64)
    return arrays


def chain(places: int) -> NDArray[np.int32]:
    """Links from each place to the next; the last is `NONE`."""
    links = np.arange(1, places + 1, dtype=np.int32)
    links[-1:] = NONE
    return links


def _winners(due: NDArray[np.float64]) -> NDArray[np.int32]:
    """The tournament: entry i is the earlier of entries 2 i and 2 i + 1, down to pairs of slots."""
    winners = np.zeros(len(due), np.int32)
    level = np.arange(len(due), dtype=np.int32)
    while len(level) > 1:
        left, right = level[::2], level[1::2]
        level = np.where(due[left] <= due[right], left, right)
        winners[len(level) : 2 * len(level)] = level
    return winners


def service_times(settings: StageSettings) -> NDArray[np.float64]:
    """Service times of rows without costs.

    In seconds, shape (SERVICE_TIMES,).
    """
    chance = np.random.default_rng([settings.seed, 0])
    costs = settings.costs
    if costs.spread is None:
        drawn = chance.normal(costs.service_s, costs.service_sd_s, SERVICE_TIMES)
    else:
        drawn = costs.service_s * costs.spread.factors(SERVICE_TIMES, chance)
    return np.maximum(drawn, LEAST_SERVICE_S)


def _pauses(settings: StageSettings) -> tuple[NDArray[np.float64], Records]:
    """Start of the first pause of each worker, and its pauses: `PAUSES` each, or none.

    Times between pauses of a kind are exponential. Pauses that overlap become one.
    """
    workers, kinds = settings.workers, settings.costs.pauses
    first_s = np.full(workers, np.inf)
    if not kinds:
        return first_s, np.zeros(0, PAUSE)
    pauses = np.zeros(workers * PAUSES, PAUSE)
    for worker in range(workers):
        own = [_course(kind, settings.seed, number, worker) for number, kind in enumerate(kinds)]
        until_s = min(float(ends[-1]) for _, ends in own)  # all kinds are drawn until then
        starts, ends = (np.concatenate(each) for each in zip(*own, strict=True))
        order = np.argsort(starts, kind="stable")
        order = order[starts[order] <= until_s]
        starts, ends = starts[order], np.maximum.accumulate(ends[order])
        new = np.append(True, starts[1:] > ends[:-1])
        starts, ends = starts[new], ends[np.append(np.flatnonzero(new)[1:] - 1, len(ends) - 1)]
        first_s[worker] = starts[0]
        here = pauses[worker * PAUSES : (worker + 1) * PAUSES]
        at = np.arange(PAUSES) % len(starts)  # fewer where they overlap: then again from the first
        here["lasts"] = (ends - starts)[at]
        here["gap"] = np.append(starts[1:] - ends[:-1], starts[0])[at]
    return first_s, pauses


def _course(kind: Pause, seed: int, number: int, worker: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Starts and ends of `PAUSES` pauses of a kind at a worker; the same at all that pause together."""
    chance = np.random.default_rng([seed, 3, number, 0 if kind.together else 1 + worker])
    gaps = chance.exponential(kind.interval_s, PAUSES)
    lasts = np.asarray(kind.durations_s)[chance.integers(0, len(kind.durations_s), PAUSES)]
    ends = np.cumsum(gaps + lasts)
    return ends - lasts, ends
