"""Stages of an application, ranked by the gain of even tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapt.core.phrases import counted, listed, percent
from adapt.core.spark_stages.adaptive import effect_of_adaptive
from adapt.core.spark_stages.pasted import pyspark_code
from adapt.core.spark_stages.plan import Operator
from adapt.core.spark_stages.tasks import Cause, TimesOfTasks
from adapt.core.table import Column, Kind, Table
from adapt.core.values import duration, size, visible
from adapt.core.verdict.first_screen import Status

MOST_ROWS = 8
"""Stages of a table that is not asked for in full."""

LEAST = 0.01
"""Share of the application's task time below which nothing is won."""


@dataclass(frozen=True, slots=True)
class StageRun:
    """A run of a stage: its last attempt."""

    number: int
    name: str
    call_site: str  # of its query, or of the stage
    operator: Operator | None
    times: TimesOfTasks
    conf: Mapping[str, str]  # properties of the application and query

    @property
    def kind(self) -> tuple[str, str]:
        """What runs of one stage have in common: name and operator."""
        return self.name, str(self.operator or "")

    @property
    def label(self) -> str:
        """Its join or aggregation in words, or else its name."""
        return visible(str(self.operator or self.name))

    @property
    def code(self) -> str:
        """Code to paste; empty without a remedy for skewed data."""
        if self.operator is None or self.times.cause is not Cause.DATA:
            return ""
        code, changes = (
            pyspark_code(self.operator, self.times),
            effect_of_adaptive(self.operator, self.times, self.conf)[1],
        )
        lines = [f'{"# " if code else ""}spark.conf.set("{name}", "{value}")\n' for name, value in changes.items()]
        return code + "".join(["# Or let adaptive execution split it:\n", *lines] if code and lines else lines)

    @property
    def evidence(self) -> list[str]:
        """Cause, spill and adaptive execution, and advice without code."""
        times, operator, longest = self.times, self.operator, self.times.longest
        named = {"rows": times.rows, "bytes": times.read_bytes, "output rows": times.pairs}
        ratios = listed([f"{each.ratio:.3g} times the mean's {what}" for what, each in named.items() if each.mean])
        said = [
            {
                Cause.DATA: f"It has {ratios}: its data is skewed.",
                Cause.COLLECTION: f"Garbage collection takes {duration(longest.collection_ms / 1e3)} of it; its data is"
                f" even: it has {ratios}.",
                Cause.HOST: f"Its data is even: it has {ratios}. Other tasks of its host {visible(longest.host)} take"
                f" {times.slow_host:.3g} times as long for a row, so another key wins nothing.",
                Cause.UNKNOWN: "Neither garbage collection nor its host explains it, nor does its data:"
                f" {'it has ' + ratios if ratios else 'the log has no rows of it'}. Another key wins nothing.",
            }[times.cause],
            *([f"It spilled {size(longest.spilled_bytes)}."] if longest.spilled_bytes else []),
            *([effect_of_adaptive(operator, times, self.conf)[0]] if operator else []),
        ]
        if times.cause is Cause.DATA and not self.code:
            said.append(_WITHOUT_CODE if operator is None else operator.advice)
        return said


_WITHOUT_CODE = "It reads no shuffle by key that the log shows: cut its input into even splits."


@dataclass(frozen=True, slots=True)
class RankedStage:
    """All runs of a stage, such as micro-batches."""

    worst: StageRun  # with most to win
    runs: int
    won_s: float  # by even tasks, over all runs

    def as_data(self) -> dict[str, Any]:
        """JSON data."""
        run, times = self.worst, self.worst.times
        amounts = {"seconds": times.seconds, "rows": times.rows, "bytes": times.read_bytes}
        return {
            "stage": run.number,
            "name": run.name,
            "call_site": run.call_site,
            "runs": self.runs,
            "operator": str(run.operator or ""),
            "keys": [list(keys) for keys in run.operator.keys] if run.operator else [],
            "won_s": self.won_s,
            "tasks": times.tasks,
            "slots": times.slots,
            **{name: {"longest": of.longest, "mean": of.mean} for name, of in amounts.items()},
            "spilled_bytes": times.longest.spilled_bytes,
            "collection_s": times.longest.collection_ms / 1e3,
            "cause": times.cause.value,
            "adaptive": effect_of_adaptive(run.operator, times, run.conf)[0] if run.operator else None,
        }


