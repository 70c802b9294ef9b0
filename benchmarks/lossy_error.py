"""Accuracy of lossy counting, Space-Saving and Count-Min in equal memory.

Memory is counted in entries of 24 bytes (key, count, error), as many as the per-item form holds at its peak; a
Count-Min cell takes 8. The last line is the batch form, whose buffer holds more between purges. Claim: no count of
lossy counting is off by more than epsilon n. ADAPT_BENCH_ROWS sets the rows (2 million)."""

import heapq
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping

import datasketches
import numpy as np
import pyarrow as pa
from references import from_tests
from rich.console import Console
from rich.table import Table

from adapt.core.counting.lossy import LossyCounter, LossySummary
from adapt.core.counting.zipf import zipf_table
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.problem.tracking import epsilon_for
from adapt.core.stream import KeyType

ROWS = int(os.environ.get("ADAPT_BENCH_ROWS", 2_000_000))
DOMAIN = 1_000_000
EPSILON = epsilon_for(Resources(), 10, DOMAIN)
DEPTH = 4


def main() -> int:
    """Count one stream in every way; 0 if the claim is met."""
    ranks = zipf_table(DOMAIN, 1.0).ranks(np.random.default_rng(0).random(ROWS))
    true = Counter(ranks.tolist())
    per_item = from_tests("core/counting/per_item.py").PerItemLossyCounter(EPSILON, KeyType.INT64)
    entries = 0
    for key in ranks.tolist():
        per_item.add(key)
        entries = max(entries, per_item.entries)
    batch = LossyCounter(EPSILON, pa.int64())
    batch.update(pa.array(ranks))
    table = Table("way", "entries", "worst error", "mean error, top 39", "mean error, top 500", "top 500 found")
    table.title = f"{ROWS:,} rows, {DOMAIN:,} Zipf(1) keys, epsilon n = {EPSILON * ROWS:,.0f}; errors in rows"
    ours = counts_of(per_item.summary())
    worst = row(table, "lossy counting, row by row", entries, ours, true)
    row(table, "Space-Saving", entries, space_saving(ranks.tolist(), entries), true)
    row(table, f"Count-Min {DEPTH} rows, heap of 500", entries, count_min(true, entries), true)
    worst_batch = row(table, "lossy counting, in batches", batch.memory.buffer, counts_of(batch.summary()), true)
    Console(width=120).print(table)
    met = max(worst, worst_batch) <= EPSILON * ROWS
    print(f"no count is off by more than epsilon n = {EPSILON * ROWS:,.1f}: {'met' if met else 'NOT MET'}")
    return 0 if met else 1


def row(table: Table, name: str, entries: int, counts: Mapping[int, float], true: Counter[int]) -> float:
    """A line of the table; unlisted keys count as 0."""
    heavy = [key for key, _ in true.most_common(500)]
    off = [abs(times - counts.get(key, 0)) for key, times in true.items()]
    top = [abs(true[key] - counts.get(key, 0)) for key in heavy]
    listed = set(heapq.nlargest(500, counts, key=counts.__getitem__))
    found = len(listed & set(heavy)) / len(heavy)
    table.add_row(
        name, f"{entries:,}", f"{max(off):,.0f}", f"{np.mean(top[:39]):,.1f}", f"{np.mean(top):,.1f}", f"{found:.1%}"
    )
    return max(off)


def counts_of(summary: LossySummary) -> dict[int, float]:
    """Exact counts by key."""
    return dict(zip(summary.keys.to_pylist(), summary.counts.tolist(), strict=True))


def space_saving(keys: Iterable[int], entries: int) -> dict[int, float]:
    """Space-Saving (Metwally et al.): new keys replace the lowest count."""
    counts: dict[int, int] = {}
    lightest: list[tuple[int, int]] = []
    for key in keys:
        if key in counts:
            counts[key] += 1
            continue
        taken = 0
        if len(counts) == entries:
            taken, leaving = heapq.heappop(lightest)
            while counts[leaving] != taken:  # it has grown since it was pushed
                heapq.heappush(lightest, (counts[leaving], leaving))
                taken, leaving = heapq.heappop(lightest)
            del counts[leaving]
        counts[key] = taken + 1
        heapq.heappush(lightest, (taken + 1, key))
    return dict(counts)


def count_min(true: Counter[int], entries: int) -> dict[int, float]:
    """Count-Min's 500 largest estimates.

    At least as good as a heap of candidates.
    """
    sketch = datasketches.count_min_sketch(DEPTH, (entries - 500) * 24 // 8 // DEPTH)
    for key, times in true.items():
        sketch.update(key, times)
    estimates = {key: sketch.get_estimate(key) for key in true}
    return {key: estimates[key] for key in heapq.nlargest(500, estimates, key=estimates.__getitem__)}


if __name__ == "__main__":
    sys.exit(main())
