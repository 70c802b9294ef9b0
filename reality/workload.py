"""Trace, costs and plans that every engine runs with."""

import gzip
import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

import adapt
from adapt.core.errors import EnvironmentFailure

WORKERS = 4
"""Their rows wait for a service and use no CPU, so there may be more workers than cores."""

MEAN_S, VARIATION = 0.004, 0.5
"""Latency of the service: lognormal, stated row by row in the column `cost_us` of the trace."""

MAX_PARALLELISM = 128
"""Key groups of the Flink job."""

FIRST, ROWS = 10_000, 2_400
"""Rows of the day of edits on Wikipedia, in the order of the file; the first ones have the dates of other days."""

SCHEMES = {"stage": "uniform", "flink": "flink", "spark": "spark"}
"""Scheme by which an engine places keys of its own accord."""


@dataclass(frozen=True)
class Workload:
    """The trace in a folder, with the plans for each engine.

    Attributes:
        folder: Where they are, made on first use.
    """

    folder: Path

    @cached_property
    def trace(self) -> Path:
        """Trace of edits by language edition."""
        out = self.folder / "wiki.trace"
        if not out.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            source = self.folder / "wiki.csv"
            pc.write_csv(_edits(), source)
            adapt.ingest(source, key="channel", time="time", cost="cost_us", out=out, force=True)
        return out

    @cached_property
    def rows(self) -> pa.Table:
        """Rows in the order of the trace: time, key and cost."""
        return adapt.read_trace(self.trace).to_arrow()

    @cached_property
    def keys(self) -> list[str]:
        """Key of each row."""
        return [str(key) for key in self.rows["key"].to_pylist()]

    @cached_property
    def costs_s(self) -> "np.ndarray[Any, np.dtype[np.float64]]":
        """Stated latency of each row."""
        return np.asarray(self.rows["cost_us"].to_numpy(), np.float64) / 1e6

    @cached_property
    def arrivals_s(self) -> "np.ndarray[Any, np.dtype[np.float64]]":
        """Seconds from the first row, in trace time."""
        times = self.rows["ts"].cast(pa.int64()).to_numpy()
        return np.asarray((times - times[0]) / 1e6, np.float64)

    def speedup(self, rate: float) -> float:
        """Speed-up at which rows arrive at a rate."""
        return float(rate * self.arrivals_s[-1] / len(self.keys))

    def plan(self, engine: str, placement: str, workers: int = WORKERS) -> Path:
        """Plan of an engine's natural placement, or of pinned keys."""
        out = self.folder / f"{engine}-{placement}-{workers}.plan"
        if not out.exists():
            scheme = SCHEMES[engine]
            groups: dict[str, Any] = {"max_parallelism": MAX_PARALLELISM} if engine == "flink" else {}
            options: dict[str, Any] = {"scheme": scheme} if placement == "natural" else {"base": scheme}
            adapt.build(self.trace, channels=workers, weight="cost", out=out, force=True, **options, **groups)
        return out

    def export(self, engine: Any, workers: int = WORKERS) -> Path:
        """Plan of pinned keys, exported for an engine."""
        out = self.folder / f"{engine}-{workers}.export"
        if not out.exists():
            groups: dict[str, Any] = {"max_parallelism": MAX_PARALLELISM} if engine == "flink" else {}
            adapt.export(self.plan(engine, "plan", workers), to=engine, out=out, **groups)
        return out


def _edits() -> pa.Table:
    """Rows of the trace, with a stated latency each."""
    source = Path(os.environ.get("ADAPT_DATA", "../shared/data")) / "wiki-edits/wikiticker-2015-09-12-sampled.json.gz"
    if not source.exists():
        raise EnvironmentFailure(f"{source} does not exist; name the folder of sample streams by ADAPT_DATA")
    with gzip.open(source, "rt") as lines:
        edits = [json.loads(line) for line in lines][FIRST : FIRST + ROWS]
    spread = np.log(1 + VARIATION**2)
    random = np.random.default_rng(0)
    costs = random.lognormal(np.log(MEAN_S) - spread / 2, np.sqrt(spread), len(edits))
    columns = {name: [edit[name] for edit in edits] for name in ("time", "channel")}
    return pa.table({**columns, "cost_us": np.round(costs * 1e6, 1)})


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
