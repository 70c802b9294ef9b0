"""Key counts of a stream by period, and in a window."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.counting.exact import KeyCounts, count_keys, merge
from adapt.core.counting.frequencies import Counts
from adapt.core.errors import BadInput
from adapt.core.metrics import column_named, columns_named
from adapt.core.partitioning.measures.metrics import METRIC_COLUMNS, Metrics
from adapt.core.phrases import counted
from adapt.core.table import Cell, Column, Kind, Table
from adapt.core.units.row_or_time_span import Length
from adapt.core.values import human

ROWS_KEPT = 1 << 18
"""Rows to collect before counting them: counting in batches is cheaper."""


@dataclass(frozen=True, slots=True)
class Period:
    """The counted keys of one period."""

    index: int  # its number, counting empty periods; the first row is in period 0
    # start, in microseconds since 1970: a whole number of lengths after the first row, or, with a length in rows, the
    # time of its first row
    start_us: int
    end_us: int  # end: one length later, exclusive; or the time of its last row
    counted: KeyCounts  # its keys, in order of first appearance


def periods(batches: Iterable[pa.RecordBatch], length: Length, weight_column: str | None = None) -> Iterator[Period]:
    """Count a stream period by period, skipping periods without rows.

    The result does not depend on batches: costs too are added row by row in order. Memory grows with the distinct keys
    of one period, not with its rows or with the length of the stream.

    Args:
        batches: Rows in time order; columns `ts` (timestamp[us], not null), `key` (null is a key of its own), and the
            weight column if there is one.
        length: Length of a period, from the first row on.
        weight_column: The weight of each row; null is 0. Default: every row weighs 1.
    """
    seen = _Seen(length)
    open_period: _OpenPeriod | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        times = seen.times_of(batch)
        numbers = seen.periods_of(times)
        weights = _weights(batch, weight_column)
        cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for first, end in pairwise(cuts):
            number = int(numbers[first])
            if open_period is not None and open_period.number != number:
                yield seen.closed(open_period)
                open_period = None
            if open_period is None:
                open_period = _OpenPeriod(number, int(times[first]))
            open_period.add(batch.column("key").slice(first, end - first), weights[first:end], int(times[end - 1]))
    if open_period is not None:
        yield seen.closed(open_period)


class _Seen:
    """Position in the stream: first time, rows so far, last time."""

    def __init__(self, length: Length) -> None:
        self._length = length
        self._origin: int | None = None
        self._rows = 0
        self._last: int | None = None

    def times_of(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """The times of the next rows, checked never to fall."""
        column = batch.column("ts")
        if not (pa.types.is_timestamp(column.type) and column.type.unit == "us"):
            raise ValueError(f"column 'ts' must be a timestamp in microseconds (got {column.type})")
        if column.null_count:
            raise BadInput(f"a row after row {self._rows:,} has no time; every row needs one")
        times: NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
        steps = np.diff(times, prepend=times[0] if self._last is None else self._last)
        if (steps < 0).any():
            row = self._rows + int(np.argmax(steps < 0)) + 1
            raise BadInput(f"row {row:,} is earlier than the row before it; sort the rows by 'ts'")
        return times

    def periods_of(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of the period of each of the next rows; shape (rows,)."""
        if self._origin is None:
            self._origin = int(times[0])
        first, self._rows, self._last = self._rows, self._rows + len(times), int(times[-1])
        if self._length.in_rows:
            return np.arange(first, self._rows, dtype=np.int64) // self._length.size
        return (times - self._origin) // self._length.size

    def closed(self, period: "_OpenPeriod") -> Period:
        """A complete period."""
        if self._length.in_rows or self._origin is None:
            return Period(period.number, period.first_us, period.last_us, period.counted())
        start = self._origin + period.number * self._length.size
        return Period(period.number, start, start + self._length.size, period.counted())


