"""CPU seconds of a join's verdict, against counting both inputs by Arrow's own GROUP BY.

Claim: the verdict on 10 million by 1 million rows takes at most twice the CPU of counting both inputs by key.
ADAPT_BENCH_ROWS sets the rows of the left input.

Usage: python benchmarks/joins.py
"""

import os
import tempfile
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from adapt.core.joins.adaptive import Adaptive
from adapt.core.joins.loads import join_of
from adapt.core.joins.remedies import Judged
from adapt.traces.counting.join_sides import SideOptions, side_of
from adapt.traces.spark.progress import silent

ROWS = int(os.environ.get("ADAPT_BENCH_ROWS", 10_000_000))


def main() -> int:
    """Measure text and whole keys; 0 if the claim is met."""
    with tempfile.TemporaryDirectory() as place:
        met = [measured(Path(place), kind) for kind in ("string", "int64")]
    return 0 if all(met) else 1


def measured(folder: Path, kind: str) -> bool:
    """Whether the claim is met for keys of a type."""
    chance, keys = np.random.default_rng(1), ROWS // 10
    names = pa.array(np.arange(keys)).cast(kind)
    for name, rows in (("left", np.minimum(chance.zipf(1.3, ROWS) - 1, keys - 1)), ("right", chance.permutation(keys))):
        table = pa.table({"key": names.take(pa.array(rows)), "value": chance.random(len(rows))})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=1 << 17)
    paths, options = [str(folder / f"{name}.parquet") for name in ("left", "right")], SideOptions("--key", "key")
    for _ in range(2):  # the first compiles kernels
        start = process_time()
        join = join_of(*(side_of([path], options, silent) for path in paths))
        judged = Judged(join, 200, 1.2, Adaptive())
        took = process_time() - start
    start = process_time()
    for path in paths:
        rows = ds.dataset(path).to_table(columns=["key"], use_threads=False)
        rows.group_by("key", use_threads=False).aggregate([([], "count_all")])
    peer = process_time() - start
    print(f"{kind}: verdict {took:.2f} s, counting both {peer:.2f} s, {took / peer:.2f} times; {judged.best.words}")
    return took <= 2 * peer


if __name__ == "__main__":
    raise SystemExit(main())
