"""Remedies of a skewed join, compared on its keys."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.engines.spark.hash import SEED, salted_hashes, spark_hash_of_bytes
from adapt.core.joins.adaptive import MIB, PARTITIONS, Adaptive, adapted
from adapt.core.joins.code import Code, Writer
from adapt.core.joins.loads import Join, Side, Tasks
from adapt.core.keys.columns import key_bytes
from adapt.core.phrases import counted
from adapt.core.values import size

MOST_HOT = 100  # hot keys that are treated apart
MOST_BROADCAST = 100 * MIB  # bytes that are sent to every executor
MOST_ROWS = 1_000_000  # the same in rows, where sizes are not known
MANY_PAIRS = 1_000_000  # pairs of one task that are worth a shuffle of the rows
LEAST_SPLIT = 4 * MIB  # bytes of a file that a task reads, at least: spark.sql.files.openCostInBytes
_HOT = 0.5  # a hot key has at least this share of a mean task's work
_MOST_SALTS = 512
_AS_GOOD = 1.05


Way: TypeAlias = Literal["nothing", "adaptive", "broadcast", "split", "salt", "partitions", "nulls", "spread"]
ORDER: tuple[Way, ...] = ("adaptive", "broadcast", "split", "salt", "partitions")  # the first that is good enough


@dataclass(frozen=True, slots=True)
class Remedy:
    """A remedy, and what the largest task is with it."""

    way: Way
    words: str
    largest_rows: float | None  # rows that the largest task reads; None without a shuffle
    rows_times: float | None  # the same over today's mean
    largest_pairs: float | None  # rows that the task with most writes
    pairs_times: float | None
    work: float  # most rows read and pairs written by a task
    copied: int  # rows that are read more than once, or sent to each executor
    needs: str
    code: Code
    fits: bool = True  # whether it may be recommended: what is broadcast is small
    recommended: bool = False


class Judged:
    """A join with its remedies, of which one is recommended."""

    def __init__(self, join: Join, partitions: int, limit: float, settings: Adaptive) -> None:
        """Compare remedies; up to `limit` times the mean work of a task is accepted."""
        self.join, self.settings, self.partitions = join, settings, partitions
        self._hashes = spark_hash_of_bytes(key_bytes(join.keys), join.left.key_type)
        self.tasks = Tasks.of(join.loads, self._hashes, partitions)
        self.mean = float(self.tasks.work.mean())
        self._most = limit * self.mean
        self.hot = _hot_keys(join, np.mod(self._hashes, np.int32(partitions)), self.tasks, self._most)
        self.adapted = adapted(join.left, join.right, self.tasks, settings)
        self._writer = Writer(join, self.hot)
        known = join.left.bytes is not None and join.right.bytes is not None
        sides = (join.right, join.left)  # of equal ones, Spark takes the right
        self.smaller, self.larger = sorted(sides, key=lambda each: (each.bytes or 0) if known else each.rows)
        self.is_broadcast = self.smaller.stored is not None and self.smaller.stored <= settings.broadcast
        if self.is_broadcast:
            found = [*self._of_broadcast()]
            self.best = found[int(self.few_readers)]
        else:
            found = [*self._as_it_is(), *(self._of_hot() if len(self.hot) else ()), *self._others()]
            self.best = self._recommended(found)
        self.remedies = [replace(each, recommended=each is self.best) for each in found]

    @property
    def null_rows(self) -> float | None:
        """Rows of the largest task of a left join with null keys."""
        nulls, rows = self.join.left.nulls, self.tasks.rows
        return float(max(rows.max(), rows[SEED % self.partitions] + nulls)) if nulls else None

    @property
    def readers(self) -> int | None:
        """Tasks that read the larger input at most, if known."""
        each = self.larger
        return None if each.stored is None else each.stored // LEAST_SPLIT + each.files

    @property
    def few_readers(self) -> bool:
        """Whether a broadcast join has so few tasks that a shuffle pays."""
        readers = self.readers or self.partitions
        pairs = int(self.join.pairs.sum())
        return readers < self.partitions and pairs > max(MANY_PAIRS * readers, 10 * self.larger.rows)

    def _remedy(self, way: Way, words: str, tasks: Tasks, copied: int, needs: str, code: Code) -> Remedy:
        most, now = [float(each.max()) for each in (tasks.rows, tasks.pairs)], self.tasks
        times = [each / float(mean.mean()) for each, mean in zip(most, (now.rows, now.pairs), strict=True)]
        return Remedy(way, words, most[0], times[0], most[1], times[1], float(tasks.work.max()), copied, needs, code)

    def _as_it_is(self) -> Iterator[Remedy]:
        code, found = self._writer.with_settings({}), self.adapted
        yield self._remedy("nothing", "nothing", self.tasks, 0, "", code)
        if found is not None and found.splits:
            yield self._remedy("adaptive", "adaptive execution, as it is", found.tasks, found.copied, "", code)

    def _of_broadcast(self) -> Iterator[Remedy]:
        """A join of which Spark broadcasts the smaller input; the other's rows are not shuffled."""
        parts, larger, pairs = self.partitions, self.larger, float(self.join.pairs.sum())
        code, known = self._writer.with_settings({}), self.readers == 1
        rows, written = (float(larger.rows), pairs) if known else (None, None)
        yield Remedy("nothing", "nothing", rows, None, written, None, self.mean, 0, "", code)
        code, needs = self._writer.spread(parts, int(larger is self.join.right)), f"a shuffle of {larger.name}"
        words, mean = f"repartition {larger.name} to {parts:,} tasks", (larger.rows + pairs) / parts
        yield Remedy("spread", words, larger.rows / parts, None, pairs / parts, None, mean, 0, needs, code)

    def _of_hot(self) -> Iterator[Remedy]:
        """Hot keys joined apart, and salted: the input with fewer hot rows is copied."""
        loads, parts = self.join.loads, self.partitions
        own = loads[:, self.hot]
        small, side = (1, self.join.right) if own[0].sum() >= own[1].sum() else (0, self.join.left)
        few, words = int(own[small].sum()), counted(len(self.hot), "hot key")
        cold = loads.copy()
        cold[:, self.hot] = 0
        here = np.repeat(own.sum(axis=1, keepdims=True) / parts, parts, axis=1)
        here[small] = 0
        apart = Tasks(np.hstack([Tasks.of(cold, self._hashes, parts).loads, here]))
        code = self._writer.split_hot(parts, small)
        told = f"split {words}, broadcast their {counted(few, 'row')} of {side.name}"
        found = self._remedy("split", told, apart, few, "memory for them", code)
        yield replace(found, fits=self._fit(side, few))
        salts, tasks = self._salted(cold, own, small)
        name = (self.join.left if small else self.join.right).name
        code = self._writer.salted(salts, 1 - small)
        yield self._remedy("salt", f"salt {words} of {name} {salts} ways", tasks, few * (salts - 1), "", code)

    def _salted(self, cold: NDArray[np.int64], hot: NDArray[np.int64], copied: int) -> tuple[int, Tasks]:
        """The fewest salts that suffice, or the best, and the tasks; each salt has all rows of the copied input."""
        parts = self.partitions
        others = Tasks.of(cold, salted_hashes(self._hashes, 0), parts).loads
        found, salts = list[tuple[int, Tasks]](), 2
        while salts <= min(_MOST_SALTS, 4 * parts) and not (found and found[-1][1].work.max() <= self._most):
            hashes = [salted_hashes(self._hashes[self.hot], salt) for salt in range(salts)]
            share = hot / salts
            share[copied] = hot[copied]
            placed = Tasks.of(np.tile(share, salts), np.concatenate(hashes), parts)
            found.append((salts, Tasks(others + placed.loads)))
            salts *= 2
        return min(found, key=lambda each: float(each[1].work.max()))

    def _others(self) -> Iterator[Remedy]:
        small, writer = self.smaller, self._writer
        needs = f"{size(small.bytes) if small.bytes else counted(small.rows, 'row')} in memory"
        code, fits = writer.broadcast(int(small is self.join.right)), small.bytes is not None
        words = f"broadcast {small.name}"
        found = Remedy("broadcast", words, None, None, None, None, self.mean, small.rows, needs, code)
        yield replace(found, fits=fits and self._fit(small, small.rows))
        tried = []
        for more in (2 * self.partitions, 4 * self.partitions, 8 * self.partitions):
            tasks = Tasks.of(self.join.loads, self._hashes, more)
            code = writer.with_settings({PARTITIONS: str(more)})
            tried.append(self._remedy("partitions", f"{more:,} shuffle partitions", tasks, 0, "", code))
        yield min(tried, key=lambda each: each.work)
        if self.null_rows is not None:
            words, code = "a left join, null keys apart", writer.nulls_apart()
            yield replace(self._remedy("nulls", words, self.tasks, 0, "a left join", code), fits=False)

    def _recommended(self, remedies: list[Remedy]) -> Remedy:
        nothing = remedies[0]
        fit = [each for way in ORDER for each in remedies if each.way == way and each.fits]
        least = min((each.work for each in fit), default=nothing.work)
        if nothing.work <= self._most or self.is_broadcast or not len(self.hot) or least >= nothing.work:
            return nothing
        return next(each for each in fit if each.work <= max(self._most, _AS_GOOD * least))

    def _fit(self, side: Side, rows: int) -> bool:
        each = side.bytes_a_row
        return rows <= MOST_ROWS if each is None else rows * each <= MOST_BROADCAST


def _hot_keys(join: Join, channels: NDArray[np.int32], tasks: Tasks, most: float) -> NDArray[np.int64]:
    """Keys to take out of the busiest tasks, one after the other, until none is above a limit."""
    own, work, waiting = join.loads.sum(axis=0), tasks.work.copy(), dict[int, list[int]]()
    heavy = np.flatnonzero((own >= _HOT * float(work.mean())) & (join.pairs > 0))
    for key in heavy[np.lexsort((heavy, own[heavy]))].tolist():
        waiting.setdefault(int(channels[key]), []).append(key)
    found: list[int] = []
    while len(found) < MOST_HOT:
        busiest = int(work.argmax())
        if work[busiest] <= most or not waiting.get(busiest):
            break
        found.append(waiting[busiest].pop())
        work[busiest] -= own[found[-1]]
    return np.array(found, np.int64)