class _OpenPeriod:
    """A period that receives rows.

    Rows are collected until there are `ROWS_KEPT`, or as many as counted keys if that is more. So each is touched a few
    times at most, and there are never more of them than distinct keys, or a few large batches.
    """

    def __init__(self, number: int, first_us: int) -> None:
        self.number = number
        self.first_us = first_us
        self.last_us = first_us
        self._keys: list[pa.Array] = []
        self._weights: list[Counts] = []
        self._distinct = 0
        self._kept = 0
        self._rows = 0

    def add(self, keys: pa.Array, weights: Counts, last_us: int) -> None:
        """Add the next rows."""
        self._keys.append(_wide(keys))
        self._weights.append(weights)
        self._kept += len(keys)
        self._rows += len(keys)
        self.last_us = last_us
        if self._kept >= max(ROWS_KEPT, self._distinct):
            self._count()

    def counted(self) -> KeyCounts:
        """All rows by key."""
        counted = self._count()
        return KeyCounts(counted.keys, counted.counts, self._rows)

    def _count(self) -> KeyCounts:
        """Add the collected rows to the counts, row by row, so float sums do not depend on batches."""
        counted = count_keys(pa.chunked_array(self._keys), _joined(self._weights))
        self._keys, self._weights = [counted.keys], [counted.counts]
        self._distinct, self._kept = len(counted.keys), 0
        return counted


def _weights(batch: pa.RecordBatch, column: str | None) -> Counts:
    """The weight of each row, shape (rows,); int64 or float64."""
    if column is None:
        return np.ones(batch.num_rows, dtype=np.int64)
    values = batch.column(column).fill_null(0)
    kind = np.float64 if pa.types.is_floating(values.type) else np.int64
    weights: Counts = values.to_numpy(zero_copy_only=False).astype(kind, copy=False)
    return weights


def _joined(weights: Sequence[Counts]) -> Counts:
    return cast(Counts, np.concatenate(weights))


def _wide(keys: pa.Array) -> pa.Array:
    """Plain keys, text with 64-bit offsets, so that the keys of a period may exceed 2 GiB."""
    keys = keys.dictionary_decode() if pa.types.is_dictionary(keys.type) else keys
    if pa.types.is_string(keys.type):
        return keys.cast(pa.large_string())
    return keys.cast(pa.large_binary()) if pa.types.is_binary(keys.type) else keys


class RecentKeys:
    """Counts of the last steps that fill a window.

    A step leaves as a whole, once those after it fill the window; the last one stays.

    Attributes:
        full: Whether a whole window was counted.
    """

    def __init__(self, length: Length) -> None:
        """Start without rows."""
        self._length = length
        self._steps: deque[Period] = deque()
        self._rows = 0
        self._first_us: int | None = None
        self.full = False

    @property
    def is_empty(self) -> bool:
        """Whether no step was added."""
        return not self._steps

    def add(self, step: Period) -> None:
        """Add the next step."""
        self._first_us = step.start_us if self._first_us is None else self._first_us
        self._steps.append(step)
        self._rows += step.counted.rows

    def move_to(self, at_us: int) -> None:
        """End the window at a time, after its last step."""
        while len(self._steps) > 1 and self._is_filled_without(self._steps[0], at_us):
            self._rows -= self._steps.popleft().counted.rows
        past = self._rows if self._length.in_rows else at_us - (at_us if self._first_us is None else self._first_us)
        self.full = self.full or past >= self._length.size

    def counted(self) -> KeyCounts:
        """The keys of the window, which has a step."""
        return merge([step.counted for step in self._steps])

    def _is_filled_without(self, first: Period, at_us: int) -> bool:
        if self._length.in_rows:
            return self._rows - first.counted.rows >= self._length.size
        return first.end_us <= at_us - self._length.size


@dataclass(frozen=True, slots=True)
class PeriodOutcome:
    """Measurements of one period."""

    index: int  # number of the period, counting empty ones
    start_us: int  # start, in microseconds since 1970
    end_us: int
    rows: int
    keys: int
    # metrics of the plan on the period's keys; migration is that to this plan, None in the first period
    metrics: Metrics
    loads: Floats  # state, computation and network of each channel, shape (3, channels)
    build_s: float | None  # build time of the plan; None without a clock, and if it was built earlier
    adopts: bool  # whether a plan was adopted at the start of the period
    why: str  # reason of the decision
    # imbalance of doing nothing, with the placement of today; None if that is not measured
    nothing: float | None = None

    @property
    def channels(self) -> int:
        """N."""
        return len(self.loads[0])


