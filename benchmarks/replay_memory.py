"""Memory of `adapt replay repartition` by number of rows.

Claim: the same rows ten times over, shifted in time, need no more memory. The rows are 578,805 real reviews by vendor
if ADAPT_DATA has them, else as many generated rows; weekly periods, 8 channels. Each replay runs in its own process,
whose peak the operating system reports."""

import os
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adapt.traces.generators.keyed import zipf_stream
from adapt.traces.generators.write import generate
from adapt.traces.ingest.ingest import ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.spark.session import SparkOptions, spark_session
from adapt.traces.store.trace import Trace

TIMES = 10
MOST_GROWTH = 1.1
LOCAL = SparkOptions("local[2]")

REPLAY = """
import resource, sys
from adapt.cli.main import run
code = run(["-q", "replay", "repartition", sys.argv[1], "--channels", "8", "--period", "7d", "--format", "csv"])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""


def main() -> int:
    """Replay the rows once and ten times over; 0 if met."""
    with tempfile.TemporaryDirectory() as place:
        once = some_trace(Path(place))
        many = repeated(once, Path(place))
        spark_session(LOCAL).stop()
        peaks = [peak_kib(trace) for trace in (once, many)]
    growth = peaks[1] / peaks[0]
    met = growth <= MOST_GROWTH
    print(
        f"replay repartition of {once.rows:,} rows of {once.path.stem} and of {many.rows:,}: peak"
        f" {peaks[0] / 1024:,.0f} and {peaks[1] / 1024:,.0f} MiB, {growth:.2f}x,"
        f" claimed at most {MOST_GROWTH:g}x: {'met' if met else 'NOT MET'}"
    )
    return 0 if met else 1


def some_trace(folder: Path) -> Trace:
    """Real reviews by vendor, or generated rows of the same span."""
    reviews = Path(os.environ.get("ADAPT_DATA", "../shared/data")) / "reviews" / "anonreviews.csv.bz2"
    if reviews.exists():
        return ingest([str(reviews)], folder / "reviews.trace", Mapping("vendorId"), spark_options=LOCAL).trace
    out = folder / "zipf.trace"
    return generate(zipf_stream(rows=578_805, domain=250, rate_per_s=0.004, seed=0), out, spark_options=LOCAL).trace


def repeated(trace: Trace, folder: Path) -> Trace:
    """The same rows ten times, each copy shifted in time.

    By the time span plus a week.
    """
    rows = pa.Table.from_batches(list(trace.batches(["ts", "key"])))
    span = timedelta(microseconds=trace.manifest.summary["last_us"] - trace.manifest.summary["first_us"])
    copies = folder / "copies"
    copies.mkdir()
    for copy in range(TIMES):
        later = pc.add(rows["ts"], pa.scalar((span + timedelta(days=7)) * copy, pa.duration("us")))
        pq.write_table(rows.set_column(0, "ts", later), copies / f"{copy:02d}.parquet")
    mapping = Mapping("key", "ts")
    return ingest([str(copies)], folder / f"{trace.path.stem}-x{TIMES}.trace", mapping, spark_options=LOCAL).trace


def peak_kib(trace: Trace) -> int:
    """Peak resident memory of one replay."""
    command = [sys.executable, "-c", REPLAY, str(trace.path)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    return int(done.stderr.splitlines()[-1])


if __name__ == "__main__":
    sys.exit(main())
