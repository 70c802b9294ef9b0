"""The verdict on a join."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from adapt.core.joins.adaptive import ADVISORY, BROADCAST, FACTOR, PARTITIONS, THRESHOLD
from adapt.core.joins.remedies import Judged, Remedy
from adapt.core.keys.key_text import key_to_text
from adapt.core.phrases import counted, listed, percent
from adapt.core.table import Column, Displayed, Kind, Table
from adapt.core.values import size, visible
from adapt.core.verdict.first_screen import Status

SCHEMA = "adapt.join/1"

_OFTEN = 2  # a key is hot in an input that has it in more than this many times the mean rows of a key
_SHOWN = 3  # hot keys


@dataclass(frozen=True, slots=True, repr=False)
class JoinVerdict(Displayed):
    """The verdict on a join in Spark."""

    judged: Judged
    is_default: bool  # whether the number of partitions is Spark's default

    @property
    def status(self) -> Status:
        """What is asked for, in a word."""
        return Status.FINE if self.judged.best.way in ("nothing", "adaptive") else Status.ACT

    @property
    def headline(self) -> str:
        """The action, and why."""
        judged, best = self.judged, self.judged.best
        times = judged.remedies[0].work / judged.mean
        largest = f"the largest of {self.judged.partitions:,} tasks has {times:.2f} times the mean work"
        if judged.is_broadcast:
            small, limit = judged.smaller, f"{BROADCAST} is {size(judged.settings.broadcast)}"
            told = f"Spark broadcasts {small.name} of {size(small.stored or 0)} ({limit})"
            if best.way == "nothing":
                return f"Nothing to do: {told}"
            large, readers = judged.larger.name, judged.readers or 1
            few = f"at most {readers:,} tasks read" if readers > 1 else "one task reads"
            write = "write" if readers > 1 else "writes"
            return f"{best.words[:1].upper()}{best.words[1:]}: {told}, and {few} {large} and {write} all pairs"
        if best.way == "nothing":
            return f"Nothing to do: {largest}{'' if len(judged.hot) else ', and no key is hot'}"
        if best.way == "adaptive":
            return f"Nothing to do: {largest}, and adaptive execution splits it"
        then = "then nothing is shuffled" if best.way == "broadcast" else f"then {best.work / judged.mean:.2f}"
        return f"{best.words[:1].upper()}{best.words[1:]}: {largest}, {then}"

    @property
    def said(self) -> list[str]:
        """The verdict in words."""
        shuffled = [] if self.judged.is_broadcast else [self._largest(), *self._adaptive()]
        return [self.headline, self._pairs(), *self._hot(), *shuffled, *self._sides()]

    def _pairs(self) -> str:
        join, (left, right) = self.judged.join, self.judged.join.sides
        on = listed(left.key) if left.key == right.key else f"{listed(left.key)} = {listed(right.key)}"
        return (
            f"{counted(left.rows, 'row')} of {left.name} and {counted(right.rows, 'row')} of {right.name} make"
            f" {counted(int(join.pairs.sum()), 'pair')} by {on}; {np.count_nonzero(join.pairs):,} of"
            f" {counted(len(join.keys), 'key')} are in both."
        )

    def _hot(self) -> list[str]:
        judged, join, told = self.judged, self.judged.join, list[str]()
        for key in judged.hot[:_SHOWN].tolist():
            share = percent(float(join.loads[:, key].sum()) / float(judged.tasks.work.sum()))
            text = visible(key_to_text(join.keys[key].as_py()))
            told.append(f"{text} {share} ({join.loads[0, key]:,} x {join.loads[1, key]:,})")
        hot = [
            side.name
            for side, rows in zip(join.sides, join.loads[:2], strict=True)
            if told and rows[judged.hot].max() > _OFTEN * rows[rows > 0].mean()
        ]
        more = f" and {len(judged.hot) - _SHOWN:,} more" if len(judged.hot) > _SHOWN else ""
        skew = f"hot in {listed(hot) or 'neither input alone'}"
        return [f"Hot keys by share of the work: {', '.join(told)}{more}; {skew}."] if told else []

    def _largest(self) -> str:
        tasks, (left, right) = self.judged.tasks, self.judged.join.sides
        at, sizes = int(tasks.work.argmax()), ""
        if left.bytes_a_row is not None and right.bytes_a_row is not None:
            each = tasks.loads[0] * left.bytes_a_row + tasks.loads[1] * right.bytes_a_row
            sizes = f", about {size(float(each[at]))} where the mean is {size(float(each.mean()))}"
        rows, pairs = (f"({each[at] / each.mean():.2f} times the mean)" for each in (tasks.rows, tasks.pairs))
        return (
            f"The largest task reads {tasks.rows[at]:,.0f} rows {rows}{sizes}, and writes {tasks.pairs[at]:,.0f} pairs"
            f" {pairs}."
        )

    def _adaptive(self) -> list[str]:
        settings, found = self.judged.settings, self.judged.adapted
        limit = f"{THRESHOLD} ({size(settings.threshold)})"
        if not settings.is_on:
            return ["Adaptive execution of skewed joins is off."]
        if found is None:
            more = f"it splits what is above {limit} and {settings.factor:g} times the median"
            return [f"Whether adaptive execution splits it is not known, as sizes are not: {more}."]
        if found.splits:
            then = f"{found.tasks.rows.max():,.0f} rows and writes {found.tasks.pairs.max():,.0f} pairs"
            return [f"Adaptive execution splits {counted(found.splits, 'partition')}; then the largest reads {then}."]
        at = int(found.right.sizes.max() > found.left.sizes.max())
        side, splits = self.judged.join.sides[at], (found.left, found.right)[at]
        largest = float(splits.sizes.max())
        why = f"which too few map tasks wrote to be cut; read {side.name} in more tasks"
        if largest <= splits.limit:
            why = f"under {settings.factor:g} times the median ({size(splits.median)}); set {FACTOR} lower"
        if largest <= settings.threshold:
            why = f"under {limit}; set it below, and {ADVISORY} too"
        of = f"the largest partition of {side.name} has about {size(largest)}"
        return [f"Adaptive execution does not split it: {of}, {why}."]

    def _sides(self) -> Iterator[str]:
        join, largest = self.judged.join, self.judged.null_rows
        unique = [each.name for each in join.sides if each.is_unique]
        yield f"No key occurs twice in {listed(unique)}." if unique else "Keys recur in both inputs: pairs multiply."
        lone = [int(rows[join.pairs == 0].sum()) for rows in join.loads[:2]]
        alone = [f"{rows:,} rows of {side.name}" for side, rows in zip(join.sides, lone, strict=True) if rows]
        if alone:
            yield f"Without a partner: {listed(alone)}."
        if nulls := [f"{each.nulls:,} rows of {each.name}" for each in join.sides if each.nulls]:
            left = f"; a left join reads them in one task, and then one has {largest:,.0f} rows" if largest else ""
            yield f"Without a key: {listed(nulls)}, which an inner join drops before the shuffle{left}."
        sizes = [f"{each.bytes_a_row:.0f} bytes a row of {each.name}" for each in join.sides if each.bytes_a_row]
        assumed = [f"{listed(sizes)}, as in the source and all alike"] if sizes else []
        assumed += [f"{PARTITIONS} is Spark's default, {self.judged.partitions:,}"] if self.is_default else []
        if assumed:
            yield f"Assumed: {'; '.join(assumed)}."
        yield from (f"{each[:1].upper()}{each[1:]}." for side in join.sides for each in side.notes)
        yield "The code gives the rows of an inner join; an outer join also keeps rows without a key or a partner."

    @property
    def pasted(self) -> str:
        """The recommended remedy as code."""
        best = self.judged.best
        if best.way in ("nothing", "adaptive"):
            return ""
        sql = "".join(f"# {line}\n" for line in best.code.sql.splitlines())
        return f"# {best.words}: the rows of an inner join\n{best.code.pyspark}\n# The same in SQL:\n{sql}"

    def displayed(self) -> Sequence[Table]:
        """The remedies."""
        columns = [
            Column("remedy"),
            Column("rows", Kind.COUNT, about="rows that the largest task reads"),
            Column("rows/mean", Kind.RATIO, about="the same over today's mean"),
            Column("pairs", Kind.COUNT, about="rows that the task with most writes"),
            Column("pairs/mean", Kind.RATIO, about="the same over today's mean"),
            Column("copied", Kind.COUNT, about="rows read more than once, or sent to each executor"),
            Column("needs", about="what it needs"),
        ]
        return [Table.from_rows("Remedies (* recommended)", columns, map(_row, self.judged.remedies))]

    def as_data(self) -> dict[str, Any]:
        """One JSON document."""
        judged, join, found = self.judged, self.judged.join, self.judged.adapted
        loads, hot = judged.tasks, join.loads[:2, judged.hot].T.tolist()
        largest = {"rows": float(loads.rows.max()), "pairs": float(loads.pairs.max())}
        mean = {"rows": float(loads.rows.mean()), "pairs": float(loads.pairs.mean())}
        return {
            "schema": SCHEMA,
            "status": self.status.value,
            "headline": self.headline,
            "sentences": self.said[1:],
            "partitions": self.judged.partitions,
            "left": join.left.as_data(),
            "right": join.right.as_data(),
            "pairs": int(join.pairs.sum()),
            "keys": len(join.keys),
            "common_keys": int(np.count_nonzero(join.pairs)),
            "largest": None if judged.is_broadcast else largest,
            "mean": None if judged.is_broadcast else mean,
            "hot_keys": [
                {"key": key_to_text(join.keys[key].as_py()), "left": rows[0], "right": rows[1]}
                for key, rows in zip(judged.hot.tolist(), hot, strict=True)
            ],
            "adaptive_splits": None if found is None else found.splits,
            "remedies": [asdict(each) for each in judged.remedies],
        }


def _row(remedy: Remedy) -> list[Any]:
    whole = [None if each is None else round(each) for each in (remedy.largest_rows, remedy.largest_pairs)]
    name = f"{remedy.words}{' *' if remedy.recommended else ''}"
    return [name, whole[0], remedy.rows_times, whole[1], remedy.pairs_times, remedy.copied, remedy.needs]
