"""Parquet counts in a store are read as those on a disk."""

import pyarrow as pa
import pyarrow.parquet as pq

from adapt.traces.counting.count_cache import counts_files
from adapt.traces.locations.arrow import arrow_sink


def test_counts_in_a_store_are_those_on_a_disk(bucket, tmp_path):
    for place in (bucket / "c", tmp_path / "c"):
        for part in range(2):
            (place / "in").mkdir(parents=True, exist_ok=True)
            with arrow_sink(place / "in" / f"{part}.parquet") as path:
                pq.write_table(pa.table({"key": [f"k{part}", None], "count": [0.5, part]}), path)
    stored, kept = counts_files(bucket / "c"), counts_files(tmp_path / "c")
    assert stored.rows == kept.rows == 4
    for _ in range(2):
        assert stored.files.to_table().equals(kept.files.to_table())
