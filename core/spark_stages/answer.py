"""Stages of an application, ranked by the gain of even tasks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adapt.core.phrases import counted, listed, percent
from adapt.core.spark_stages.adaptive import Adaptive, Settings
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
    settings: Settings


@dataclass(frozen=True, slots=True)
class RankedStage:
    """All runs of a stage, such as micro-batches."""

    runs: tuple[StageRun, ...]

    @property
    def worst(self) -> StageRun:
        """The run with most to win."""
        return max(self.runs, key=lambda run: (run.times.won_s, run.times.work_s))

    @property
    def won_s(self) -> float:
        """What even tasks win, over all runs."""
        return sum(run.times.won_s for run in self.runs)

    @property
    def operator(self) -> str:
        """Its join or aggregation, in words; empty if not known."""
        operator = self.worst.operator
        return "" if operator is None else visible(str(operator))

    @property
    def adaptive(self) -> Adaptive | None:
        """What adaptive execution did; None where no operator is known."""
        run = self.worst
        return None if run.operator is None else Adaptive.of(run.operator, run.times, run.settings)

    @property
    def code(self) -> str:
        """Code to paste; empty without a remedy for skewed data."""
        run, adaptive = self.worst, self.adaptive
        if run.operator is None or adaptive is None or run.times.cause is not Cause.DATA:
            return ""
        code = pyspark_code(run.operator, run.times)
        lines = [f'spark.conf.set("{name}", "{value}")\n' for name, value in adaptive.changes.items()]
        if not lines:
            return code
        first = "# Or let adaptive execution split the partition:\n" if code else ""
        return code + first + "".join(f"# {line}" if code else line for line in lines)

    def as_data(self) -> dict[str, Any]:
        """JSON data."""
        run, times, adaptive = self.worst, self.worst.times, self.adaptive
        return {
            "stage": run.number,
            "name": run.name,
            "call_site": run.call_site,
            "runs": len(self.runs),
            "operator": self.operator,
            "keys": [] if run.operator is None else [list(keys) for keys in run.operator.keys],
            "won_s": self.won_s,
            "tasks": times.tasks,
            "slots": times.slots,
            "work_s": sum(each.times.work_s for each in self.runs),
            "longest_s": times.seconds.longest,
            "mean_s": times.seconds.mean,
            "rows": {"longest": times.rows.longest, "mean": times.rows.mean},
            "bytes": {"longest": times.read_bytes.longest, "mean": times.read_bytes.mean},
            "spilled_bytes": times.longest.spilled_bytes,
            "collection_s": times.longest.collection_ms / 1e3,
            "cause": times.cause.value,
            "adaptive": None if adaptive is None else adaptive.sentence,
        }


@dataclass(frozen=True, slots=True)
class StagesAnswer:
    """The stages of an application, ranked by the gain of even tasks."""

    stages: tuple[RankedStage, ...]  # most to win first; at least one
    task_s: float  # time in which any task ran

    @classmethod
    def of(cls, runs: Sequence[StageRun]) -> "StagesAnswer":
        """Of the runs of an application's stages, at least one.

        Runs of the same name and operator are one stage.
        """
        groups: dict[tuple[str, str], list[StageRun]] = {}
        for run in runs:
            groups.setdefault((run.name, str(run.operator or "")), []).append(run)
        stages = sorted((RankedStage(tuple(each)) for each in groups.values()), key=lambda each: -each.won_s)
        task_s = _covered([(run.times.start_s, run.times.end_s) for run in runs])
        return cls(tuple(stages), task_s or sum(run.times.work_s for run in runs))

    def named(self, stage: str) -> "StagesAnswer":
        """With a stage first, by its name or number."""
        return StagesAnswer(
            tuple(
                sorted(self.stages, key=lambda each: all(stage not in (run.name, str(run.number)) for run in each.runs))
            ),
            self.task_s,
        )

    @property
    def share(self) -> float:
        """What the first stage wins, of the application's task time."""
        return self.stages[0].won_s / self.task_s if self.task_s else 0.0

    @property
    def is_won(self) -> bool:
        """Whether even tasks win more than the least share."""
        return self.share >= LEAST

    @property
    def is_skewed(self) -> bool:
        """Whether even data wins."""
        return self.is_won and self.stages[0].worst.times.cause is Cause.DATA

    @property
    def status(self) -> Status:
        """What is asked for, in a word."""
        if not self.is_won:
            return Status.FINE
        return Status.UNCERTAIN if self.stages[0].worst.times.cause is Cause.UNKNOWN else Status.ACT

    @property
    def headline(self) -> str:
        """The action, and what it wins."""
        first = self.stages[0]
        wins = f"{duration(first.won_s)}, {percent(self.share)} of the application's task time"
        run = first.worst
        where = f"stage {run.number} ({first.operator or visible(run.name)})"
        if not self.is_won:
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
        stage = self.stages[0]
        run, times, adaptive = stage.worst, stage.worst.times, stage.adaptive
        task = times.seconds
        of_runs = f" in the worst of {len(stage.runs):,} runs" if len(stage.runs) > 1 else ""
        said = [
            f"{visible(run.call_site)}: the longest of {counted(times.tasks, 'task')} takes {duration(task.longest)}"
            f"{of_runs}, {task.ratio:.3g} times the mean; {counted(times.slots, 'task')} ran at once."
        ]
        if not self.is_won:
            return said
        said.append(_why(times))
        if times.longest.spilled_bytes:
            said.append(f"It spilled {size(times.longest.spilled_bytes)}.")
        if adaptive is not None:
            said.append(adaptive.sentence)
        if times.cause is Cause.DATA and not stage.code:
            said.append(_without_code(run.operator))
        return said

    @property
    def code(self) -> str:
        """Code to paste for the first stage; empty without any."""
        return self.stages[0].code if self.is_won else ""

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
        shown = self.stages if every else self.stages[:MOST_ROWS]
        rows = [
            (
                str(run.number),
                each.operator or visible(run.name),
                each.won_s,
                run.times.tasks,
                run.times.seconds.longest,
                run.times.seconds.ratio,
                run.times.rows.ratio or None,
                run.times.read_bytes.ratio or None,
                run.times.longest.spilled_bytes,
                run.times.cause.value if each.won_s >= LEAST * self.task_s else "",
            )
            for each in shown
            for run in [each.worst]
        ]
        rest = len(self.stages) - len(shown)
        note = f"{counted(rest, 'more stage')}: --all" if rest else ""
        return Table.from_rows("Stages by what even tasks would win", columns, rows, note).without_zeros(["spilled"])

    def as_data(self) -> dict[str, Any]:
        """JSON data."""
        return {
            "task_s": self.task_s,
            "won_share": self.share,
            "ranked": [each.as_data() for each in self.stages],
            "code": self.code,
        }


