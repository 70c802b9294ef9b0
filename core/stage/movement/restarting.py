"""Rescale by restart: partitions stop, state is saved and restored elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from adapt.core.stage.conditions.restart import Restart
from adapt.core.stage.engine.jobs import Action, Job
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.movement.controller import Move, Moved
from adapt.core.stage.movement.protocol import Movement


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
