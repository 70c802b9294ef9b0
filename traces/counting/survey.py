"""All that `adapt partition count` tells of a trace: counts, skew, keys asked for, hot keys over time, streams."""

from dataclasses import dataclass
from typing import Any

from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.names import CountMethod
from adapt.core.counting.panes import Panes
from adapt.core.counting.tables import asked_keys_table, counts_table, heaviest_table, streams_counted_table
from adapt.core.counting.timeline import Timeline, life_lines_table
from adapt.core.counting.zipf_fit import zipf_table
from adapt.core.engines.names import AnyScheme, Engine
from adapt.core.errors import UsageError
from adapt.core.keys.key_text import keys_from_texts
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.measures.imbalance_limit import MAX_IMBALANCE, check_max_imbalance
from adapt.core.table import Table
from adapt.core.units.durations import round_us
from adapt.core.units.row_or_time_span import Length
from adapt.core.verdict.answer import Answer
from adapt.core.verdict.answering import answer_on
from adapt.core.verdict.skew_over_time import CountedPane
from adapt.traces.counting.count import Counting, count_trace
from adapt.traces.counting.lossy import count_panes, count_streams
from adapt.traces.counting.measured import check_measurable, with_columns
from adapt.traces.counting.pane_cache import CACHE, counted_panes
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.session import Spark
from adapt.traces.store.trace import Trace

SCHEMA = "adapt.frequencies/1"

DEFAULT_PANES = 48
"""About so many panes, where nothing is said."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What is to be told of a trace.

    Attributes:
        counting: How its keys are counted.
        keys: Keys to look up, as texts.
        over_time: Tell the life-lines of hot keys too.
        by_stream: Tell the keys of each stream too.
        pane: The step of time; None takes a round one, or the panes of the sliding window.
        measure: Columns to add up for the listed keys too.
        engine: What places the keys today, for the verdict.
        max_imbalance: The limit of the verdict.

    Raises:
        UsageError: options that do not go together.
    """

    counting: Counting
    keys: tuple[str, ...] = ()
    over_time: bool = False
    by_stream: bool = False
    pane: Length | None = None
    measure: tuple[str, ...] = ()
    engine: AnyScheme = Engine.SPARK
    max_imbalance: float = MAX_IMBALANCE

    def __post_init__(self) -> None:
        check_max_imbalance(self.max_imbalance)
        if (self.over_time or self.by_stream) and self.counting.method is CountMethod.EXACT:
            raise UsageError("--over goes with lossy counting: panes and streams are counted in bounded memory")
        if self.by_stream and self.counting.window is not None:
            raise UsageError("--over stream counts whole streams; leave out --window, or count over time")
        if self.pane is not None and (not self.over_time or self.counting.window is not None):
            raise UsageError("--pane goes with --over time, where no --window says how long panes are")
        if self.measure and self.counting.window is not None:
            raise UsageError("--measure adds up the whole trace; leave out --window")


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What was found.

    Attributes:
        frequencies: The counted keys.
        answer: The verdict and the hot keys.
        asked: The keys that were asked for.
        over_time: The life-lines of hot keys.
        streams: The streams with their heaviest keys.
    """

    frequencies: Frequencies
    answer: Answer
    asked: Table | None = None
    over_time: Table | None = None
    streams: Table | None = None

    def tables(self) -> list[Table]:
        """All of it, the most telling first; the verdict is `answer.lead`."""
        extra = [table for table in (self.asked, self.over_time, self.streams) if table is not None]
        told = [*extra, *self.answer.tables(), counts_table(self.frequencies), zipf_table(self.frequencies)]
        return [*told, heaviest_table(self.frequencies)]

    def first_tables(self) -> list[Table]:
        """What people need first: what was asked for, and the hot keys."""
        extra = [table for table in (self.asked, self.over_time, self.streams) if table is not None]
        return [*extra, self.answer.hot_keys.table()]

    def as_data(self) -> dict[str, Any]:
        """All of it as JSON data."""
        heaviest, verdict = heaviest_table(self.frequencies), self.answer.verdict
        law = zipf_table(self.frequencies)
        told: dict[str, Any] = {
            "schema": SCHEMA,
            **counts_table(self.frequencies).records()[0],
            **self._measured(),
            "top_share": None if verdict is None else verdict.top_share,
            "useful_workers": None if verdict is None else verdict.useful_workers,
            **self.answer.as_data(),
            "zipf": {**law.records()[0], "in_words": law.note},
            "heaviest": heaviest.records(),
            "heaviest_cut": len(heaviest.rows) < self.frequencies.distinct,
        }
        extra = {"asked": self.asked, "over_time": self.over_time, "streams": self.streams}
        return told | {name: table.records() for name, table in extra.items() if table is not None}

    def _measured(self) -> dict[str, Any]:
        """What each column adds up to, and on keys that are not listed."""
        columns = self.frequencies.measured
        told = {column.source: {"total": column.total, "unlisted": column.unlisted} for column in columns}
        return {"measured": told} if told else {}

    def _repr_html_(self) -> str:
        """All tables, for a notebook."""
        return "".join(table._repr_html_() for table in self.tables())


def survey(trace: Trace, asked: Survey, *, spark_options: Spark = None, progress: Progress = silent) -> Surveyed:
    """Count the keys of a trace and tell all that was asked for.

    Raises:
        UsageError: see `Counting`, `count_lossy`, `count_panes` and `count_streams`.
        BadInput: likewise; or a key that was asked for is no key of the trace's type.
    """
    how = asked.counting
    keys = keys_from_texts(asked.keys, trace.key_type)
    check_measurable(trace, asked.measure)
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
    panes: tuple[CountedPane, ...] = ()
    if how.window is None and not asked.by_stream:
        folder = trace.path.absolute().parent / CACHE
        panes = counted_panes(trace, folder, how.weight, spark_options=spark_options, progress=progress)
    support = how.support or min(10 * frequencies.epsilon, 1.0)
    return Surveyed(
        frequencies,
        answer_on(
            frequencies,
            asked.engine,
            how.channels,
            Recipe(resources=how.resources),
            panes=panes,
            max_imbalance=asked.max_imbalance,
        ),
        asked_keys_table(frequencies, keys) if len(keys) else None,
        life_lines_table(timeline, support) if timeline is not None else None,
        streams,
    )


def _panes(trace: Trace, asked: Survey) -> Panes:
    if asked.counting.window is not None:
        return asked.counting.window.panes
    return Panes(asked.pane or Length(round_us((trace.last_us - trace.first_us + 1) / DEFAULT_PANES)))


def _of_timeline(timeline: Timeline, how: Counting) -> Frequencies:
    """The counts of all panes, or of those that the sliding window holds at the end."""
    whole = timeline.last_window(how.window.counters) if how.window else timeline.whole()
    return whole if how.support is None else whole.above(how.support)
