"""Small traces written without Spark."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adapt.core.keys.columns import key_type_of
from adapt.core.stream import KeyType
from adapt.traces.store.manifest import Manifest, Provenance, write_manifest
from adapt.traces.store.trace import Trace, open_trace, part_entry


def write_trace(
    folder: Path,
    rows: dict[str, Any] | pa.Table,
    parts: int = 2,
    row_group: int = 700,
    key_type: KeyType | None = None,
) -> Trace:
    """A trace of these rows: `ts` in microseconds, `key`, and any of the further columns."""
    if isinstance(rows, dict):
        rows = pa.table({**rows, "ts": pa.array(rows["ts"], pa.timestamp("us", "UTC"))})
    folder.mkdir()
    size = max(1, -(-rows.num_rows // parts))
    for number in range(parts):
        part = rows.slice(number * size, size)
        if part.num_rows:
            pq.write_table(
                part, folder / f"part-{number:05d}.parquet", row_group_size=row_group, write_page_checksum=True
            )
    entries = [part_entry(folder, part) for part in sorted(folder.iterdir())]
    times = [at.cast(pa.int64()).as_py() for at in (rows["ts"][0], rows["ts"][-1])] if rows.num_rows else [0]
    summary = {
        "rows": rows.num_rows,
        "first_us": times[0],
        "last_us": times[-1],
        "key_type": (key_type or key_type_of(rows["key"].type)).value,
        "key_columns": ["key"],
        "columns": rows.column_names,
        "rejects": {"rows": 0, "reasons": {}, "examples": {}},
        "profile": {"distinct_keys": pc.count_distinct(rows["key"], mode="all").as_py(), "rank_counts": []},
    }
    write_manifest(folder, Manifest("trace", f"c0ffee{key_type or ''}", Provenance("a test"), entries, summary))
    return open_trace(folder)


def trace_of_source(folder: Path, rows: pa.Table, **layout: int) -> Trace:
    """A trace of rows as a source has them: `ts` in seconds, `key`, and perhaps `cost` in microseconds and `bytes`."""
    micros = pa.array([at * 1_000_000 for at in rows["ts"].to_pylist()], pa.timestamp("us", "UTC"))
    columns = {"cost_us" if name == "cost" else name: rows[name] for name in rows.column_names}
    return write_trace(folder, pa.table({**columns, "ts": micros}), **layout)
