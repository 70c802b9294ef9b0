"""Crashes and restarts of workers, and recovery from them.

A crash loses the consumer of the worker: the state of its partitions, the tuple in service, those in connections to it,
and its disk. The input of its producer is a durable log outside the worker, so it is not lost: another worker continues
after the last tuple sent, and rereads what was read but not sent. Tuples already sent reach their consumers.

The controller declares a worker dead after the detection timeout, or when it restarts earlier. Its partitions then
restart with empty state on the workers with the fewest partitions, and its input is read by the live worker with the
fewest inputs. A restarted worker reads its own input again and owns no partitions until it receives some. With standby,
replicas take over instead (see `standby`).

Source: Flux, section 8, names process pairs; the rest is ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from adapt.core.metrics import column_named, columns_named
from adapt.core.stage.conditions.faults import Crash, FaultSchedule
from adapt.core.stage.control.rounds import Rounds
from adapt.core.stage.engine.recent_rows import forget_spilled, spilled_groups
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.engine.series import Interval
from adapt.core.stage.movement.protocol import Movement
from adapt.core.stage.movement.spilling import Spilling
from adapt.core.stage.movement.standby import Standby
from adapt.core.stage.records.arrays import NONE
from adapt.core.table import Column, Kind, Table

FULL_RATE = 0.95


@dataclass(slots=True, eq=False)
class CrashReport:
    """Report of a crash: losses and recovery times."""

    crash: Crash
    taken_over_s: float | None = None  # time when its partitions had owners again; None, not within the run
    partitions: int = 0  # partitions that the worker owned
    promoted: int = 0  # how many of them continued on their replicas
    lost_tuples: int = 0
    lost_state_bytes: int = 0  # state of partitions restarted empty
    lost_groups: int = 0  # groups that lost a tuple, or state that a later answer needs
    resent: int = 0  # tuples that producers sent again
    protected_s: float | None = None  # time when every partition had a replica again, with standby
    full_rate_s: float | None = None  # from the crash to the end of the first later interval at the full rate
    read: list[int] = field(default_factory=list)
    """Producers whose input the worker read."""
    hit: set[int] = field(default_factory=set)
    """Groups with losses."""

    @property
    def takeover_s(self) -> float | None:
        """Takeover time: from the crash until its partitions had owners again."""
        return None if self.taken_over_s is None else self.taken_over_s - self.crash.at_s


class Recovery:
    """Executes crashes and restarts by schedule, and the controller's response."""

    def __init__(
        self,
        stage: Stage,
        movement: Movement,
        faults: FaultSchedule,
        spilling: Spilling | None = None,
        standby: Standby | None = None,
    ) -> None:
        """Schedule all crashes."""
        self._stage = stage
        self._movement = movement
        self._spilling = spilling
        self._standby = standby
        self._detection_s = faults.detection_s
        self._known_dead: dict[int, CrashReport] = {}
        self._unknown: dict[int, CrashReport] = {}
        if standby is not None:
            standby.living = self.living
        self.rounds: Rounds | None = None
        """Rounds to interrupt on a crash."""
        self.reports: list[CrashReport] = []
        for crash in faults.crashes:
            stage.agenda.at(crash.at_s, partial(self._crash, crash))

    def living(self) -> list[int]:
        """Live workers known to the controller, in order."""
        return [worker for worker in range(self._stage.settings.workers) if worker not in self._known_dead]

    def _crash(self, crash: Crash) -> None:
        stage, worker = self._stage, crash.worker
        report = CrashReport(crash)
        self.reports.append(report)
        self._unknown[worker] = report
        record = stage.arrays["worker"][worker]
        before = stage.lost
        at_hand = int(record["group"])
        report.read = stage.hosted(worker)
        stage.crash(worker)
        if stage.lost > before:
            report.hit.add(at_hand)
        report.hit.update(stage.drop_pools(report.read))
        if self._spilling is not None:
            if not stage.standby:
                report.hit.update(spilled_groups(stage.arrays, worker))
            stage.lost += self._spilling.crashed(worker)
        report.lost_tuples += stage.lost - before
        self._movement.crashed(worker)
        stage.after(self._detection_s, partial(self._detect, report))
        if np.isfinite(crash.back_s):
            stage.agenda.at(crash.back_s, partial(self._come_back, report))

    def _detect(self, report: CrashReport) -> None:
        if self._unknown.get(report.crash.worker) is report:
            self._known_dead[report.crash.worker] = report
            self._take_over(report)
            self._go_on(report)

    def _come_back(self, report: CrashReport) -> None:
        worker = report.crash.worker
        unknown = worker in self._unknown
        if unknown:
            self._take_over(report)
        self._known_dead.pop(worker, None)
        self._stage.revive(worker)
        self._stage.read_at(worker, worker)
        if unknown:
            self._go_on(report)
        elif self._standby is not None:
            self._standby.replicate()

    def _go_on(self, report: CrashReport) -> None:
        """Resume replication and rounds after the takeover."""
        if self._standby is not None:
            self._standby.go_on(partial(setattr, report, "protected_s"))
        if self.rounds is not None:
            self.rounds.interrupt()

    def _take_over(self, report: CrashReport) -> None:
        """Move everything that survives of a dead worker elsewhere."""
        stage, movement, worker = self._stage, self._movement, report.crash.worker
        del self._unknown[worker]
        report.taken_over_s = stage.now_s
        stage.forget_jobs(worker)
        if self._spilling is not None:  # partitions that it was given since, as nobody knew
            self._spilling.crashed(worker)
        if self._standby is not None:
            self._standby.suspend()
        orphans = movement.bury(worker)
        owned = np.flatnonzero(stage.arrays["partition"]["owner"] == worker).tolist()
        lost = sorted({*orphans, *(one for one in owned if movement.receiver_of(one) is None)})
        report.partitions = len(owned)
        self._clear_connections(report)
        stage.arrays["partition"]["stalled"][lost] = 1  # until waiting tuples are sent first
        owners = {partition: self._new_owner(partition, report) for partition in lost}
        if self._standby is not None:
            report.resent = self._standby.send_again(lost)
        for partition, owner in owners.items():
            stage.restart(partition, owner)
            if self._spilling is not None:
                self._spilling.arrived(owner, partition)
        for producer in report.read:
            if stage.arrays["producer"]["host"][producer] == NONE:
                stage.read_at(producer, self._reader())
        report.lost_groups = len(report.hit)
        if self._standby is not None:
            self._standby.bury(worker)

    def _clear_connections(self, report: CrashReport) -> None:
        """Clear the connections to a dead worker; without standby, their tuples are lost."""
        stage, worker = self._stage, report.crash.worker
        stage.interrupted.discard(worker)
        if not stage.standby:
            groups = stage.groups_on_their_way(worker)
            report.hit.update(groups)
            report.lost_tuples += len(groups)
            stage.lost += len(groups)
        stage.clear_connections(worker)

    def _new_owner(self, partition: int, report: CrashReport) -> int:
        """The replica's worker, or the worker where the partition restarts empty."""
        movement, record = self._movement, self._stage.arrays["partition"][partition]
        groups = movement.groups_with_state(partition)
        movement.forget(partition)
        record["in_flight"] = 0
        if self._standby is not None:
            forget_spilled(self._stage.arrays, partition)
            twin = self._standby.promote(partition, self.living())
            if twin is not None:
                report.promoted += 1
                record["owner"] = twin
                return twin
        report.hit.update(groups)
        report.lost_state_bytes += int(self._stage.state_bytes()[partition])
        movement.states.take(partition)
        self._stage.lose_state(partition)
        owners = self._stage.arrays["partition"]["owner"]
        counts = np.bincount(owners, minlength=self._stage.settings.workers)
        if self._standby is not None:
            counts = counts + self._standby.twins_by_worker()
        owner = min(self.living(), key=lambda one: (counts[one], one))
        record["owner"] = owner
        return owner

    def _reader(self) -> int:
        """The live worker with the fewest inputs."""
        return min(self.living(), key=lambda one: (len(self._stage.hosted(one)), one))


