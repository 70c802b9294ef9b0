"""Skewed trace of the three jobs, their plans, and what they are to find."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

import adapt
from adapt.core.engines.rekey.table import RekeyTable
from adapt.traces.deploy.rekeys import read_rekey
from reality.scenarios import Engine
from reality.workload import MAX_PARALLELISM, MEAN_S, Workload

Place = TypeVar("Place")

WORKERS = 8
"""So many that the hottest key alone has more than twice the mean load."""

SLOWER = 2.5
"""Latency of the service, over that of the other runs."""

ROW_S = MEAN_S * SLOWER
"""Mean latency of a row, in seconds."""

MERGE_S = 0.001
"""Latency of a merge message, in seconds."""

WINDOW_ROWS = 400
"""Rows of a window of the Flink job; a batch of Spark has one window."""


class Keys(StrEnum):
    """What the job groups by."""

    NATURAL = "natural"
    """The keys of the trace."""

    PINNED = "pinned"
    """Replacement keys for those that `adapt partition build` pins."""

    SPLIT = "split"
    """Replacement keys of the plan split-hot of `adapt partition compare`; partial results are merged."""


@dataclass(frozen=True, slots=True)
class Result:
    """Aggregates of a key in a window: rows, and sum and maximum of the stated latencies in nanoseconds."""

    count: int
    total: int
    most: int


Results = dict[tuple[int, str], Result]
"""By window and key of the trace."""


@dataclass(frozen=True)
class Skewed(Workload):
    """The edits of the other runs, with a slower service."""

    @cached_property
    def trace(self) -> Path:
        """Trace of edits by language edition, in a folder of its own."""
        out = self.folder / "slower.trace"
        if not out.exists():
            edits = adapt.read_trace(super().trace).to_arrow()
            costs = pa.array(np.asarray(edits["cost_us"].to_numpy(), np.float64) * SLOWER)
            write_rows(edits["key"], edits["ts"], costs, out)
        return out

    @cached_property
    def values(self) -> list[int]:
        """What is aggregated: the stated latency of each row in nanoseconds."""
        return [round(cost_s * 1e9) for cost_s in self.costs_s.tolist()]

    def windows(self, engine: Engine) -> list[int]:
        """The window of each row."""
        rows = WINDOW_ROWS if engine is Engine.FLINK else len(self.keys)
        return [row // rows for row in range(len(self.keys))]

    def expected(self, engine: Engine) -> Results:
        """Exact results."""
        found: dict[tuple[int, str], list[int]] = {}
        for window, key, value in zip(self.windows(engine), self.keys, self.values, strict=True):
            found.setdefault((window, key), []).append(value)
        return {where: Result(len(each), sum(each), max(each)) for where, each in found.items()}

    @cache  # noqa: B019 - there is one workload
    def keyed(self, engine: Engine, keys: Keys) -> adapt.Plan:
        """The plan of a job."""
        groups = f":max-parallelism={MAX_PARALLELISM}" if engine is Engine.FLINK else ""
        weighed: dict[str, Any] = {"channels": WORKERS, "weight": "cost", "engine": f"{engine}{groups}"}
        match keys:
            case Keys.NATURAL:
                return adapt.build(self.trace, scheme=engine.value, **weighed)
            case Keys.PINNED:
                return adapt.build(self.trace, **weighed)
            case Keys.SPLIT:
                return adapt.compare(self.trace, scheme="split-hot", **weighed).plans[-1]

    def exported(self, engine: Engine, keys: Keys) -> Path:
        """The rekey table of a plan, with its expressions and programs."""
        out = self.folder / f"{engine}-{keys}.rekey"
        if not out.exists():
            adapt.export(self.keyed(engine, keys), to="rekey", trace=self.trace, out=out)
        return out

    def table(self, engine: Engine, keys: Keys) -> RekeyTable:
        """The exported rekey table."""
        return read_rekey(self.exported(engine, keys) / "rekey.json")

    def sent(self, engine: Engine, keys: Keys) -> list[str]:
        """The key that each row is grouped by; of a split key, the replacement whose turn the row's number is."""
        if keys is Keys.NATURAL:
            return self.keys
        new = self.table(engine, keys).as_mapping()
        return [str(taking_turns(new.get(key, (key,)), row)) for row, key in enumerate(self.keys)]

    def planned_rows(self, engine: Engine, keys: Keys) -> list[int]:
        """Rows of each worker by the plan alone: neither by its rekey table nor by the engine's hash of it."""
        plan = self.keyed(engine, keys)
        whole = plan.dealer().channels_of(pa.array(self.keys)).tolist()
        placed = [
            taking_turns(plan.splits[key], row) if key in plan.splits else whole[row]
            for row, key in enumerate(self.keys)
        ]
        return [int(rows) for rows in np.bincount(placed, minlength=WORKERS)]

    def messages(self, engine: Engine, keys: Keys) -> list[tuple[int, str]]:
        """Window and key of each merge message: one from each key sent, at the end of a window."""
        if keys is not Keys.SPLIT:
            return []
        sent = zip(self.windows(engine), self.sent(engine, keys), self.keys, strict=True)
        return [(window, key) for window, _, key in sorted(set(sent))]

    def rekeyed_trace(self, engine: Engine, keys: Keys) -> Path:
        """The trace as the engine sees it."""
        if keys is Keys.NATURAL:
            return self.trace
        out = self.folder / f"{engine}-{keys}.trace"
        if not out.exists():
            rows = self.rows
            write_rows(pa.array(self.sent(engine, keys)), rows["ts"], rows["cost_us"], out)
        return out

    def merging_trace(self, engine: Engine, keys: Keys) -> Path:
        """The merge messages that come after the last row: those of the last window."""
        out = self.folder / f"{engine}-{keys}-merging.trace"
        if not out.exists():
            messages = self.messages(engine, keys)
            last = [key for window, key in messages if window == messages[-1][0]]
            times = self.rows["ts"].combine_chunks().take(pa.array([len(self.keys) - 1] * len(last)))
            write_rows(pa.array(last), times, pa.array([MERGE_S * 1e6] * len(last)), out)
        return out

    def split_messages(self, engine: Engine) -> int:
        """How many merge messages are of split keys."""
        split = self.keyed(engine, Keys.SPLIT).splits
        return Counter(key in split for _, key in self.messages(engine, Keys.SPLIT))[True]


def taking_turns(places: Sequence[Place], row: int) -> Place:
    """The place of a row."""
    return places[row % len(places)]


def write_rows(keys: pa.Array, times: pa.Array, costs_us: pa.Array, out: Path) -> None:
    """Ingest rows; costs are in microseconds."""
    out.parent.mkdir(parents=True, exist_ok=True)
    rows = pa.table({"key": keys, "time": times, "cost_us": costs_us})
    adapt.ingest(rows, key="key", time="time", cost="cost_us", out=out, force=True)
