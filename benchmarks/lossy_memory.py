"""Memory of lossy counting on 200 M rows of 50 M keys.

Claims: no Spark task uses 1 GiB, and no purge keeps more entries than the theoretical bound. Memory is the peak (VmHWM)
of every Python worker of Spark during the count. ADAPT_BENCH_ROWS sets the rows (200 million)."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import pyarrow as pa
from memory import java_of, watched_workers
from references import from_tests

from adapt.core.counting.lossy import FLUSH_ROWS, LossyCounter
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.problem.tracking import epsilon_for
from adapt.traces.counting.lossy import count_lossy
from adapt.traces.spark.session import SparkOptions, spark_session
from adapt.traces.store.trace import BLOCK_ROWS, Trace, open_trace, read_pieces

ROWS = int(os.environ.get("ADAPT_BENCH_ROWS", 200_000_000))
DOMAIN = 50_000_000
EPSILON = epsilon_for(Resources(), 10, DOMAIN)
MOST_MIB = 1024
SPARK = SparkOptions("local[2]", {"spark.driver.memory": "4g"})


def main() -> int:
    """Count the trace and watch memory; 0 if claims are met."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "rows.trace"
        # in a separate process: the workers that generate rows hold a table of the keys
        make = f"generate zipf --rows {ROWS} --keys {DOMAIN} --key-type string -q -o".split()
        subprocess.run([Path(sys.executable).with_name("adapt"), *make, out], check=True)
        trace = open_trace(out)
        met = [within_memory(trace), within_theory(trace)]
        spark_session(SPARK).stop()
    return 0 if all(met) else 1


def within_memory(trace: Trace) -> bool:
    """Peak memory of every worker during the count."""
    with watched_workers(java_of(spark_session(SPARK))) as peaks:
        start = perf_counter()
        counted = count_lossy(trace, EPSILON, spark_options=SPARK)
        took = perf_counter() - start
    met = bool(peaks) and max(peaks.values()) < MOST_MIB
    told = ", ".join(f"{peak:,.0f}" for peak in sorted(peaks.values()))
    speed = f"{took:.1f} s ({trace.rows / took / 1e6:.1f} M rows/s)"
    print(
        f"{trace.rows:,} rows of about {counted.distinct:,} keys in {speed},"
        f" {len(counted.keys):,} listed; peaks of the workers {told} MiB, claimed under {MOST_MIB}:"
        f" {'met' if met else 'NOT MET'}"
    )
    return met


def within_theory(trace: Trace) -> bool:
    """Entries after purges, and the buffer before them, for every block."""
    entries = buffer = 0
    for block in trace.blocks():
        counter = LossyCounter(EPSILON / 2, pa.string())
        for batch in read_pieces(block.pieces, ["key"], ["key"]):
            counter.update(batch.column("key"))
        counter.summary()
        entries, buffer = max(entries, counter.memory.entries), max(buffer, counter.memory.buffer)
    bound = from_tests("core/counting/entries_bound.py").most_entries(EPSILON / 2, BLOCK_ROWS, FLUSH_ROWS)
    print(
        f"epsilon {EPSILON:.3g}: at most {entries:,} entries after a purge, in theory {bound:,.0f}:"
        f" {'met' if entries <= bound else 'NOT MET'}; at most {buffer:,} keys in the buffer before one"
    )
    return entries <= bound


if __name__ == "__main__":
    sys.exit(main())