def full_rate_s(intervals: Sequence[Interval], workers: int, report: CrashReport) -> float | None:
    """Time from a crash back to the full rate.

    It ends with the first interval at the full rate after the takeover. The full rate is 95 % of the mean rate before
    the crash, scaled to the live workers. None if it is never reached, or no interval ends before the crash.
    """
    before = [one for one in intervals if one.end_s <= report.crash.at_s]
    if not before or report.taken_over_s is None:
        return None
    full = FULL_RATE * sum(one.processed for one in before) / before[-1].end_s
    for one in intervals:
        if one.start_s >= report.taken_over_s and one.throughput >= full * one.living / workers:
            return one.end_s - report.crash.at_s
    return None


def crash_table(reports: list[CrashReport]) -> Table:
    """One row per crash."""
    columns = [
        Column("worker", Kind.COUNT),
        Column("crashed", Kind.SECONDS, "s"),
        Column("back", Kind.SECONDS, "s"),
        column_named("takeover"),
        Column("partitions", Kind.COUNT, "", "owned by the worker"),
        Column("promoted", Kind.COUNT, "partitions", "that continued on their replicas"),
        *columns_named("lost lost_state lost_groups"),
        Column("resent", Kind.COUNT, "tuples"),
        Column("protected", Kind.SECONDS, "s", "from the crash until every partition had a replica again"),
        column_named("full_rate"),
    ]
    rows: list[list[int | float | None]] = []
    for one in reports:
        back_s = one.crash.back_s if np.isfinite(one.crash.back_s) else None
        protected_s = None if one.protected_s is None else one.protected_s - one.crash.at_s
        owned = one.crash.worker, one.crash.at_s, back_s, one.takeover_s, one.partitions, one.promoted
        lost = one.lost_tuples, one.lost_state_bytes, one.lost_groups
        rows.append([*owned, *lost, one.resent, protected_s, one.full_rate_s])
    note = "The full rate is 95 % of the mean rate before the crash, scaled to the live workers."
    return Table.from_rows("Crashes", columns, rows, note=note)
