"""Speed and memory of generating a Zipf trace.

Claims: 100 M rows at 5 M rows/s on two cores; ten times the rows take at most 1.2 times the memory. The whole command
is measured: drawing, writing, hashing and profiling. The reference is one process with numpy's `choice` over the same
shares and exponential gaps, keys as text, one Parquet file per million rows, without hashes or a profile. On a shared
machine CPU time says more than wall time. ADAPT_BENCH_ROWS sets the rows (100 million)."""

import os
import sys
import tempfile
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from footprint import SPARK, Footprint, apart, footprint, told

from adapt.core.counting.zipf import zipf_shares
from adapt.traces.generators.keyed import zipf_stream
from adapt.traces.generators.write import generate
from adapt.traces.store.trace import BLOCK_ROWS

ROWS = int(os.environ.get("ADAPT_BENCH_ROWS", 100_000_000))
DOMAIN, EXPONENT = 1_000_000, 1.0
REFERENCE_ROWS, PIECE = 4_000_000, 1_000_000
LEAST_RATE, MOST_MEMORY = 5e6, 1.2


def main() -> int:
    """Generate all rows, a tenth, and the reference; 0 if claims hold."""
    if sys.argv[1:2] == ["make"]:
        return told(made(int(sys.argv[2])))
    few, many = (apart(__file__, "make", rows) for rows in (ROWS // 10, ROWS))
    growth = max(many.driver_mib / few.driver_mib, many.java_mib / few.java_mib, many.worker_mib / few.worker_mib)
    rate, flat = many.rows / many.seconds, growth <= MOST_MEMORY
    theirs = reference_cpu_s() * 1e6 / REFERENCE_ROWS
    ours = many.cpu_s * 1e6 / many.rows
    print(
        f"rate {rate / 1e6:.2f} M rows/s, claimed {LEAST_RATE / 1e6:.0f}: {'met' if rate >= LEAST_RATE else 'NOT MET'}"
    )
    print(f"memory of any process {growth:.2f}x, claimed at most {MOST_MEMORY}x: {'met' if flat else 'NOT MET'}")
    print(f"numpy's choice and a Parquet file: {theirs:.3f} s of CPU per million rows, {theirs / ours:.2f}x ours")
    return 0 if flat and rate >= LEAST_RATE else 1


def made(rows: int) -> Footprint:
    """Generate rows as the command does."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)

        def make(name: str, count: int) -> None:
            generate(zipf_stream(rows=count, domain=DOMAIN, exponent=EXPONENT), folder / name, spark_options=SPARK)

        return footprint(rows, lambda: make("warm", 2 * BLOCK_ROWS), lambda: make("rows", rows))


def reference_cpu_s() -> float:
    """CPU time of the reference."""
    chance, shares = np.random.default_rng(0), zipf_shares(DOMAIN, EXPONENT)
    with tempfile.TemporaryDirectory() as place:
        begun, now = process_time(), 0.0
        for piece in range(REFERENCE_ROWS // PIECE):
            times = now + np.cumsum(chance.exponential(1000.0, PIECE))
            now = float(times[-1])
            ranks = chance.choice(DOMAIN, PIECE, p=shares) + 1
            keys = pc.binary_join_element_wise("k", pa.array(ranks).cast(pa.string()), "")
            ts = pa.array(times.astype(np.int64), pa.timestamp("us", "UTC"))
            pq.write_table(pa.table({"ts": ts, "key": keys}), Path(place) / f"{piece}.parquet", compression="zstd")
        return process_time() - begun


if __name__ == "__main__":
    sys.exit(main())
