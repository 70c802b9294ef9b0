"""CSV ingest by CPU time, beside Spark's and DuckDB's own read, sort and write.

Claim: a million rows take at most 4 CPU seconds, or 1.3 times what Spark takes if that is more; Java and Python workers
count. Spark and DuckDB are given the schema. Ingest tracks the line of every row, sets bad rows aside, breaks ties by
position, hashes, profiles and counts keys. ADAPT_BENCH_ROWS sets the larger of two sizes (20 million rows).
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from time import process_time

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
from footprint import SPARK, footprint

from adapt.traces.ingest.ingest import ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.spark.session import spark_session

ROWS = int(os.environ.get("ADAPT_BENCH_ROWS", 20_000_000))
MOST_CPU_S, MOST_OF_SPARK = 4.0, 1.3
KINDS = {"time": "timestamp", "key": "string", "cost": "double", "bytes": "bigint"}


def main() -> int:
    """Compare two sizes; 0 if both meet the claim."""
    with tempfile.TemporaryDirectory() as place:
        return 0 if min([compared(Path(place), rows) for rows in (ROWS // 4, ROWS)]) else 1


def compared(folder: Path, rows: int) -> bool:
    """Ingest and sort one file with each; whether the claim is met."""
    source, few = folder / "rows.csv", folder / "few.csv"
    write_csv(source, rows)
    write_csv(few, 1000)

    def ours(path: Path) -> None:
        mapping = Mapping("key", "time", "cost", "bytes", cost_unit="us")
        ingest([str(path)], folder / "ours.trace", mapping, force=True, spark_options=SPARK)

    def of_spark(path: Path) -> None:
        out = folder / "spark"
        shutil.rmtree(out, ignore_errors=True)
        schema = ", ".join(f"{name} {kind}" for name, kind in KINDS.items())
        spark_session(SPARK).read.csv(str(path), schema, header=True).orderBy("time").write.parquet(str(out))

    took = footprint(rows, lambda: ours(few), lambda: ours(source))
    theirs = footprint(rows, lambda: of_spark(few), lambda: of_spark(source))
    begun = process_time()
    with duckdb.connect(config={"threads": 2}) as duck:
        read = f"FROM read_csv('{source}', header = true, columns = {KINDS}) ORDER BY time"
        duck.execute(f"COPY ({read}) TO '{folder / 'duck.parquet'}' (FORMAT parquet, COMPRESSION zstd)")
    of_duckdb = (process_time() - begun) / rows * 1e6
    each, limit = took.cpu_s / rows * 1e6, max(MOST_CPU_S, MOST_OF_SPARK * theirs.cpu_s / rows * 1e6)
    for name, found in (("ingest", took), ("Spark", theirs)):
        print(f"{name}: {found.line}")
    met = "met" if each <= limit else "NOT MET"
    print(
        f"{each:.2f} s of CPU per million rows, claimed at most {limit:.2f}: {met}; DuckDB {of_duckdb:.2f}", flush=True
    )
    return each <= limit


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
