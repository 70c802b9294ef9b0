"""Lossy counting against other ways to count a trace.

The claims are against Spark and DuckDB (two threads) on the same rows, second pass, local[2], and against the limit:
Arrow reads only the key column, two threads. In this process, without Spark, they are against DuckDB with one thread,
in CPU seconds. It also prints datasketches' frequent items fed with counted batches, and how time grows with rows and
distinct keys. ADAPT_BENCH_ROWS sets the rows (20 million)."""

import os
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import datasketches
import duckdb
import pyarrow.parquet as pq
from ratio import best_of, cpu_measured, holds, measured
from rich.console import Console
from rich.table import Table

from adapt.core.counting.exact import count_keys
from adapt.core.stream import KeyType
from adapt.traces.counting.lossy import count_lossy
from adapt.traces.generators.keyed import zipf_stream
from adapt.traces.generators.write import generate
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.session import SparkOptions, spark_session
from adapt.traces.store.trace import Trace, open_trace

ROWS = int(os.environ.get("ADAPT_BENCH_ROWS", 20_000_000))
DOMAIN = 1_000_000
EPSILON = 1e-4
CLAIMS = {KeyType.STRING: (5.0, 2.5, 1.0, 0.6), KeyType.INT64: (2.5, 1.1, 1.0, 0.0)}
"""Claimed speed-ups through Spark over groupBy.count, approx_top_k, DuckDB's group by, and reading alone."""
HERE = {KeyType.STRING: (1.7, 7.0), KeyType.INT64: (1.7, 10.0)}
"""Claims in this process: the speed-up over DuckDB's group by, and million rows per CPU second."""

SPARK = SparkOptions("local[2]", {"spark.driver.memory": "4g"})


def main() -> int:
    """Count the same traces in turns; 0 if every claim is met."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        traces = {key_type: trace_of(folder, ROWS, DOMAIN, key_type) for key_type in CLAIMS}
        met = [way(trace, key_type) for key_type, trace in traces.items() for way in (here, compared)]
        growth(folder)
        spark_session(SPARK).stop()
    return 0 if all(met) else 1


def trace_of(folder: Path, rows: int, domain: int, key_type: KeyType) -> Trace:
    """A trace of Zipf(1) keys, generated once."""
    out = folder / f"{rows}-{domain}-{key_type}.trace"
    if not out.exists():
        generate(zipf_stream(rows=rows, domain=domain, key_type=key_type), out, spark_options=SPARK)
    return open_trace(out)


def here(trace: Trace, key_type: KeyType) -> bool:
    """Count without Spark, in CPU seconds; whether claims are met."""
    at_least, millions = HERE[key_type]
    ratio = cpu_measured(counting(trace, SparkOptions(runner=RunnerName.IN_PROCESS)), duckdb_exact(trace, 1), repeats=5)
    speed = trace.rows / ratio.ours_s / 1e6
    met = speed >= millions
    claim = f"lossy counting of {key_type} keys in this process"
    print(
        f"{claim}: {speed:.1f} M rows per CPU second, claimed at least {millions:g}: {'met' if met else 'NOT MET'};"
        f" DuckDB {trace.rows / ratio.reference_s / 1e6:.1f}"
    )
    return holds(f"{claim} against DuckDB's group by, one thread, CPU", ratio, at_least) and met


def compared(trace: Trace, key_type: KeyType) -> bool:
    """Print all ways to count a trace; whether claims are met."""
    ours = counting(trace)
    peers = {
        "Spark groupBy(key).count(), top 20": spark_exact(trace),
        "Spark approx_top_k(key, 100, 10000)": spark_approximate(trace),
        "DuckDB group by, top 20, 2 threads": duckdb_exact(trace, 2),
        "Arrow reads the keys only, 2 threads": reading(trace),
        "datasketches frequent items, counted batches, 1 thread": sketched(trace, key_type),
    }
    table = Table("way", "best s", "M rows/s", "ours is faster by", "least", "most")
    table.title = f"{trace.rows:,} rows, {DOMAIN:,} Zipf(1) keys, {key_type}; ours at epsilon {EPSILON:g}"
    ratios = {}
    for name, peer in peers.items():
        ratios[name] = ratio = measured(ours, peer, repeats=5)
        speed = trace.rows / ratio.reference_s / 1e6
        told = [f"{value:.2f}x" for value in (median(ratio.ratios), min(ratio.ratios), max(ratio.ratios))]
        table.add_row(name, f"{ratio.reference_s:.2f}", f"{speed:.1f}", *told)
    own = min(ratio.ours_s for ratio in ratios.values())
    table.add_row("ours", f"{own:.2f}", f"{trace.rows / own / 1e6:.1f}", "", "", "")
    Console(width=120).print(table)
    met = [
        holds(f"lossy counting of {key_type} keys against {name}", ratio, at_least)
        for (name, ratio), at_least in zip(ratios.items(), CLAIMS[key_type], strict=False)
    ]
    return all(met)


def growth(folder: Path) -> None:
    """Print time by rows, and by distinct keys."""
    table = Table("rows", "distinct keys", "best s", "M rows/s", "listed")
    table.title = f"Growth, string keys, epsilon {EPSILON:g}"
    for rows, domain in [(ROWS // 2 * times, DOMAIN) for times in (1, 2, 4, 8)] + [
        (ROWS, domain) for domain in (10_000, 100_000, 10_000_000, 100_000_000)
    ]:
        trace = trace_of(folder, rows, domain, KeyType.STRING)
        took = best_of(counting(trace), 3)
        listed = len(count_lossy(trace, EPSILON, spark_options=SPARK).keys)
        table.add_row(f"{rows:,}", f"{domain:,}", f"{took:.2f}", f"{rows / took / 1e6:.1f}", f"{listed:,}")
    Console(width=120).print(table)


def counting(trace: Trace, options: SparkOptions = SPARK) -> Callable[[], Any]:
    """Count with `adapt`."""
    return lambda: count_lossy(trace, EPSILON, spark_options=options)


def spark_exact(trace: Trace) -> Callable[[], Any]:
    """Count with Spark's groupBy."""
    rows = spark_session(SPARK).read.parquet(str(trace.path / "part-*.parquet"))
    return lambda: rows.groupBy("key").count().orderBy("count", ascending=False).limit(20).collect()


