"""Counting the keys of a trace: method, error, and purpose."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.lossy import check_epsilon
from adapt.core.counting.names import CountMethod
from adapt.core.counting.sliding import DEFAULT_COUNTERS, SlidingWindow
from adapt.core.errors import UsageError
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.problem.tracking import SERVED, Known, epsilon_for
from adapt.core.stream import Weight
from adapt.core.units.durations import duration_text
from adapt.core.units.row_or_time_span import Length
from adapt.traces.block_cache import rows_held
from adapt.traces.counting.all_keys import all_keys, too_many_keys
from adapt.traces.counting.exact import count_exactly, rows_of_sums
from adapt.traces.counting.lossy import count_lossy, rows_together
from adapt.traces.counting.weights import chosen_weight
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.session import Spark
from adapt.traces.store.frequencies import read_frequencies
from adapt.traces.store.trace import Trace

DEFAULT_CHANNELS = 10


@dataclass(frozen=True, slots=True)
class Counting:
    """How to count the keys of a trace."""

    method: CountMethod = CountMethod.LOSSY  # lossy, exact, or lossy over a sliding window
    # the error of lossy counting as a share of the total; None derives it from the three below
    epsilon: float | None = None
    channels: int = DEFAULT_CHANNELS  # the largest number of channels that the counts must support
    resources: Resources = field(default_factory=Resources)  # the loads that keys are pinned by
    # how many keys to pin besides those above the threshold; None is `SERVED`, or none with a window, which may be
    # too short for so small an error
    track: int | None = None
    window: SlidingWindow | None = None  # the window of a sliding counter
    weight: Weight | None = None  # what a row weighs; None is its cost if the trace has costs, else 1

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            if self.method is CountMethod.EXACT:
                raise UsageError("--epsilon needs lossy counting; exact counts have no error")
            check_epsilon(self.epsilon)
        if (self.window is not None) != (self.method is CountMethod.SLIDING):
            raise UsageError(
                "--method sliding and --window need each other; give both, e.g. --method sliding --window 1h"
            )

    def epsilon_on(self, trace: Trace) -> float:
        """The error to count a trace with; 0 if exact."""
        if self.method is CountMethod.EXACT:
            return 0.0
        served = SERVED if self.window is None else None
        track = served if self.track is None else self.track
        known = _known(trace, self.weight)
        needed = self.epsilon or epsilon_for(self.resources, self.channels, known, track)
        if self.epsilon or self.window is not None or self.track is not None:
            return needed
        return min(needed, epsilon_for(Resources(), DEFAULT_CHANNELS, known, SERVED))  # counted at ingest

    def rows_on(self, trace: Trace) -> int:
        """Rows that decide where a trace is counted."""
        epsilon = self.epsilon_on(trace)
        if not epsilon:
            return rows_of_sums(trace)
        together = rows_together(trace, chosen_weight(trace, self.weight))
        return rows_held(trace, trace.blocks(), lambda _: int(2 / epsilon), together)

    def over_window(self, trace: Trace, text: str) -> "Counting":
        """The same over a sliding window as typed: a length, or `auto`.

        Args:
            text: `auto` derives the window from the distinct keys of the trace; it is at most the whole trace.
        """
        if text == "auto":
            known = _known(trace, self.weight)
            epsilon = self.epsilon or epsilon_for(self.resources, self.channels, known, self.track)
            rows = SlidingWindow.derived(known.domain, epsilon).length.size
            length = Length(min(rows, max(trace.rows, DEFAULT_COUNTERS)), in_rows=True)
        else:
            length = Length.parse(text, "--window")
            check_window(length, trace)
        return replace(self, method=CountMethod.SLIDING, window=SlidingWindow(length))

    def parameters(self, frequencies: Frequencies) -> dict[str, Any]:
        """The parameters for a manifest."""
        made: dict[str, Any] = {"method": self.method.value, "weight": frequencies.weight.value}
        if self.method is not CountMethod.EXACT:
            made["epsilon"] = frequencies.epsilon
        if self.window is not None:
            made |= {"window": str(self.window.length), "counters": self.window.counters}
        return made


def check_window(length: Length, trace: Trace) -> None:
    """Check that a window is at most the trace."""
    span_us = trace.last_us - trace.first_us
    if length.size > (trace.rows if length.in_rows else span_us):
        has = f"{trace.rows:,} rows" if length.in_rows else duration_text(span_us)
        raise UsageError(f"--window {length} is longer than the trace, which has {has}; give a shorter window")


def _known(trace: Trace, weight: Weight | None) -> Known:
    """What the profile of a trace holds on its keys: their number, and the least rows of the hottest ones."""
    distinct = int(trace.profile["distinct_keys"])
    if chosen_weight(trace, weight) is not Weight.COUNT:
        return Known(distinct)
    return Known(distinct, trace.rows, np.array(trace.profile["rank_counts"], np.int64))


def count_trace(
    trace: Trace, counting: Counting | None = None, *, spark_options: Spark = None, progress: Progress = silent
) -> Frequencies:
    """Count the keys of a trace on Spark (default: lossy).

    Of exact counts of more keys than this process holds, the heaviest are returned; all are cached next to the trace.
    """
    how = counting or Counting()
    if how.method is CountMethod.EXACT and too_many_keys(trace):
        counted, _ = read_frequencies(all_keys(trace, how.weight, spark_options=spark_options, progress=progress))
    elif how.method is CountMethod.EXACT:
        counted = count_exactly(trace, weight=how.weight, spark_options=spark_options, progress=progress)
    else:
        counted = count_lossy(
            trace,
            how.epsilon_on(trace),
            weight=how.weight,
            window=how.window,
            spark_options=spark_options,
            progress=progress,
        )
    return counted