@dataclass(frozen=True, slots=True)
class StagesAnswer:
    """The stages of an application, ranked by the gain of even tasks."""

    stages: tuple[RankedStage, ...]  # most to win first; at least one
    task_s: float  # time in which any task ran

    @classmethod
    def of(cls, runs: Sequence[StageRun], first: str = "") -> "StagesAnswer":
        """Of the runs of an application's stages, at least one.

        Args:
            first: Name or number of a stage that comes first, however much it wins.
        """
        groups: dict[tuple[str, str], list[StageRun]] = {}
        for run in runs:
            groups.setdefault(run.kind, []).append(run)
        stages = [
            RankedStage(max(each, key=lambda run: run.times.won_s), len(each), sum(run.times.won_s for run in each))
            for each in groups.values()
        ]
        named = {run.kind for run in runs if first in (run.name, str(run.number))}
        stages.sort(key=lambda each: (each.worst.kind not in named, -each.won_s))
        task_s, until = 0.0, float("-inf")
        for start, end in sorted(run.times.span_s for run in runs):
            task_s, until = task_s + max(0.0, end - max(start, until)), max(until, end)
        return cls(tuple(stages), task_s)

    @property
    def share(self) -> float:
        """What the first stage wins, of the application's task time."""
        return self.stages[0].won_s / self.task_s if self.task_s else 0.0

    @property
    def status(self) -> Status:
        """What is asked for, in a word."""
        if self.share < LEAST:
            return Status.FINE
        return Status.UNCERTAIN if self.stages[0].worst.times.cause is Cause.UNKNOWN else Status.ACT

    @property
    def is_skewed(self) -> bool:
        """Whether even data wins."""
        return self.share >= LEAST and self.stages[0].worst.times.cause is Cause.DATA

    @property
    def headline(self) -> str:
        """The action, and what it wins."""
        run = self.stages[0].worst
        wins = f"{duration(self.stages[0].won_s)}, {percent(self.share)} of the application's task time"
        where = f"stage {run.number} ({run.label})"
        if self.share < LEAST:
            return f"Nothing to win: even tasks of {where} would win {wins}"
        action = {
            Cause.DATA: f"Spread the data of {where}",
            Cause.COLLECTION: f"Give the executors of {where} more memory",
            Cause.HOST: f"Replace host {visible(run.times.longest.host)}, which slows {where}",
            Cause.UNKNOWN: f"Profile the longest task of {where}",
        }[run.times.cause]
        return f"{action}: even tasks would win {wins}"

    @property
    def sentences(self) -> list[str]:
        """Evidence of the first stage."""
        run, runs, task = self.stages[0].worst, self.stages[0].runs, self.stages[0].worst.times.seconds
        of_runs = f" in the worst of {runs:,} runs" if runs > 1 else ""
        longest = f"the longest of {counted(run.times.tasks, 'task')} takes {duration(task.longest)}{of_runs}"
        at_once = f"{counted(run.times.slots, 'task')} ran at once"
        said = f"{visible(run.call_site)}: {longest}, {task.ratio:.3g} times the mean; {at_once}."
        return [said, *(run.evidence if self.share >= LEAST else [])]

    @property
    def code(self) -> str:
        """Code to paste for the first stage; empty without any."""
        return self.stages[0].worst.code if self.share >= LEAST else ""

    def table(self, *, every: bool) -> Table:
        """Stages, most to win first."""
        columns = (
            Column("stage", about="of the run with most to win"),
            Column("operator"),
            Column("won", Kind.SECONDS, about="what even tasks would win, over all runs"),
            Column("tasks", Kind.COUNT),
            Column("longest", Kind.SECONDS, about="longest task"),
            Column("of mean", Kind.RATIO, about="its time over the mean"),
            Column("rows", Kind.RATIO, about="its rows over the mean"),
            Column("bytes", Kind.RATIO, about="its bytes over the mean"),
            Column("spilled", Kind.BYTES, about="by the longest task"),
            Column("cause"),
        )
        rows = []
        for each in self.stages if every else self.stages[:MOST_ROWS]:
            run, of, cause = each.worst, each.worst.times, each.worst.times.cause.value
            ratios = of.seconds.ratio, of.rows.ratio or None, of.read_bytes.ratio or None
            found = (of.tasks, of.seconds.longest, *ratios, of.longest.spilled_bytes)
            cause = cause if each.won_s >= LEAST * self.task_s else ""
            rows.append((str(run.number), run.label, each.won_s, *found, cause))
        rest = len(self.stages) - len(rows)
        note = f"{counted(rest, 'more stage')}: --all" if rest else ""
        return Table.from_rows("Stages by what even tasks would win", columns, rows, note).without_zeros(["spilled"])

    def as_data(self) -> dict[str, Any]:
        """JSON data."""
        ranked = [each.as_data() for each in self.stages]
        return {"task_s": self.task_s, "won_share": self.share, "ranked": ranked, "code": self.code}