NOTHING = column_named("imbalance_today")

PERIOD_COLUMNS = (
    Column("period", Kind.COUNT, about="number from 0; periods without rows are missing"),
    Column("start", Kind.TIME, about="start of the period"),
    Column("end", Kind.TIME, about="end of the period, or its last row if the length is in rows"),
    *columns_named("rows keys channels"),
    *METRIC_COLUMNS,
    column_named("build_s"),
    NOTHING,
    Column("adopts", about="yes if a new plan was adopted at the start of the period, from earlier rows alone"),
    Column("why", about="reason of the decision"),
)

CHANNEL_COLUMNS = (
    Column("period", Kind.COUNT),
    Column("channel", Kind.COUNT, about="from 0"),
    Column("state", Kind.NUMBER, about="state load, by the state function of counts"),
    Column("computation", Kind.NUMBER, about="computation load, by the computation function of counts"),
    Column("network", Kind.NUMBER, about="network load, by the network function of counts"),
)

SUMMARY_COLUMNS = (
    *columns_named("periods empty_periods rows rebuilds rescales mean_imbalance imbalance_max"),
    Column("worst_period", Kind.COUNT, about="the first period with that imbalance"),
    *columns_named("mean_best_possible mean_b mean_m all_keys_moved all_state_moved periods_with_empty_channels"),
    column_named("mean_imbalance_today"),
)

NOTE = (
    "A period is a step of the trigger. Each plan is built from the window before it; the first period uses hashing"
    " alone. Migration is shown in the period that starts with it, and counts the state of that window."
    " best_possible and r_best are the best possible values without splitting keys."
)


def periods_table(outcomes: Sequence[PeriodOutcome]) -> Table:
    """One row per period, each ratio next to its floors."""
    rows = []
    for outcome in outcomes:
        cells: dict[str, Cell] = {
            "period": outcome.index,
            "start": outcome.start_us,
            "end": outcome.end_us,
            "rows": outcome.rows,
            "keys": outcome.keys,
            "channels": outcome.channels,
            "build_s": outcome.build_s,
            NOTHING.name: outcome.nothing,
            "adopts": "yes" if outcome.adopts else "no",
            "why": outcome.why,
            **outcome.metrics.as_data(),
        }
        rows.append([cells[column.name] for column in PERIOD_COLUMNS])
    return Table.from_rows("Periods", PERIOD_COLUMNS, rows, note=NOTE)


def channels_table(outcomes: Sequence[PeriodOutcome]) -> Table:
    """The loads of each period and channel."""
    rows = (
        (outcome.index, channel, *loads)
        for outcome in outcomes
        for channel, loads in enumerate(outcome.loads.T.tolist())
    )
    return Table.from_rows("Channels by period", CHANNEL_COLUMNS, rows)


def summary_table(outcomes: Sequence[PeriodOutcome]) -> Table:
    """All periods in one row; means skip periods with an undefined value."""
    metrics = [outcome.metrics for outcome in outcomes]
    imbalances = [(outcome.metrics.imbalance, outcome.index) for outcome in outcomes]
    worst = max(((value, -index) for value, index in imbalances if value is not None), default=None)
    rescales = sum(before.channels != after.channels for before, after in pairwise(outcomes))
    row = (
        len(outcomes),
        outcomes[-1].index + 1 - len(outcomes) if outcomes else 0,
        sum(outcome.rows for outcome in outcomes),
        sum(outcome.adopts for outcome in outcomes) - rescales,
        rescales,
        _mean([each.imbalance for each in metrics]),
        None if worst is None else worst[0],
        None if worst is None else -worst[1],
        _mean([each.best_possible for each in metrics]),
        _mean([each.b for each in metrics]),
        _mean([each.m for each in metrics]),
        sum(each.keys_moved or 0 for each in metrics),
        sum(each.state_moved or 0.0 for each in metrics),
        sum(each.empty_channels > 0 for each in metrics),
        _mean([outcome.nothing for outcome in outcomes]),
    )
    return Table.from_rows("Summary", SUMMARY_COLUMNS, [row])


