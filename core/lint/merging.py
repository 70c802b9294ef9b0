"""Merge lint evidence block by block in bounded memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.counting.frequencies import key_order
from adapt.core.counting.sketches import HeavyKeys, HeavySums, KeySample
from adapt.core.keys.key_text import key_to_text, packed_keys, unpacked_keys
from adapt.core.labels import label
from adapt.core.lint.observing import HEAVY_A_BLOCK, packed_sample, unpacked_sample
from adapt.core.lint.thresholds import CLOCKS, OUTLIERS
from adapt.core.lint.time_rules import ClockGrid, agreed

TOP = 10
"""Number of top keys compared between both halves."""

DRIFT_KEYS = 100
"""Number of hot keys whose shares in both halves are compared."""

HEAVY_A_GROUP = 8 * HEAVY_A_BLOCK
"""Hottest keys that several blocks report together: fewer than all of theirs only where most of these differ."""

SHOWN_KEY = 200
"""Characters of a key that are kept, to bound the size of the evidence."""


def shown_key(key: pa.Scalar) -> str | None:
    """A key as text, truncated with its length; null stays null."""
    if not key.is_valid:
        return None
    text = key_to_text(key.as_py())
    return text if len(text) <= SHOWN_KEY else f"{text[:SHOWN_KEY]}… ({len(text)} characters)"


@dataclass(slots=True)
class EvidenceMerger:
    """Merges the output of `BlockObserver` for each block, in order."""

    grid: ClockGrid
    key_type: pa.DataType
    of_streams: bool  # whether the trace has a stream column
    _rows: int = 0
    _same: int = 0
    _key_counts: dict[str, int] = field(default_factory=lambda: {"null": 0, "empty": 0, "longest": 0})
    _keys: HeavySums = field(default_factory=lambda: HeavySums(("first", "second"), weighing=2))
    _sample: KeySample | None = None
    _weights: dict[str, "_Weight"] = field(default_factory=dict)
    _instants: "_Instants" = field(default_factory=lambda: _Instants())
    _minutes: "_Minutes" = field(default_factory=lambda: _Minutes())
    _activity: dict[Any, NDArray[np.int64]] | None = field(default_factory=dict)

    def add(self, block: Mapping[str, Any]) -> None:
        """Add the next block."""
        self._rows += block["rows"]
        self._same += block["same"]
        counts = block["keys"]
        self._key_counts = {
            "null": self._key_counts["null"] + counts["null"],
            "empty": self._key_counts["empty"] + counts["empty"],
            "longest": max(self._key_counts["longest"], counts["longest"]),
        }
        keys, first, second, missed = block["heavy"]
        halves = {"first": np.array(first, np.int64), "second": np.array(second, np.int64)}
        self._keys.add(unpacked_keys(keys, self.key_type), halves, missed)
        sample = unpacked_sample(block["sample"])
        self._sample = sample if self._sample is None else self._sample.merged(sample)
        for name, part in block["weights"].items():
            self._weights.setdefault(name, _Weight(self.key_type)).add(part)
        self._instants.add(block["instants"])
        self._minutes.add(block["minutes"])
        self._add_activity(block["activity"])

    def as_block(self) -> dict[str, Any]:
        """The blocks so far as one, for another merger."""
        keys, halves, missed = self._keys.top(HEAVY_A_GROUP)
        activity = self._activity
        return {
            "rows": self._rows,
            "same": self._same,
            "keys": self._key_counts,
            "heavy": [packed_keys(keys), halves["first"].tolist(), halves["second"].tolist(), missed],
            "sample": packed_sample(self.sample),
            "weights": {name: weight.as_part() for name, weight in self._weights.items()},
            "instants": self._instants.as_part(),
            "minutes": self._minutes.as_part(),
            "activity": None if activity is None else [list(activity), [_sparse(rows) for rows in activity.values()]],
        }

    @property
    def heavy(self) -> HeavyKeys:
        """The hottest keys, by descending count."""
        keys, halves = self._keys.done()
        return HeavyKeys(keys, halves["first"] + halves["second"], self._keys.missed)

    @property
    def sample(self) -> KeySample:
        """The sample of keys."""
        if self._sample is None:
            raise ValueError("there are no blocks")
        return self._sample

    @property
    def key_facts(self) -> dict[str, int]:
        """Counts of null and empty keys, whole seconds and minutes, longest key."""
        whole = self._instants.whole
        return {
            "null_keys": self._key_counts["null"],
            "empty_keys": self._key_counts["empty"],
            "longest_key": self._key_counts["longest"],
            "whole_seconds": whole["second"],
            "whole_minutes": whole["minute"],
        }

    def evidence(self) -> dict[str, Any]:
        """Plain data for the trace's profile."""
        came, again = self.sample.again()
        by_chance = self.sample.again_by_chance(self._rows // 2 / self._rows)
        return {
            "halves": self._halves(),
            "again": {"keys": came, "both": again, "by_chance": by_chance},
            "weights": {name: weight.as_data() for name, weight in self._weights.items()},
            "instants": self._instants.as_data(),
            "minutes": self._minutes.as_data(),
            "same_as_before": self._same,
            "clocks": self._clocks(),
        }

    def _halves(self) -> dict[str, Any]:
        """Counts of the hottest keys in each half; the profile lists their names in the same order."""
        keys, halves = self._keys.done()
        tops = [
            set(key_order(keys, counts)[: min(TOP, int((counts > 0).sum()))].tolist()) for counts in halves.values()
        ]
        return {
            "first": halves["first"][:DRIFT_KEYS].tolist(),
            "second": halves["second"][:DRIFT_KEYS].tolist(),
            "tops": [len(tops[0]), len(tops[0] & tops[1])],
            "missed": self._keys.missed,
        }

    def _add_activity(self, activity: Sequence[Any] | None) -> None:
        """Add rows per bin of each stream, or of each key while there are few; None once there are many."""
        if activity is None or self._activity is None:
            self._activity = None
            return
        for name, (bins, rows) in zip(*activity, strict=True):
            held = self._activity.setdefault(name, np.zeros(self.grid.bins, np.int64))
            held[np.array(bins, np.int64)] += np.array(rows, np.int64)
        if not self.of_streams and len(self._activity) > CLOCKS:
            self._activity = None

    def _clocks(self) -> dict[str, Any] | None:
        activity = self._activity
        if activity is None:
            return None
        packed = sorted(activity, key=lambda name: (-int(activity[name].sum()), str(name)))[:CLOCKS]
        kind = pa.string() if self.of_streams else self.key_type
        names = [label(shown_key(unpacked_keys([name], kind)[0])) for name in packed]
        clocks = agreed(names, [activity[name] for name in packed], self.grid)
        return {"of": "stream" if self.of_streams else "key", **clocks}


def _sparse(rows: NDArray[np.int64]) -> list[Any]:
    """Occupied bins and their rows."""
    bins = np.flatnonzero(rows)
    return [bins.tolist(), rows[bins].tolist()]


@dataclass(slots=True)
class _Weight:
    """Hottest keys by an amount, with their row counts."""

    key_type: pa.DataType
    total: int = 0
    sums: HeavySums = field(default_factory=lambda: HeavySums(("amount", "rows")))

    def add(self, part: Sequence[Any]) -> None:
        keys, amounts, rows, missed, total = part
        columns = {"amount": np.array(amounts, np.int64), "rows": np.array(rows, np.int64)}
        self.sums.add(unpacked_keys(keys, self.key_type), columns, missed)
        self.total += total

    def as_part(self) -> list[Any]:
        """As `BlockObserver` gives it."""
        keys, amounts, missed = self.sums.top(HEAVY_A_GROUP)
        return [packed_keys(keys), amounts["amount"].tolist(), amounts["rows"].tolist(), missed, self.total]

    def as_data(self) -> dict[str, Any]:
        """The hottest key by the amount: name, amount, rows; and the total of all keys."""
        keys, amounts = self.sums.done()
        return {
            "key": shown_key(keys[0]),
            "amount": int(amounts["amount"][0]),
            "rows": int(amounts["rows"][0]),
            "total": self.total,
            "missed": self.sums.missed,
        }


@dataclass(slots=True)
class _Instants:
    """Rows per instant, and the first and last times."""

    head: list[int] = field(default_factory=list)
    tail: list[int] = field(default_factory=list)
    distinct: int = 0
    most: int = 0
    whole: dict[str, int] = field(default_factory=dict)
    first_run: int = 0
    run: int = 0
    """Rows of the last instant."""

    def add(self, part: Mapping[str, Any]) -> None:
        goes_on = bool(self.tail) and self.tail[-1] == part["head"][0]
        if self.distinct <= goes_on:  # the first part, or all before is one instant that goes on
            self.first_run += part["first_run"]
        self.distinct += part["distinct"] - goes_on
        self.most = max(self.most, part["most"], part["first_run"] + (self.run if goes_on else 0))
        self.run = part["last_run"] + (self.run if goes_on and part["distinct"] == 1 else 0)
        self.head = (self.head + part["head"])[: OUTLIERS + 1]
        self.tail = (self.tail + part["tail"])[-OUTLIERS - 1 :]
        self.whole = {name: self.whole.get(name, 0) + rows for name, rows in part["whole"].items()}

    def as_data(self) -> dict[str, Any]:
        return {"head": self.head, "tail": self.tail, "distinct": self.distinct, "most": self.most, "whole": self.whole}

    def as_part(self) -> dict[str, Any]:
        """As `BlockObserver` gives it."""
        return self.as_data() | {"first_run": self.first_run, "last_run": self.run}


@dataclass(slots=True)
class _Minutes:
    """Rows by minute of the hour; an hour that spans two blocks counts twice."""

    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(60, np.int64))
    shares: NDArray[np.float64] = field(default_factory=lambda: np.zeros(60))
    hours: int = 0

    def add(self, part: Mapping[str, Any]) -> None:
        self.rows = self.rows + np.array(part["rows"], np.int64)
        self.shares = self.shares + np.array(part["shares"])
        self.hours += part["hours"]

    def as_data(self) -> dict[str, Any]:
        return self.as_part() | {"shares": (self.shares / self.hours).tolist()}

    def as_part(self) -> dict[str, Any]:
        """As `BlockObserver` gives it."""
        return {"rows": self.rows.tolist(), "shares": self.shares.tolist(), "hours": self.hours}
