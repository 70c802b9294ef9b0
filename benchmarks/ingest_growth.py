"""Time and memory of CSV ingest at growing sizes.

Claim: from 5 over 20 to 80 M rows, the CPU time per row grows at most 1.3 times, and the memory of a Python process at
most 1.5 times. Java uses all memory it may (2 GiB), so its peak shows the limit, not the need. ADAPT_BENCH_ROWS sets
the largest size (80 million)."""

import os
import sys
import tempfile
from pathlib import Path

from footprint import SPARK, Footprint, apart, footprint, told
from seconds import write_csv

from adapt.traces.ingest.ingest import ingest
from adapt.traces.ingest.mapping import Mapping

ROWS = int(os.environ.get("ADAPT_BENCH_ROWS", 80_000_000))
MOST_TIME, MOST_MEMORY = 1.3, 1.5


def main() -> int:
    """Ingest three sizes in separate processes; 0 if the claim is met."""
    if sys.argv[1:2] == ["read"]:
        return told(read(int(sys.argv[2])))
    sizes = [apart(__file__, "read", rows) for rows in (ROWS // 16, ROWS // 4, ROWS)]
    first, last = sizes[0], sizes[-1]
    time = (last.cpu_s / last.rows) / (first.cpu_s / first.rows)
    memory = max(last.driver_mib / first.driver_mib, last.worker_mib / first.worker_mib)
    met = time <= MOST_TIME and memory <= MOST_MEMORY
    print(
        f"16 times the rows: {time:.2f}x the time per row, claimed at most {MOST_TIME}x; {memory:.2f}x the memory of a"
        f" Python process, claimed at most {MOST_MEMORY}x: {'met' if met else 'NOT MET'}"
    )
    return 0 if met else 1


def read(rows: int) -> Footprint:
    """Ingest this many rows."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_csv(folder / "few.csv", 1000)
        write_csv(folder / "rows.csv", rows)
        mapping = Mapping("key", "time", "cost", "bytes", cost_unit="us")

        def take(name: str) -> None:
            ingest([str(folder / f"{name}.csv")], folder / f"{name}.trace", mapping, spark_options=SPARK)

        return footprint(rows, lambda: take("few"), lambda: take("rows"))


if __name__ == "__main__":
    sys.exit(main())