def spark_approximate(trace: Trace) -> Callable[[], Any]:
    """Count with Spark's heavy-hitter sketch."""
    rows = spark_session(SPARK).read.parquet(str(trace.path / "part-*.parquet"))
    return lambda: rows.selectExpr("approx_top_k(key, 100, 10000)").collect()


def duckdb_exact(trace: Trace, threads: int) -> Callable[[], Any]:
    """Count exactly with DuckDB."""
    database = duckdb.connect(config={"threads": threads})
    query = f"select key, count(*) n from '{trace.path}/part-*.parquet' group by key order by n desc limit 20"
    return lambda: database.sql(query).fetchall()


def sketched(trace: Trace, key_type: KeyType) -> Callable[[], Any]:
    """Count with datasketches, fed with Arrow's counts per batch.

    It takes one key per call.
    """

    def count() -> Any:
        if key_type is KeyType.STRING:
            sketch = datasketches.frequent_strings_sketch(17)
        else:
            sketch = datasketches.frequent_items_sketch(17)
        for batch in trace.batches(["key"]):
            counted = count_keys(batch.column("key"))
            for key, times in zip(counted.keys.to_pylist(), counted.counts.tolist(), strict=True):
                sketch.update(key, times)
        return sketch.get_frequent_items(datasketches.frequent_items_error_type.NO_FALSE_POSITIVES)

    return count


def reading(trace: Trace) -> Callable[[], Any]:
    """Read the key column only: the limit."""

    def read(part: Path) -> int:
        file = pq.ParquetFile(part, pre_buffer=False, page_checksum_verification=True)
        groups = range(file.num_row_groups)
        return sum(file.read_row_group(at, columns=["key"], use_threads=False).num_rows for at in groups)

    def all_parts() -> int:
        with ThreadPoolExecutor(2) as pool:
            return sum(pool.map(read, sorted(trace.path.glob("part-*.parquet"))))

    return all_parts


if __name__ == "__main__":
    sys.exit(main())
