"""Order of the rows in the source, from its runs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.keys.hashes import HashedKeys
from adapt.core.keys.names import HashName
from adapt.core.keys.xxhash64 import SEED
from adapt.core.lint.source_order import MOST_ROWS, source_evidence
from adapt.traces.ingest.runs.run_files import Run
from adapt.traces.ingest.runs.sieve import PLACES
from adapt.traces.ingest.source_order import lines_looked_at


def order_of_runs(runs: Sequence[Run], files: int) -> dict[str, Any] | None:
    """As `order_of_source`, on the driver: only the first runs hold first lines."""
    lines = lines_looked_at(files)
    found = []
    for run in (Run(each.path) for each in runs):  # mapped one at a time, so that the driver holds one
        if run.first_line <= lines:
            rows = run.rows.select([*PLACES, "ts", "key"])
            first = pc.and_(pc.less_equal(rows.column("_line"), lines), pc.less(rows.column("_file"), MOST_ROWS))
            found.append(rows.filter(first))
    if not found:
        return None
    rows = pa.concat_batches(found)
    keys = HashedKeys.from_column(rows.column("key"), HashName.XXHASH64)
    hashes = keys.high.view(np.int64)
    if keys.missing is not None:
        hashes = np.where(keys.missing, np.int64(SEED), hashes)
    file, line = (rows.column(name).to_numpy().astype(np.int64) for name in PLACES)
    return source_evidence(file, line, rows.column("ts").view(pa.int64()).to_numpy(), hashes)
