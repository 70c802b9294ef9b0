"""The result of `adapt partition count`: counts, skew, hot keys, streams."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.names import CountMethod
from adapt.core.counting.tables import asked_keys_table, counts_table, heaviest_table, streams_counted_table
from adapt.core.counting.timeline import Panes, Timeline, life_lines_table
from adapt.core.counting.zipf_fit import zipf_table
from adapt.core.engines.names import AnyScheme
from adapt.core.errors import UsageError
from adapt.core.keys.key_text import keys_from_texts
from adapt.core.out_of_sample.windows import CountedPanes
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.measures.plan_settings import PlanSettings
from adapt.core.table import Displayed, Table
from adapt.core.units.durations import round_us
from adapt.core.units.row_or_time_span import Length
from adapt.core.units.settings import same, settings
from adapt.core.verdict.answer import Answer
from adapt.core.verdict.answering import answer_on, hashers_today
from adapt.core.verdict.goal import Goal
from adapt.core.verdict.hot_keys import HotKeys
from adapt.traces.counting.count import Counting, all_keys, count_trace, too_many_keys
from adapt.traces.counting.count_cache import windows_of
from adapt.traces.counting.exact import check_measurable, with_columns
from adapt.traces.counting.lossy import count_panes, count_streams
from adapt.traces.counting.population import population_of
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.runner import runner_for
from adapt.traces.spark.session import Spark
from adapt.traces.store.frequencies import MOST_KEYS
from adapt.traces.store.trace import Trace

SCHEMA = "adapt.frequencies/2"

DEFAULT_PANES = 48
"""Default number of steps over time."""


@settings()
class Survey:
    """What to measure of a trace."""

    counting: Counting  # how its keys are counted
    keys: tuple[str, ...] = ()  # keys to look up, as texts
    over_time: bool = False  # also show hot keys over time
    by_stream: bool = False  # also count each stream separately
    step: Length | None = None  # the step over time; None takes a round one, or the panes of the sliding window
    measure: tuple[str, ...] = ()  # columns to sum per listed key
    engine: AnyScheme | None = None  # what places the keys today; without one, nothing is judged
    max_imbalance: float = same(PlanSettings, "max_imbalance")  # the limit of the verdict

    def __post_init__(self) -> None:
        if (self.over_time or self.by_stream) and self.counting.method is CountMethod.EXACT:
            raise UsageError("--over needs lossy counting; omit --method exact")
        if self.by_stream and self.counting.window is not None:
            raise UsageError("--over stream counts whole streams; omit --window, or use --over time")
        if self.step is not None and (not self.over_time or self.counting.window is not None):
            raise UsageError("--step needs --over time without --window, which sets its own step")
        if self.measure and self.counting.window is not None:
            raise UsageError("--measure sums over the whole trace; omit --window")


@dataclass(frozen=True, slots=True, repr=False)
class Surveyed(Displayed):
    """The measurements of a trace."""

    frequencies: Frequencies  # the counted keys
    answer: Answer | None  # the verdict and the hot keys; None if nothing is judged
    runner: RunnerName  # where the trace was counted
    requested_keys: Table | None = None  # the keys to look up
    over_time: Table | None = None  # hot keys over time
    streams: Table | None = None  # the streams with their top keys
    # counts of all keys, where `frequencies` are only the heaviest of more than this process holds
    all_keys: Path | None = None

    def tables(self) -> list[Table]:
        """All tables, the most important first; the verdict is `answer.lead`."""
        # its hot keys are the first of the top keys
        judged = [] if self.answer is None else [*self.answer.channels_tables(), *self.answer.more_tables()[1:]]
        counted = [counts_table(self.frequencies), zipf_table(self.frequencies), heaviest_table(self.frequencies)]
        return [*self._extra().values(), *judged, *counted]

    def first_tables(self) -> list[Table]:
        """The requested tables and the hot keys."""
        return [*self._extra().values(), self._answer.hot_keys.table()]

    @property
    def _answer(self) -> Answer:
        return self.answer or Answer(None, HotKeys.from_counts(self.frequencies))

    def _extra(self) -> dict[str, Table]:
        tables = {"requested_keys": self.requested_keys, "over_time": self.over_time, "streams": self.streams}
        return {name: table for name, table in tables.items() if table is not None}

    def as_data(self) -> dict[str, Any]:
        """All of it as JSON data."""
        top, answer = heaviest_table(self.frequencies), self._answer
        verdict = answer.verdict
        law = zipf_table(self.frequencies)
        return {
            "schema": SCHEMA,
            **counts_table(self.frequencies).records()[0],
            **self._measured(),
            "top_share": None if verdict is None else verdict.top_share,
            "useful_workers": None if verdict is None else verdict.useful_workers,
            **answer.as_data(),
            "zipf": {**law.records()[0], "in_words": law.note},
            "top_keys": top.records(),
            "top_keys_cut": len(top.rows) < self.frequencies.distinct,
            **{name: table.records() for name, table in self._extra().items()},
        }

    def _measured(self) -> dict[str, Any]:
        """The total of each measured column, and its part on unlisted keys."""
        columns = self.frequencies.measured
        totals = {column.source: {"total": column.total, "unlisted": column.unlisted} for column in columns}
        return {"measured": totals} if totals else {}

    def displayed(self) -> list[Table]:
        """All tables."""
        return self.tables()


def survey(trace: Trace, asked: Survey, *, spark_options: Spark = None, progress: Progress = silent) -> Surveyed:
    """Count the keys of a trace and measure what was requested."""
    how = asked.counting
    keys = keys_from_texts(asked.keys, trace.key_type)
    check_measurable(trace, asked.measure)
    exact = how.method is CountMethod.EXACT and too_many_keys(trace)
    if exact and asked.measure:
        raise UsageError(
            f"--measure sums over at most {MOST_KEYS:,} exactly counted keys (the trace has about"
            f" {trace.profile['distinct_keys']:,}); count with --method lossy"
        )
    timeline = None
    if asked.over_time:
        timeline = count_panes(
            trace,
            _panes(trace, asked),
            how.epsilon_on(trace),
            weight=how.weight,
            spark_options=spark_options,
            progress=progress,
        )
        frequencies = _of_timeline(timeline, how)
    else:
        frequencies = count_trace(trace, how, spark_options=spark_options, progress=progress)
    if asked.measure:
        frequencies = with_columns(trace, frequencies, asked.measure, spark_options=spark_options, progress=progress)
    streams = None
    if asked.by_stream:
        found = count_streams(
            trace, how.epsilon_on(trace), weight=how.weight, spark_options=spark_options, progress=progress
        )
        streams = streams_counted_table(found)
    return Surveyed(
        frequencies,
        None if asked.engine is None else _judged(trace, asked, asked.engine, frequencies, spark_options, progress),
        runner_for(how.rows_on(trace), spark_options, progress).name,
        asked_keys_table(frequencies, keys) if len(keys) else None,
        life_lines_table(timeline, min(10 * frequencies.epsilon, 1.0)) if timeline is not None else None,
        streams,
        all_keys(trace, how.weight, spark_options=spark_options, progress=progress) if exact else None,
    )


def _judged(
    trace: Trace, asked: Survey, engine: AnyScheme, counted: Frequencies, spark_options: Spark, progress: Progress
) -> Answer:
    """The verdict on the keys as an engine places them."""
    how, panes = asked.counting, CountedPanes()
    if how.window is None and not asked.by_stream:
        panes = windows_of(trace, how.weight, spark_options=spark_options, progress=progress)
    recipe = Recipe(resources=how.resources)
    hashers = [hashers_today(engine, how.channels, recipe, counted.key_type)]
    population = population_of(trace, counted, hashers, spark_options=spark_options, progress=progress)
    return answer_on(population, engine, how.channels, recipe, panes=panes, goal=Goal(asked.max_imbalance))


def _panes(trace: Trace, asked: Survey) -> Panes:
    if asked.counting.window is not None:
        return asked.counting.window.panes
    return Panes(asked.step or Length(round_us((trace.last_us - trace.first_us + 1) / DEFAULT_PANES)))


def _of_timeline(timeline: Timeline, how: Counting) -> Frequencies:
    """The counts of all panes, or of the sliding window at the end."""
    return timeline.last_window(how.window.counters) if how.window else timeline.whole()