def _why(times: TimesOfTasks) -> str:
    """The cause, in words."""
    longest, named = times.longest, [("rows", times.rows), ("bytes", times.read_bytes), ("output rows", times.pairs)]
    ratios = [f"{each.ratio:.3g} times the mean's {what}" for what, each in named if each is not None and each.mean]
    match times.cause:
        case Cause.DATA:
            return f"It has {listed(ratios)}: its data is skewed."
        case Cause.COLLECTION:
            return f"Garbage collection takes {duration(longest.collection_ms / 1e3)} of it; its data is even."
        case Cause.HOST:
            return (
                f"Its data is even ({listed(ratios)}); other tasks of its host {visible(longest.host)} take"
                f" {times.slow_host:.3g} times as long for a row: another key wins nothing."
            )
        case Cause.UNKNOWN:
            even = f"its data is even ({listed(ratios)})" if ratios else "the log has no rows of its tasks"
            return f"Neither garbage collection nor its host explains it, and {even}: another key wins nothing."


def _without_code(operator: Operator | None) -> str:
    """What to do where no code can be given."""
    if operator is None:
        return "It reads no shuffle by key that the log shows: cut its input into even splits."
    if operator.is_merged:
        return "Rows are aggregated before this shuffle already: use more shuffle partitions, or smaller results."
    if operator.name == "Window":
        return "A window needs all rows of a key in one task: add a column to PARTITION BY."
    return "Its function needs all rows of a key in one task: add a column to the key, and merge the results."


def _covered(spans: Sequence[tuple[float, float]]) -> float:
    """Length of the union of some spans."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total, until = total + max(0.0, end - max(start, until)), max(until, end)
    return total
