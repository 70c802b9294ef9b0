"""Two plans measured on 100 M keys with bounded memory.

Claim: no process uses 1.5 GiB. Keys and their Zipf(1) counts are generated on Spark, shuffled by key and summed like
those of a file, then routed. The plans are built from the hottest keys only, as lossy counting would list them, so
their predictions for the other keys are compared with the true loads. Memory is the peak (VmHWM) of this process, of
Spark's Java process with a heap of 1 GiB, and of every Python worker. ADAPT_BENCH_KEYS sets the keys (100 million)."""

import os
import sys
from time import perf_counter

import numpy as np
import pyarrow as pa
from memory import java_of, peak_mib, watched_workers

from adapt.core.counting.frequencies import Frequencies
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.traces.counting.evaluating import evaluate_frame
from adapt.traces.spark.session import SparkOptions, spark_session

KEYS = int(os.environ.get("ADAPT_BENCH_KEYS", 100_000_000))
LISTED = 100_000
HEAVIEST = 10 * KEYS
"""Count of the first key; the last key has 10."""
MOST_MIB = 1536
TASK_KEYS = 1 << 22
SPARK = SparkOptions("local[2]", {"spark.driver.memory": "1g"})


def main() -> int:
    """Measure the plans and the memory; 0 if the claim is met.

    Every key must be counted.
    """
    frequencies = heaviest()
    first = build_plan(frequencies, Recipe(Scheme.HYBRID, max_pins=1_000), 10)
    second = build_plan(frequencies, Recipe(Scheme.HYBRID, max_pins=1_000), 11, previous=first)
    spark = spark_session(SPARK)
    numbers = spark.range(1, KEYS + 1, 1, max(2, KEYS // TASK_KEYS))
    rows = numbers.selectExpr("concat('k', id) as key", f"cast({HEAVIEST}L div id as bigint) as count")
    with watched_workers(java_of(spark)) as workers:
        start = perf_counter()
        found = evaluate_frame([("N = 10", first), ("N = 11", second)], rows)
        took = perf_counter() - start
    java = peak_mib(java_of(spark)) or 0.0
    peaks = {"this process": peak_mib(os.getpid()) or 0.0, "Java": java, "largest worker": max(workers.values())}
    spark.stop()
    met = max(peaks.values()) < MOST_MIB and found.keys == KEYS
    told = ", ".join(f"{name} {peak:,.0f}" for name, peak in peaks.items())
    print(
        f"{found.keys:,} keys under two plans in {took:.0f} s ({KEYS / took / 1e6:.2f} M keys/s); peaks {told} MiB, "
        f"claimed under {MOST_MIB:,}: {'met' if met else 'NOT MET'}"
    )
    for row in found.predictions().records():
        if row["metric"] in ("imbalance", "r_n", "b", "m", "keys_moved"):
            print(f"{row['plan']}: {row['metric']} predicted {row['predicted']:.6g}, measured {row['measured']:.6g}")
    return 0 if met else 1


def heaviest() -> Frequencies:
    """The hottest keys, and number and weight of the others."""
    counts = HEAVIEST // np.arange(1, LISTED + 1)
    total = sum(
        int((HEAVIEST // np.arange(at, min(at + TASK_KEYS, KEYS + 1))).sum()) for at in range(1, KEYS + 1, TASK_KEYS)
    )
    keys = pa.array([f"k{rank}" for rank in range(1, LISTED + 1)])
    missed = HEAVIEST / (LISTED + 1)
    return Frequencies(
        keys, counts, counts, float(total), total, epsilon=missed / total, complete_above=missed, distinct=KEYS
    )


if __name__ == "__main__":
    sys.exit(main())
