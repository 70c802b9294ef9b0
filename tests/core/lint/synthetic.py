"""Made-up traces for the lint: clean ones, and the same with something planted; profiled in memory, in blocks."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from adapt.core.lint.evidence import LINT
from adapt.core.lint.finding import Finding
from adapt.core.lint.findings import judged
from adapt.core.lint.merging import EvidenceMerger, shown_key
from adapt.core.lint.observing import BlockObserver
from adapt.core.lint.source_order import source_evidence
from adapt.core.lint.time_rules import ClockGrid

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
START_US = 1_700_000_000_000_000 // DAY_US * DAY_US


def zipf_codes(random: np.random.Generator, rows: int, keys: int, exponent: float = 1.0) -> np.ndarray:
    shares = 1 / np.arange(1, keys + 1) ** exponent
    return random.choice(keys, rows, p=shares / shares.sum())


def clean(seed: int, rows: int = 20_000, keys: int = 1000, days: float = 5.0, exponent: float = 1.0) -> dict[str, Any]:
    """A Poisson stream of Zipf keys in two streams, with bytes that have nothing to do with keys."""
    random = np.random.default_rng(seed)
    times = np.sort(START_US + random.integers(0, int(days * DAY_US), rows))
    codes = zipf_codes(random, rows, keys, exponent)
    return {
        "ts": times,
        "key": np.char.add("k", (codes + 1).astype(str)).astype(object),
        "stream": np.where(random.random(rows) < 0.6, "a", "b").astype(object),
        "bytes": random.integers(100, 2000, rows),
    }


def profile(
    trace: dict[str, Any], blocks: int = 3, file: np.ndarray | None = None, line: np.ndarray | None = None
) -> dict[str, Any]:
    """The profile of a trace, sorted by time; `file` and `line` say where each row stood in the source."""
    times = np.asarray(trace["ts"], np.int64)
    order = np.argsort(times, kind="stable")
    columns = {name: np.asarray(values)[order] for name, values in trace.items()}
    table = pa.table({**columns, "ts": pa.array(columns["ts"], pa.timestamp("us", "UTC"))})
    rows = table.num_rows
    grid = ClockGrid.over(int(times.min()), int(times.max()))
    merger = EvidenceMerger(grid, table.schema.field("key").type, "stream" in trace)
    edges = np.linspace(0, rows, blocks + 1).astype(int)
    for first, end in pairwise(edges):
        if first == end:
            continue
        observer = BlockObserver(table.column_names, int(first), rows // 2, grid)
        for batch in table.slice(first, end - first).combine_chunks().to_batches(max_chunksize=3000):
            observer.see(batch)
        merger.add(json.loads(json.dumps(observer.as_data())))
    heavy, lint = merger.heavy, merger.evidence()
    number = np.arange(rows) if line is None else line
    hashes = np.unique(np.asarray(trace["key"], object).astype(str), return_inverse=True)[1]
    lint["source"] = source_evidence(np.zeros(rows, int) if file is None else file, number, times, hashes)
    return {
        "rows": rows,
        "key_type": str(table.schema.field("key").type),
        "distinct_keys": merger.sample.distinct().estimate(),
        "top_keys": [[shown_key(key), int(n)] for key, n in zip(heavy.keys[:100], heavy.counts, strict=False)],
        "rank_counts": heavy.counts[:1000].tolist(),
        "top_missed": heavy.missed,
        LINT: json.loads(json.dumps(lint)),
    }


def findings(trace: dict[str, Any], **how: Any) -> dict[str, Finding]:
    """What the lint finds, by id."""
    found = judged(profile(trace, **how))
    assert found is not None
    return {finding.id: finding for finding in found}
