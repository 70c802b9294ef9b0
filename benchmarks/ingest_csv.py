"""CSV ingest against Spark's own read, sort and write.

Claim: ingest takes at most three times as long. Spark is given the schema, and reads the file twice only to find the
ranges of its sort. Ingest tracks the line of every row, sets bad rows aside, breaks ties by position, hashes and
profiles. ADAPT_BENCH_ROWS sets the rows (20 million).
"""

import os
import resource
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from ratio import holds, measured

from adapt.traces.ingest.ingest import ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.spark.session import SparkOptions, spark_session

ROWS = int(os.environ.get("ADAPT_BENCH_ROWS", 20_000_000))
CLAIM = 1 / 3


def main() -> int:
    """Ingest and sort the same file in turns; 0 if met."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        source = folder / "rows.csv"
        write_csv(source, ROWS)
        spark = spark_session(SparkOptions("local[2]", {"spark.driver.memory": "4g"}))

        def ours() -> None:
            mapping = Mapping("key", "time", "cost", "bytes", cost_unit="us")
            ingest([str(source)], folder / "ours.trace", mapping, force=True, spark_options=SparkOptions("local[2]"))

        def alone() -> None:
            shutil.rmtree(folder / "alone", ignore_errors=True)
            rows = spark.read.csv(str(source), "time timestamp, key string, cost double, bytes bigint", header=True)
            rows.orderBy("time").write.parquet(str(folder / "alone"))

        claim = f"ingest of {ROWS:,} CSV rows ({source.stat().st_size / 1e6:,.0f} MB) against Spark's read, sort, write"
        met = holds(claim, measured(ours, alone, repeats=2), CLAIM)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"  peak memory of the driving Python process: {peak:,.0f} MiB")
        spark.stop()
    return 0 if met else 1


def write_csv(path: Path, rows: int) -> None:
    """Rows with Zipf keys and times out of order."""
    chance = np.random.default_rng(0)
    written = 0
    schema = pa.schema([("time", pa.string()), ("key", pa.string()), ("cost", pa.float64()), ("bytes", pa.int64())])
    with pyarrow.csv.CSVWriter(path, schema, write_options=pyarrow.csv.WriteOptions(quoting_style="none")) as writer:
        while written < rows:
            count = min(1_000_000, rows - written)
            at = np.arange(written, written + count) * 1_000 + chance.integers(0, 300_000_000, count)
            times = pa.array(1_700_000_000_000_000 + at, pa.timestamp("us")).cast(pa.string())
            ranks = (1_000_000 ** chance.random(count)).astype(np.int64)
            keys = pa.compute.binary_join_element_wise("user", pa.array(ranks).cast(pa.string()), "")
            columns = [times, keys, chance.exponential(100.0, count).round(2), chance.integers(0, 1500, count)]
            writer.write(pa.record_batch(columns, schema=schema))
            written += count


if __name__ == "__main__":
    sys.exit(main())
