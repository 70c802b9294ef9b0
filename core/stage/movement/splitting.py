"""Partitions too hot for any worker, split while they run.

A partition whose tuples take more than a share of its worker's time gets a further part, on the least utilized worker
that has none of it; a partition in parts, if they take more than that on average. No part is added where all workers
are utilized above it. From then on its tuples go to its parts in turn (River), whatever their groups. No tuple waits,
and no state is sent, since each part begins with empty partial aggregates. Flux moves a part like any other partition.

Count, sum, minimum and maximum are distributive, so the order of tuples does not matter. At every interval the worker
of a part serializes the partial aggregates that have changed and sends them over the network for state; the
partition's own worker merges each at the cost of a tuple. The last part leaves when the others would be less than half
utilized by the threshold: it gets no more tuples, and is free once it is processed and merged.

Source: Flux, section 5.4, names the bottleneck; River, distributed queues; the rest is ours.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.names import Router
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.engine.queues import Job
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.movement.protocol import Movement
from adapt.core.stage.records.arrays import NONE, Records
from adapt.core.stage.records.world import RANK, RING, TOTAL, TURN


@dataclass(frozen=True, slots=True)
class HotSplit:
    """When a partition is split, and how often its parts are merged."""

    threshold: float = 0.5  # share of a worker's time above which a partition gets a further part
    every_s: float = 0.25  # interval of decisions, and of merges

    def __post_init__(self) -> None:
        if not (0 < self.threshold <= 1 and 0 < self.every_s < np.inf):
            raise UsageError(
                "a partition is split above a share of a worker's time from 0 to 100 %, and merged at intervals above"
                f" 0 s (got {self.threshold:.4g} and {self.every_s:g} s)"
            )

    def check(self, settings: StageSettings) -> None:
        """Check that the aggregates of a stage are distributive."""
        if settings.window or settings.growth is not None or settings.router is Router.RIVER:
            raise UsageError(
                "only distributive aggregates of all rows can be split; omit the join, the window, state that grows and"
                " router river"
            )

    def with_parts(self, settings: StageSettings) -> StageSettings:
        """A stage with free parts, two per worker."""
        workers = settings.workers
        free = np.repeat(np.arange(workers, dtype=np.int32), 2)
        sizes = np.concatenate([settings.state_sizes(), np.zeros(len(free), np.int64)])
        return replace(settings, owners=np.concatenate([settings.owners, free]), state_tuples=sizes)


@dataclass(slots=True)
class SplitReport:
    """What splitting did."""

    added: int = 0  # parts added
    removed: int = 0  # parts removed
    most: int = 1  # most parts of a partition at once, with itself
    merged: int = 0  # partial aggregates merged
    sent_bytes: int = 0  # bytes sent for them
    lag_s: float = 0.0  # longest time until a tuple was in the merged aggregates


class Splitting:
    """Splits hot partitions of a stage, and merges their parts."""

    def __init__(self, stage: Stage, movement: Movement, hot: HotSplit) -> None:
        """Begin with whole partitions, on a stage made by `HotSplit.with_parts`."""
        self._stage = stage
        self._movement = movement
        self._hot = hot
        self.report = SplitReport()
        n, partitions, partition_of = stage.settings.workers, stage.settings.partitions, stage.settings.partition_of
        self._whole = partitions - 2 * n
        self._groups = np.argsort(partition_of, kind="stable")
        self._firsts = np.searchsorted(partition_of[self._groups], np.arange(self._whole + 1))
        ranks = np.zeros(len(partition_of), RANK)
        ranks["place"][self._groups] = np.arange(len(ranks)) - self._firsts[partition_of[self._groups]]
        ring, turns = np.zeros(partitions, RING), np.zeros(n * partitions, TURN)
        ring["following"] = np.where(np.arange(partitions) < self._whole, np.arange(partitions), NONE)
        turns["part"] = np.tile(np.arange(partitions), n)
        self._places = int(np.diff(self._firsts).max())
        totals = np.zeros(len(ranks) + 2 * n * self._places, TOTAL)
        totals[:] = _nothing()
        for name, array in (("ring", ring), ("turn", turns), ("rank", ranks), ("total", totals)):
            stage.arrays.put(name, array)
        stage.arrays.world["splits"], stage.arrays.world["ranks"] = self._whole, self._places
        self._parts: dict[int, list[int]] = {}
        self._leaving: dict[int, int] = {}
        self._sent: dict[int, tuple[NDArray[np.int64], Records]] = {}
        self._merging: set[int] = set()
        self._began_s: dict[int, float] = {}
        self._seen = self._look()
        stage.after(hot.every_s, self._tick)

    @property
    def parts(self) -> dict[int, list[int]]:
        """Parts of the partitions that are split, the partition itself first."""
        return {partition: list(parts) for partition, parts in self._parts.items()}

    @property
    def merged(self) -> bool:
        """Whether the partitions themselves have all aggregates."""
        firsts = len(self._groups)
        return not self._merging and not self._stage.arrays["total"]["count"][firsts:].any()

    def totals(self) -> Records:
        """Aggregates of each group over all parts, shape (groups,)."""
        arrays, count = self._stage.arrays, len(self._groups)
        totals = arrays["total"][:count].copy()
        for partition, part in self._all_parts():
            groups, partial_totals = self._groups_of(partition), self._partials(partition, part)
            _add(totals, groups, partial_totals)
        for groups, sent in self._sent.values():
            _add(totals, groups, sent)
        return totals

    def _tick(self) -> None:
        self._decide()
        for partition, part in self._all_parts():
            self._merge(partition, part)
        for part in list(self._leaving):
            self._free(part)
        self._stage.after(self._hot.every_s, self._tick)

    def _decide(self) -> None:
        """Add or remove a part of each partition by its share of its workers' time."""
        stage, threshold = self._stage, self._hot.threshold
        since_s, idle_s, processed, before = self._seen
        self._seen = self._look()
        done, owners = self._seen[2] - processed, stage.arrays["partition"]["owner"]
        used = 1 - (self._seen[1] - idle_s) / (stage.now_s - since_s)
        by_worker = np.bincount(owners, done, stage.settings.workers)
        shares = used[owners] * done / np.maximum(by_worker, 1)[owners]
        # the worker of a partition that has moved did not process all of it
        shares = np.where(owners == before, shares, used.sum() * done / max(done.sum(), 1))
        hot = np.flatnonzero(shares[: self._whole] > threshold).tolist()
        for partition in sorted({*hot, *self._parts}):
            parts = self._parts.get(partition, [partition])
            load = float(shares[parts].sum())
            if load > threshold * len(parts):
                others = [one for one in range(stage.settings.workers) if one not in owners[parts]]
                receiver = min(others, key=lambda worker: (used[worker], worker), default=None)
                if receiver is not None and used[receiver] < threshold:
                    self._split(partition, receiver)
                    used[receiver] += load / (len(parts) + 1)
            elif load < threshold * (len(parts) - 1) / 2:
                self._leave(partition)

    def _split(self, partition: int, receiver: int) -> None:
        """Give a partition a further part, if one is free."""
        arrays = self._stage.arrays
        following = arrays["ring"]["following"]
        free = (one for one in np.flatnonzero(following == NONE).tolist() if not self._movement.moves(one))
        part = next(free, None)
        if part is None:
            return
        parts = self._parts.setdefault(partition, [partition])
        arrays["partition"]["owner"][part] = receiver
        arrays["state"]["bytes"][part] = len(self._groups_of(partition)) * self._stage.settings.costs.tuple_bytes
        following[parts[-1]], following[part] = part, partition
        parts.append(part)
        self._began_s[part] = self._stage.now_s
        self.report.added += 1
        self.report.most = max(self.report.most, len(parts))

    def _leave(self, partition: int) -> None:
        """Give the last part of a partition no more tuples."""
        parts, arrays = self._parts[partition], self._stage.arrays
        part = parts.pop()
        arrays["ring"]["following"][parts[-1]] = partition
        turns = arrays["turn"]["part"]
        turns[turns == part] = partition
        turns.reshape(-1, self._stage.settings.partitions)[:, part] = part
        self._leaving[part] = partition
        if len(parts) == 1:
            del self._parts[partition]
        self.report.removed += 1

    def _free(self, part: int) -> None:
        """Free a part without tuples and partial aggregates."""
        arrays, partitions = self._stage.arrays, self._stage.settings.partitions
        waiting = arrays["flow"]["head"][part::partitions] != NONE
        if waiting.any() or arrays["partition"]["in_flight"][part] or self._movement.moves(part):
            return
        if part not in self._merging and not self._partials(self._leaving[part], part)["count"].any():
            del self._leaving[part]
            arrays["ring"]["following"][part] = NONE
            arrays["state"]["bytes"][part] = 0

    def _merge(self, partition: int, part: int) -> None:
        """Let the worker of a part serialize what has changed."""
        changed = int(np.count_nonzero(self._partials(partition, part)["count"]))
        if part in self._merging or changed == 0 or self._movement.moves(part):
            return
        self._merging.add(part)
        costs, owner = self._stage.settings.costs, int(self._stage.arrays["partition"]["owner"][part])
        cpu_s = changed * (costs.marshal_s + costs.produce_s)
        self._stage.do(owner, Job(0.0, cpu_s, partial(self._send, partition, part, owner)))

    def _send(self, partition: int, part: int, owner: int) -> None:
        kept = self._partials(partition, part)
        changed = np.flatnonzero(kept["count"])
        self._sent[part] = self._groups_of(partition)[changed], kept[changed]
        kept[changed] = _nothing()
        size = len(changed) * self._stage.settings.costs.tuple_bytes
        self.report.sent_bytes += size
        began_s, self._began_s[part] = self._began_s[part], self._stage.now_s
        self._movement.network.send(owner, size * 8.0, partial(self._arrive, partition, part, began_s))

    def _arrive(self, partition: int, part: int, began_s: float) -> None:
        """Let the worker of the partition merge, once it does not move."""
        if self._movement.moves(partition):
            self._stage.after(self._hot.every_s, partial(self._arrive, partition, part, began_s))
            return
        costs, owner = self._stage.settings.costs, int(self._stage.arrays["partition"]["owner"][partition])
        cpu_s = len(self._sent[part][0]) * (costs.marshal_s + costs.service_s)
        self._stage.do(owner, Job(0.0, cpu_s, partial(self._fold, part, began_s)))

    def _fold(self, part: int, began_s: float) -> None:
        groups, sent = self._sent.pop(part)
        _add(self._stage.arrays["total"], groups, sent)
        self._merging.discard(part)
        self.report.merged += len(groups)
        self.report.lag_s = max(self.report.lag_s, self._stage.now_s - began_s)

    def _all_parts(self) -> list[tuple[int, int]]:
        """Partition and number of each part besides the partition itself, those that leave last."""
        held = [(partition, part) for partition, parts in self._parts.items() for part in parts[1:]]
        return [*held, *((partition, part) for part, partition in self._leaving.items())]

    def _groups_of(self, partition: int) -> NDArray[np.int64]:
        return self._groups[self._firsts[partition] : self._firsts[partition + 1]]

    def _partials(self, partition: int, part: int) -> Records:
        """Partial aggregates of a part, by group of the partition; a view."""
        first = len(self._groups) + (part - self._whole) * self._places
        return self._stage.arrays["total"][first : first + len(self._groups_of(partition))]

    def _look(self) -> tuple[float, NDArray[np.float64], Records, Records]:
        """Time, idle seconds of each worker, and processed tuples and worker of each partition."""
        partitions = self._stage.arrays["partition"]
        return self._stage.now_s, self._stage.idle_s(), partitions["processed"].copy(), partitions["owner"].copy()


def _nothing() -> Records:
    """The aggregates of no tuple."""
    limits = np.iinfo(np.int64)
    return np.array((0, 0, limits.max, limits.min), TOTAL)


def _add(totals: Records, groups: NDArray[np.int64], further: Records) -> None:
    """Merge aggregates of distinct groups into those of all groups."""
    totals["count"][groups] += further["count"]
    totals["sum"][groups] += further["sum"]
    totals["least"][groups] = np.minimum(totals["least"][groups], further["least"])
    totals["most"][groups] = np.maximum(totals["most"][groups], further["most"])