def conclusion_of(outcomes: Sequence[PeriodOutcome], when: str, state: Column) -> str:
    """Whether to rebuild, by the mean imbalance of the periods.

    Rebuilds help if it falls by more than `GAINS`, and in most periods.

    Args:
        when: The trigger in words, such as `every 6h`.
        state: The kind and unit of the state moved.
    """
    if not outcomes:
        return "No period has rows."
    (row,) = summary_table(outcomes).records()
    mean, today, best = (_ratio(row[name]) for name in ("mean_imbalance", "mean_imbalance_today", "mean_best_possible"))
    if len(outcomes) == 1:
        return f"Nothing was rebuilt: the trace has a single period, of imbalance {mean}; give a shorter period."
    amount = f"{human(row['all_state_moved'], state)} {state.unit}".strip()
    moved = f"{counted(cast(int, row['rebuilds']), 'rebuild')} moved {amount} of state"
    if not row["rebuilds"]:
        return f"Nothing was rebuilt {when}: imbalance {mean}, best possible {best}."
    if row["mean_imbalance_today"] is None:
        return f"Rebuilt {when}: imbalance {mean}, best possible {best}; {moved}."
    if helps(outcomes):
        return f"Rebuild {when}: imbalance {mean} instead of {today} today, best possible {best}; {moved}."
    return f"Rebuilding {when} does not help: imbalance {mean}, {today} today, best possible {best}; {moved}."


GAINS = 0.05
"""Share of the mean imbalance, or of the busiest worker's time, from which rebuilds gain anything."""


def helps(outcomes: Sequence[PeriodOutcome]) -> bool:
    """Whether plans balance better on average and in most periods."""
    pairs = [(each.metrics.imbalance, each.nothing) for each in outcomes]
    known = [(one, other) for one, other in pairs if one is not None and other is not None]
    better, worse = (sum(sign * one < sign * other for one, other in known) for sign in (1, -1))
    return better > worse and fmean(one for one, _ in known) <= (1 - GAINS) * fmean(other for _, other in known)


def state_column(weight: str, resources: str) -> Column:
    """The state moved, in the unit of the state function."""
    if weight == "count" and resources.startswith("L"):
        return Column("state moved", Kind.COUNT, "rows")
    return Column("state moved", Kind.BYTES if weight == "bytes" and resources.startswith("L") else Kind.NUMBER)


def placements_table(outcomes: Sequence[PeriodOutcome], state: Column) -> Table:
    """Today's placement, the plans, and the best possible, over all periods."""
    metrics = [each.metrics for each in outcomes]
    imbalances = {
        "today": [each.nothing for each in outcomes],
        "rebuild": [each.imbalance for each in metrics],
        "best possible": [each.best_possible for each in metrics],
    }
    (row,) = summary_table(outcomes).records()
    done = {
        "today": (0, 0, 0.0),
        "rebuild": tuple(row[name] for name in ("rebuilds", "all_keys_moved", "all_state_moved")),
    }
    columns = (
        Column("placement"),
        Column("imbalance", Kind.RATIO),
        Column("worst period", Kind.RATIO),
        Column("rebuilds", Kind.COUNT),
        Column("keys moved", Kind.COUNT),
        state,
    )
    rows = [
        (
            name,
            _mean(values),
            max((each for each in values if each is not None), default=None),
            *done.get(name, (None,) * 3),
        )
        for name, values in imbalances.items()
        if any(each is not None for each in values)
    ]
    return Table.from_rows(f"Imbalance over {counted(len(outcomes), 'period')}", columns, rows)


def _ratio(value: Cell) -> str:
    """A ratio in a sentence."""
    return human(value, Column("", Kind.RATIO))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
