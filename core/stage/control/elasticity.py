"""Elastic workers: observe, decide, place, migrate.

All workers of the stage form the pool, of which the first m are active. The others own no partitions and read no input;
the active ones read the producers' input in turn. A rescale starts the workers it needs, builds a plan from the counts
so far, moves partitions by the movement protocol, batch by batch, and releases the workers it does not need. No other
decision is made meanwhile.

The partition is the unit of counting, placement and migration, so routing changes for all its keys at once. A key to be
routed on its own has its own partition.

Source: partitioning functions, section 4.6 (measure, analyze, plan, activate); ESJ, adaptive workload."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.conditions.names import Migrating
from adapt.core.stage.conditions.settings import Restart
from adapt.core.stage.control.workers import Decision, PartitionsSeen, Scaling, Seen, Waiting
from adapt.core.stage.engine.queues import Action, Job
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.input.row_costs import Intake
from adapt.core.stage.movement.controller import Move, Moved
from adapt.core.stage.movement.protocol import Movement
from adapt.core.stage.records.arrays import Records
from adapt.core.stage.records.world import REFUSAL

PARTS = 8
"""Resolution of the log: slots per retention time."""

MOST_PARTS = 2**16
"""Upper limit of slots per period."""


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """Shed rows by time slot, without empty slots."""

    workers: NDArray[np.int64]  # number of active workers, shape (slots,)
    shed: NDArray[np.int64]  # rows shed in the slot, likewise
    offered: NDArray[np.int64]  # rows that arrived within the retention time before the end of the slot, likewise


class Sheddings:
    """Records the shed rows of a stage with load shedding."""

    def __init__(self, stage: Stage, held_s: float, period_s: float) -> None:
        """Start an empty log.

        Args:
            stage: The stage to record.
            held_s: Retention of rows in the buffers of workers; 0 without buffers.
            period_s: Interval between calls of `note`.
        """
        self._stage = stage
        self._width_s = max(held_s / PARTS, period_s / MOST_PARTS)
        self._held_parts = max(1, round(held_s / self._width_s))
        self._shed: list[tuple[int, NDArray[np.int64], NDArray[np.int64]]] = []
        self._due: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        if held_s > 0:
            stage.arrays.put("refusal", np.zeros(ceil(period_s / self._width_s) + 1, REFUSAL))
            stage.arrays.world["refusals"] = len(stage.arrays["refusal"])
            stage.arrays.world["refusal_s"] = self._width_s
            stage.arrays.world["watched_from"] = stage.now_s

    def note(self, due_s: NDArray[np.float64], workers: int) -> None:
        """Record a finished period.

        Args:
            due_s: Arrival times of the rows that producers took in the period.
            workers: Number of active workers.
        """
        if not self._stage.arrays.world["refusals"]:
            return
        refusals = self._stage.arrays["refusal"]["count"]
        filled = np.flatnonzero(refusals)
        if len(filled):
            since_s = float(self._stage.arrays.world["watched_from"])
            middles_s = np.minimum(since_s + (filled + 0.5) * self._width_s, self._stage.now_s)
            self._shed.append((workers, self._parts(middles_s), refusals[filled]))
            refusals[:] = 0
        self._stage.arrays.world["watched_from"] = self._stage.now_s
        if len(due_s):
            parts, counts = np.unique(self._parts(due_s), return_counts=True)
            self._due.append((parts, np.asarray(counts, np.int64)))

    def watched(self) -> Watched:
        """Shed rows of all finished periods."""
        if not self._shed:
            return Watched(*np.zeros((3, 0), np.int64))
        parts = np.concatenate([parts for _, parts, _ in self._shed])
        due, counts = (np.concatenate(each) for each in zip(*self._due, strict=True))
        order = np.argsort(due, kind="stable")
        due, come = due[order], np.concatenate([[0], np.cumsum(counts[order])])
        offered = come[np.searchsorted(due, parts, "right")]
        offered -= come[np.searchsorted(due, parts - self._held_parts, "right")]
        workers = np.concatenate([np.full(len(parts), workers) for workers, parts, _ in self._shed])
        return Watched(workers, np.concatenate([shed for _, _, shed in self._shed]), offered)

    def _parts(self, times_s: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.floor(times_s / self._width_s).astype(np.int64)


class HeldTuples:
    """Buffered tuples of all workers; empty without load shedding."""

    def __init__(self, stage: Stage) -> None:
        """View of the arrays of a stage."""
        self._stage = stage
        self._room = int(stage.arrays.world["hold"])
        self.held_s = float(stage.arrays.world["held_for"])

    def take(self, workers: int) -> NDArray[np.int64] | None:
        """Most tuples buffered by each worker since the last call.

        Of the first workers, shape (workers,); None without buffers. A sample of one moment can miss every burst.
        """
        if not self._room:
            return None
        records = self._stage.arrays["worker"]
        most = records["held_most"][:workers].astype(np.int64)
        records["held_most"] = [len(self._of(worker)) for worker in range(len(records))]
        return most

    def move(self, move: Move) -> None:
        """Move buffered tuples of a partition; a full receiver drops the oldest."""
        if not self._room:
            return
        given, own = self._of(move.donor), self._of(move.receiver)
        goes = given["partition"] == move.partition
        self._put(move.donor, given[~goes])
        joined = np.concatenate([own, given[goes]])
        self._put(move.receiver, joined[np.argsort(joined["since"], kind="stable")][-self._room :])

    def _of(self, worker: int) -> Records:
        """Buffered tuples of a worker, oldest first."""
        record = self._stage.arrays["worker"][worker]
        places = (int(record["held_first"]) + np.arange(int(record["held"]))) % self._room
        ring = self._stage.arrays["held"][worker * self._room : (worker + 1) * self._room][places]
        return ring[np.searchsorted(ring["since"] + self.held_s, self._stage.now_s, "right") :]

    def _put(self, worker: int, held: Records) -> None:
        self._stage.arrays["held"][worker * self._room : worker * self._room + len(held)] = held
        record = self._stage.arrays["worker"][worker]
        record["held_first"], record["held"] = 0, len(held)


@dataclass(slots=True)
class Stop:
    """What a restart stopped."""

    began_s: float  # when partitions stopped taking rows
    others: int  # stopped partitions that keep their worker
    workers: int  # workers without work meanwhile; 0 if only partitions that move stopped
    restored_bytes: int = 0  # state that was restored
    ended_s: float | None = None  # when rows were taken again; None, not yet
    backlog: int = 0  # rows that waited then

    @property
    def downtime_s(self) -> float | None:
        """How long it lasted; None, it still does."""
        return None if self.ended_s is None else self.ended_s - self.began_s

    @property
    def worker_s(self) -> float:
        """Time of workers without work."""
        return self.workers * (self.downtime_s or 0.0)


def restart_stage(
    stage: Stage, movement: Movement, how: Restart, moves: Sequence[Move], workers: int, done: Action
) -> tuple[Stop, list[Moved]]:
    """Restart partitions with new owners; rows on their way are processed first.

    Args:
        moves: Partitions that change their worker.
        workers: Workers that exist meanwhile.
        done: Called when rows are taken again.

    Returns:
        What it stopped, and the log entries of the moves; both are completed meanwhile.
    """
    owners = stage.arrays["partition"]["owner"].copy()
    sizes = stage.state_bytes()
    receivers = {move.partition: move.receiver for move in moves}
    stopped = list(range(stage.settings.partitions)) if how.is_whole else sorted(receivers)
    log = [Moved(move, int(sizes[move.partition])) for move in moves]
    stop = Stop(stage.now_s, len(stopped) - len(moves), workers if how.is_whole else 0)
    movement.log += log
    _note(log, stage.now_s, "decided", "paused")
    donors: dict[int, list[int]] = {}
    for partition in stopped:
        donors.setdefault(int(owners[partition]), []).append(partition)
    waiting = set(donors)

    def quiesced(donor: int) -> None:
        waiting.discard(donor)
        if not waiting:
            restore()

    def restore() -> None:
        _note(log, stage.now_s, "quiesced", "extracted")
        sizes = stage.state_bytes()
        for moved in log:
            moved.state_bytes = int(sizes[moved.move.partition])
        after = np.array([receivers.get(partition, owner) for partition, owner in enumerate(owners.tolist())])
        moving = np.isin(np.arange(len(owners)), list(receivers))
        count = stage.settings.workers
        saved = np.bincount(owners, sizes, count).astype(np.int64)
        restored = np.bincount(after, sizes if how.restores_all else sizes * moving, count).astype(np.int64)
        stop.restored_bytes = int(restored.sum())
        stage.after(how.downtime_s(saved, restored, stage.settings.network), go_on)

    def go_on() -> None:
        _note(log, stage.now_s, "received", "installed", "restarted")
        for partition in stopped:
            stage.restart(partition, receivers.get(partition, int(owners[partition])))
        for move in moves:
            movement.on_moved(move)
        stop.ended_s = stage.now_s
        stop.backlog = stage.arrived() - int(stage.arrays.world["processed"]) - stage.shed
        done()

    def read_all(donor: int) -> None:
        stage.do(donor, Job(0.0, 0.0, partial(quiesced, donor)))  # after the row in service

    for donor, partitions in donors.items():
        stage.pause(donor, partitions, partial(read_all, donor))
    return stop, log


def _note(log: Sequence[Moved], now_s: float, *steps: str) -> None:
    for moved in log:
        moved.times_s.update(dict.fromkeys(steps, now_s))


@dataclass(slots=True, eq=False)
class Step:
    """A rescale, or a new plan for the same workers."""

    decided_s: float  # time of the decision
    before: int  # workers before it
    after: int  # workers after it
    waited: int  # rows waiting at the decision
    moves: list[Moved] = field(default_factory=list)  # moves of partitions
    done_s: float | None = None  # time when all had moved; None, not yet
    caught_up_s: float | None = None  # time after that when no more rows waited than arrive in a period; None, not yet
    stop: Stop | None = None  # what a restart stopped; None if partitions move live


class Elasticity:
    """Scales a stage out and in."""

    def __init__(self, stage: Stage, movement: Movement, scaling: Scaling) -> None:
        """Begin the first period.

        Args:
            stage: A stage fed by rows, with partitions placed on `scaler.least` workers.
        """
        self._stage = stage
        self._movement = movement
        self._scaling = scaling
        self._intake = Intake(stage)
        self._held = HeldTuples(stage)
        movement.on_moved = self._held.move
        self.workers = scaling.scaler.least
        self.sizes: list[tuple[float, int]] = [(stage.now_s, self.workers)]
        """Times and numbers of active workers."""
        self.steps: list[Step] = []
        self._sheddings = Sheddings(stage, self._held.held_s, scaling.period_s)
        self._waiting = Waiting(stage.now_s)
        self._moving = False
        self._idle_s = stage.idle_s()
        self._processed = stage.arrays["worker"]["processed"].copy()
        self._before = stage.now_s, 0
        """Time of the last observation, and rows that had arrived by then."""
        self._arrivals: list[tuple[float, int, NDArray[np.int64]]] = [(stage.now_s, 0, np.zeros(0, np.int64))]
        self._retained: NDArray[np.int64] = np.zeros(stage.settings.partitions, np.int64)
        """Rows of each partition in all of `_arrivals` but the first."""
        self._share_input()
        stage.after(scaling.period_s, self._observe)

    def _observe(self) -> None:
        seen = self._seen()
        for step in self.steps:
            if step.done_s is not None and step.caught_up_s is None and seen.waiting <= seen.arrived:
                step.caught_up_s = seen.at_s
        if not self._moving:
            decision, self._waiting = self._scaling.scaler.decide(seen, self._waiting)
            if decision.workers != self.workers or decision.rebuild:
                self._begin(decision, seen.waiting)
        self._stage.after(self._scaling.period_s, self._observe)

    def _seen(self) -> Seen:
        stage, m = self._stage, self.workers
        taken = self._intake.take()
        self._scaling.placement.count(taken.partitions, taken.cost_s, taken.times_s)
        cost_s = np.where(taken.cost_s < 0, stage.settings.costs.service_s, taken.cost_s)
        loads = np.asarray(np.bincount(self._owners()[taken.partitions], cost_s, stage.settings.workers), np.float64)
        idle_s, processed = stage.idle_s(), stage.arrays["worker"]["processed"].copy()
        arrived, (before_s, arrived_before) = stage.arrived(), self._before
        collected_s = stage.now_s - before_s
        self._before = stage.now_s, arrived
        seen = Seen(
            at_s=stage.now_s,
            collected_s=collected_s,
            workers=m,
            busy_s=np.maximum(0.0, collected_s - (idle_s - self._idle_s)[:m]),
            processed=(processed - self._processed)[:m],
            loads=loads[:m],
            arrived=arrived - arrived_before,
            waiting=arrived - int(processed.sum()) - stage.shed,
            held=self._held.take(m),
            offered=self._offered(m, taken.partitions),
            partitions=self._partitions,
            moved_bytes=sum(moved.state_bytes for step in self.steps for moved in step.moves),
        )
        self._idle_s, self._processed = idle_s, processed
        self._sheddings.note(taken.times_s, m)
        return seen

    def _partitions(self) -> PartitionsSeen:
        stage, partitions = self._stage, self._stage.arrays["partition"]
        processed, queued = partitions["processed"].copy(), partitions["in_flight"].astype(np.int64)
        return PartitionsSeen(stage.settings.workers, self._owners(), processed, queued, stage.state_bytes())

    def watched(self) -> Watched:
        """Shed rows by time, up to now."""
        self._sheddings.note(self._intake.take().times_s, self.workers)
        return self._sheddings.watched()

    def _offered(self, workers: int, partitions: NDArray[np.int32]) -> NDArray[np.float64] | None:
        """Rows that arrived within the retention time, by the worker of their partition; None without buffers.

        Args:
            partitions: Those of the rows taken since the last observation.
        """
        if not self._held.held_s:
            return None
        by_partition = np.bincount(partitions, minlength=self._stage.settings.partitions)
        self._arrivals.append((*self._before, by_partition))
        self._retained = self._retained + by_partition
        since_s = self._stage.now_s - self._held.held_s
        while len(self._arrivals) > 2 and self._arrivals[1][0] <= since_s:
            self._arrivals.pop(0)
            self._retained = self._retained - self._arrivals[0][2]
        (first_s, first, _), (second_s, second, _) = self._arrivals[:2]
        total = float(self._arrivals[-1][1] - np.interp(since_s, (first_s, second_s), (first, second)))
        taken = np.bincount(self._owners(), self._retained, self._stage.settings.workers)[:workers]
        return np.asarray(total * taken / max(float(taken.sum()), 1.0))

    def _begin(self, decision: Decision, waited: int) -> None:
        """Start workers, then migrate to the new plan."""
        step = Step(self._stage.now_s, self.workers, decision.workers, waited)
        self.steps.append(step)
        self._moving = True
        if decision.workers > self.workers:
            self._become(decision.workers)
        starts_s = self._scaling.start_s if decision.workers > step.before else 0.0
        self._stage.after(starts_s + self._stage.settings.costs.fixed.plan_s, lambda: self._place(step))

    def _place(self, step: Step) -> None:
        placed = self._scaling.placement.place(step.after)
        if placed.state_tuples is not None:
            self._movement.resize(placed.state_tuples)
        owners = self._owners()
        moving = np.flatnonzero(placed.owners != owners)
        moves = {one: Move(one, int(owners[one]), int(placed.owners[one])) for one in moving.tolist()}
        migration = self._scaling.migration
        if migration.how is Migrating.RESTART:
            self._restart(step, list(moves.values()))
        elif migration.how is Migrating.DEMAND:
            self._migrate_on_demand(step, list(moves.values()), placed.weights)
        else:
            portions = migration.portions(moving, placed.weights)
            self._migrate(step, [[moves[one] for one in portion.tolist()] for portion in portions])

    def _restart(self, step: Step, moves: list[Move]) -> None:
        """Stop, and go on with new owners; every rescale does, even if no partition moves."""
        if not moves and step.before == step.after:
            self._end(step)
            return
        how, workers = self._scaling.migration.restart, max(step.before, step.after)
        if not moves and not how.is_whole:
            self._end(step)
            return
        step.stop, step.moves = restart_stage(self._stage, self._movement, how, moves, workers, lambda: self._end(step))

    def _migrate_on_demand(self, step: Step, moves: list[Move], weights: NDArray[np.float64]) -> None:
        """Move one partition of each worker at a time, that with most rows since the decision first.

        Source: Gu et al., "Meces", USENIX ATC 2022, which fetches the state that the next row needs.
        """
        before = self._seen_rows()
        left: dict[int, list[Move]] = {}
        for move in moves:
            left.setdefault(move.donor, []).append(move)
        going = set(left)

        def go_on(donor: int) -> None:
            if not left[donor]:
                going.discard(donor)
                if not going:
                    self._end(step)
                return
            rows = self._seen_rows() - before
            wanted = max(left[donor], key=lambda move: (rows[move.partition], weights[move.partition]))
            left[donor].remove(wanted)
            first = len(self._movement.log)
            self._movement.start([wanted], lambda: go_on(donor))
            step.moves += self._movement.log[first:]

        for donor in sorted(going):
            go_on(donor)
        if not moves:
            self._end(step)

    def _seen_rows(self) -> NDArray[np.int64]:
        """Rows of each partition processed or on their way, shape (partitions,)."""
        partitions = self._stage.arrays["partition"]
        return np.asarray(partitions["processed"] + partitions["in_flight"])

    def _migrate(self, step: Step, portions: list[list[Move]]) -> None:
        """Move the batches, one after the other."""
        if not portions:
            self._end(step)
            return
        first = len(self._movement.log)
        self._movement.start(portions[0], lambda: self._migrate(step, portions[1:]))
        step.moves += self._movement.log[first:]

    def _end(self, step: Step) -> None:
        if step.after < self.workers:
            self._become(step.after)
        self._share_input()
        step.done_s = self._stage.now_s
        self._moving = False
        self._waiting = Waiting(self._stage.now_s)

    def _become(self, workers: int) -> None:
        self.workers = workers
        self.sizes.append((self._stage.now_s, workers))

    def _share_input(self) -> None:
        """Assign the input of producers to active workers in turn."""
        for producer in range(self._stage.settings.workers):
            self._stage.read_at(producer, producer % self.workers)

    def _owners(self) -> NDArray[np.int32]:
        return np.asarray(self._stage.arrays["partition"]["owner"]).copy()
