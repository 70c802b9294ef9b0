"""Claim: `adapt replay repartition` needs no more memory for the same rows ten times over, shifted in time.

Each replay runs in a process of its own, whose peak is what the system saw. ADAPT_BENCH_ROWS sets the rows (400,000).
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from adapt.traces.generators.zipf import generate_zipf
from adapt.traces.session import SparkOptions, spark_session

ROWS = int(os.environ.get("ADAPT_BENCH_ROWS", 400_000))
MOST_GROWTH = 1.1

REPLAY = """
import resource, sys
from adapt.cli.main import run
code = run(["-q", "replay", "repartition", sys.argv[1], "--channels", "8", "--period", "40000rows", "--format", "csv"])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""


def main() -> int:
    """Replay a trace, and one ten times as long over the same keys; 0 if the claim is met."""
    with tempfile.TemporaryDirectory() as place:
        options = SparkOptions("local[2]")
        peaks = []
        for times in (1, 10):
            trace = Path(place) / f"{times}.trace"
            generate_zipf(trace, rows=times * ROWS, domain=20_000, exponent=1.0, seed=0, spark_options=options)
            peaks.append(peak_kib(trace))
        spark_session(options).stop()
    growth = peaks[1] / peaks[0]
    met = growth <= MOST_GROWTH
    print(
        f"replay repartition of {ROWS:,} and {10 * ROWS:,} rows: peak {peaks[0] / 1024:,.0f} and {peaks[1] / 1024:,.0f} MiB,"
        f" {growth:.2f}x, claimed at most {MOST_GROWTH:g}x: {'met' if met else 'NOT MET'}"
    )
    return 0 if met else 1


def peak_kib(trace: Path) -> int:
    """Peak resident memory of one replay."""
    command = [sys.executable, "-c", REPLAY, str(trace)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    return int(done.stderr.splitlines()[-1])


if __name__ == "__main__":
    sys.exit(main())
