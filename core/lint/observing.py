"""Collect lint evidence in one pass over a trace, block by block."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.compiled import compiled
from adapt.core.counting.frequencies import heaviest, key_order
from adapt.core.counting.sketches import KeySample
from adapt.core.keys.key_coder import Coded, Coder
from adapt.core.keys.key_text import packed_keys
from adapt.core.lint.thresholds import CLOCKS, OUTLIERS
from adapt.core.lint.time_rules import ClockGrid

SECOND_US = 1_000_000
HOUR_US = 3_600_000_000
MINUTE_US = 60_000_000
DAY_US = 86_400_000_000

HEAVY_A_BLOCK = 1000
"""Hottest keys that a block reports; see `HeavyKeys` for the error."""

LARGEST_AMOUNT = 1 << 42
"""Cap on a row's cost or size (50 days, 4 TiB), so that a block's sum fits int64."""

AMOUNTS = {"cost_us": "cost", "bytes": "bytes"}


@dataclass(slots=True)
class BlockObserver:
    """Collects evidence from the rows of one block, in order."""

    names: Sequence[str]
    first_row: int  # rank of the block's first row in the trace
    middle: int  # rank of the first row of the trace's second half
    grid: ClockGrid  # time bins for the activity of streams
    _times: list[NDArray[np.int64]] = field(default_factory=list)
    _keys: Coder = field(default_factory=Coder)
    _streams: Coder = field(default_factory=Coder)
    _amounts: dict[str, list[NDArray[np.int64]]] = field(default_factory=dict)

    def see(self, batch: pa.RecordBatch) -> None:
        """Add the next rows."""
        self._times.append(times_of(batch))
        self._keys.add(batch.column("key"))
        if "stream" in self.names:
            self._streams.add(batch.column("stream"))
        for column in AMOUNTS:
            if column in self.names:
                self._amounts.setdefault(column, []).append(_whole(batch.column(column)))

    def as_data(self) -> dict[str, Any]:
        """Mergeable plain data."""
        times = np.concatenate(self._times)
        keys = self._keys.done()
        cut = min(max(self.middle - self.first_row, 0), len(times))
        first, second = keys.counts(0, cut), keys.counts(cut)
        streams = self._streams.done() if "stream" in self.names else keys if len(keys.keys) <= CLOCKS else None
        return {
            "rows": len(times),
            "type": str(keys.keys.type),
            "keys": _key_facts(keys.keys, first + second),
            "heavy": _packed_halves(keys.keys, first, second),
            "sample": packed_sample(KeySample.from_counts(keys.keys, first, second)),
            "weights": {
                AMOUNTS[name]: _packed_amounts(keys, np.concatenate(amounts)) for name, amounts in self._amounts.items()
            },
            "instants": _instants(times),
            "minutes": _minutes(times),
            "same": int(np.count_nonzero(keys.codes[1:] == keys.codes[:-1])),
            "activity": None if streams is None else _activity(streams, times, self.grid),
        }


def times_of(batch: pa.RecordBatch) -> NDArray[np.int64]:
    """Times of rows in microseconds since 1970; 0 without times."""
    if "ts" not in batch.schema.names:
        return np.zeros(len(batch), np.int64)
    return np.asarray(batch.column("ts").cast(pa.int64()))


def _whole(column: pa.Array) -> NDArray[np.int64]:
    """Amounts as integers, missing ones as 0."""
    values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    if np.issubdtype(values.dtype, np.integer):
        return np.asarray(np.minimum(values, LARGEST_AMOUNT), np.int64)
    return np.asarray(np.rint(np.minimum(values, float(LARGEST_AMOUNT))), np.int64)


def _packed_halves(keys: pa.Array, first: NDArray[np.int64], second: NDArray[np.int64]) -> list[Any]:
    """The hottest keys with their rows in each half, and an upper bound of all others."""
    counts = first + second
    order = heaviest(keys, counts, HEAVY_A_BLOCK + 1)
    kept, dropped = order[:HEAVY_A_BLOCK], order[HEAVY_A_BLOCK:]
    missed = int(counts[dropped[0]]) if len(dropped) else 0
    return [packed_keys(keys.take(pa.array(kept))), first[kept].tolist(), second[kept].tolist(), missed]


def packed_sample(sample: KeySample) -> list[Any]:
    """A sample of keys as JSON values."""
    return [[f"{value:x}" for value in sample.hashes.tolist()], sample.first.tolist(), sample.second.tolist()]


def unpacked_sample(packed: Sequence[Any]) -> KeySample:
    """The sample of keys of a block."""
    hashes = np.array([int(value, 16) for value in packed[0]], np.uint64)
    return KeySample(hashes, np.array(packed[1], np.int64), np.array(packed[2], np.int64))


def _packed_amounts(keys: Coded, amounts: NDArray[np.int64]) -> list[Any]:
    """The hottest keys by an amount, with their rows."""
    sums = keys.sums(amounts)
    order = heaviest(keys.keys, sums, HEAVY_A_BLOCK + 1)
    kept, dropped = order[:HEAVY_A_BLOCK], order[HEAVY_A_BLOCK:]
    missed = int(sums[dropped[0]]) if len(dropped) else 0
    rows = keys.counts()[kept]
    return [packed_keys(keys.keys.take(pa.array(kept))), sums[kept].tolist(), rows.tolist(), missed, int(sums.sum())]


def _key_facts(keys: pa.Array, counts: NDArray[np.int64]) -> dict[str, int]:
    """Counts of null keys and empty keys, and the bytes of the longest key."""
    facts = {"null": int(counts[keys.is_null().to_numpy(zero_copy_only=False)].sum()), "empty": 0, "longest": 0}
    if pa.types.is_integer(keys.type):
        return facts
    lengths = pc.fill_null(pc.binary_length(keys), -1).to_numpy(zero_copy_only=False)
    return facts | {"empty": int(counts[lengths == 0].sum()), "longest": max(int(lengths.max(initial=0)), 0)}


def _instants(times: NDArray[np.int64]) -> dict[str, Any]:
    """Rows per instant, and the first and last times; `times` ascend."""
    starts = _run_starts(times, 1)
    lengths = np.diff(starts, append=len(times))
    return {
        "head": times[: OUTLIERS + 1].tolist(),
        "tail": times[-OUTLIERS - 1 :].tolist(),
        "distinct": len(starts),
        "most": int(lengths.max()),
        "first_run": int(lengths[0]),
        "last_run": int(lengths[-1]),
        "whole": _whole_rows(times),
    }


def _whole_rows(times: NDArray[np.int64]) -> dict[str, int]:
    """Rows at whole seconds, minutes, hours and days."""
    rows = {}
    for name, unit in (("second", SECOND_US), ("minute", MINUTE_US), ("hour", HOUR_US), ("day", DAY_US)):
        times = times[times % unit == 0]  # a multiple of each unit before
        rows[name] = len(times)
    return rows


def _minutes(times: NDArray[np.int64]) -> dict[str, Any]:
    """Rows by minute of the hour, in total and in the average hour."""
    starts = _run_starts(times, MINUTE_US)
    rows = np.diff(starts, append=len(times))
    met = times[starts] // MINUTE_US
    hours = met // 60
    firsts = np.flatnonzero(np.diff(hours, prepend=hours[0] - 1))
    in_hour = np.add.reduceat(rows, firsts)
    shares = rows / np.repeat(in_hour, np.diff(firsts, append=len(hours)))
    return {
        "rows": np.bincount(met % 60, rows, 60).astype(np.int64).tolist(),
        "shares": np.bincount(met % 60, shares, 60).tolist(),
        "hours": len(firsts),
    }


def _run_starts(times: NDArray[np.int64], unit_us: int) -> NDArray[np.int64]:
    """Start of each unit in ascending times; shape (units that occur,)."""
    starts = np.empty(len(times), np.int64)
    return starts[: _find_starts(times, unit_us, starts)].copy()


@compiled
def _find_starts(times: NDArray[np.int64], unit_us: int, starts: NDArray[np.int64]) -> int:
    """Write the starts of runs and return their number."""
    found, end = 0, np.iinfo(np.int64).min
    for row in range(len(times)):
        if row == 0 or times[row] >= end:
            starts[found] = row
            found += 1
            end = (times[row] // unit_us + 1) * unit_us
    return found


def _activity(streams: Coded, times: NDArray[np.int64], grid: ClockGrid) -> list[Any]:
    """Rows per bin of the busiest streams: names, occupied bins and row counts."""
    bins = (times - grid.start_us) // grid.width_us
    end = int(np.searchsorted(bins, grid.bins))
    order = key_order(streams.keys, streams.counts())[:CLOCKS]
    found = []
    for at in order.tolist():
        of_stream = bins[:end][streams.codes[:end] == at]
        met, rows = np.unique(of_stream, return_counts=True)
        found.append([met.tolist(), rows.tolist()])
    return [packed_keys(streams.keys.take(pa.array(order))), found]
