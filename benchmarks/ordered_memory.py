"""Memory of `adapt replay ordered` by number of rows.

Claim: two workers run 10^8 rows in at most 1.1 times the memory that they need for 10^7: at full speed, with rows that
arrive at a rate or at the times of the trace, and in the model. In the first two cases
every tenth row is written to a Parquet file; the output of threads equals that of a serial run. Rows are generated,
with 1,000 keys. Each replay runs in its own process, whose peak the operating system reports. Needs 7 GB in TMPDIR.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adapt.traces.store.manifest import Manifest, Provenance, write_manifest
from adapt.traces.store.trace import part_entry

ROWS = 10_000_000, 100_000_000
MOST_GROWTH = 1.1
KEYS, PART_ROWS, GROUP_ROWS = 1000, 10_000_000, 1 << 20
OPTIONS = "--repeats 1 --check 1000 --format json --force"
THREADS, OUT = "--workers 2 --backend threads", "out.parquet"
CASES = {
    "at full speed": f"{THREADS} --output {OUT}",
    "at 20 million rows/s": f"{THREADS} --rate 20000000 --output {OUT}",
    "at the times of the trace": f"{THREADS} --speedup 20",
    "in the model": "--workers 2 --backend sim --rate 20000000",
}

CHAIN = """
[[operator]]
name = "parse"
kind = "stateless"
[[operator]]
name = "by key"
kind = "partitioned"
key = "key"
partitions = 64
[[operator]]
name = "sample"
kind = "stateless"
selectivity = 0.1
"""

REPLAY = """
import resource, sys
from adapt.cli.main import run
code = run(["-q", "replay", "ordered", *sys.argv[1:]])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""


def main() -> int:
    """Replay the fewer rows and the more; 0 if met."""
    is_met = True
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "chain.toml").write_text(CHAIN)
        traces = [trace_of(folder, rows) for rows in ROWS]
        for name, line in CASES.items():
            (few, _), (many, run) = (replayed(folder, trace, line.split()) for trace in traces)
            growth, summary = many / few, run["summary"]
            is_right = summary["order_violations"] == 0 and summary["rows"] == ROWS[1]
            if OUT in line:
                is_right = is_right and pq.read_metadata(folder / OUT).num_rows == summary["tuples_out"]
            is_met = is_met and is_right and growth <= MOST_GROWTH
            print(
                f"replay ordered of {ROWS[0]:,} and {ROWS[1]:,} rows {name}: peak {few / 1024:,.0f} and"
                f" {many / 1024:,.0f} MiB, {growth:.2f}x, claimed at most {MOST_GROWTH:g}x;"
                f" {summary['tuples_out']:,} rows left in order: {is_right};"
                f" {run['workers'][0]['throughput']:,.0f} rows/s",
                flush=True,
            )
    print("met" if is_met else "NOT MET")
    return 0 if is_met else 1


def trace_of(folder: Path, rows: int) -> Path:
    """A trace of random keys, a row each microsecond."""
    trace, random = folder / f"{rows}.trace", np.random.default_rng(0)
    trace.mkdir()
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("key", pa.int64())])
    for part in range(0, rows, PART_ROWS):
        path = trace / f"part-{part // PART_ROWS:05d}.parquet"
        with pq.ParquetWriter(path, schema, write_page_checksum=True) as writer:
            for first in range(part, min(part + PART_ROWS, rows), GROUP_ROWS):
                end = min(first + GROUP_ROWS, part + PART_ROWS, rows)
                times = pa.array(np.arange(first, end), pa.timestamp("us", "UTC"))
                writer.write_table(pa.table([times, pa.array(random.integers(0, KEYS, end - first))], schema=schema))
    summary: dict[str, Any] = {
        "rows": rows,
        "first_us": 0,
        "last_us": rows - 1,
        "key_type": "int64",
        "columns": ["ts", "key"],
        "rejects": {"rows": 0, "reasons": {}, "examples": {}},
        "profile": {"distinct_keys": KEYS, "rank_counts": []},
    }
    entries = [part_entry(trace, part) for part in sorted(trace.iterdir())]
    write_manifest(trace, Manifest("trace", f"{rows:x}", Provenance("benchmarks/ordered_memory.py"), entries, summary))
    return trace


def replayed(folder: Path, trace: Path, line: list[str]) -> tuple[int, dict[str, Any]]:
    """Peak resident memory of one replay in KiB, and its run."""
    command = [sys.executable, "-c", REPLAY, str(trace), "--chain", "chain.toml", *OPTIONS.split(), *line]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return int(done.stderr.splitlines()[-1]), json.loads(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
