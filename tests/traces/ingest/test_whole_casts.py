"""Casts of doubles to whole numbers in a key: NaN is null, and no two values share a key unsaid."""

from math import inf, nan

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.traces.ingest.ingest import ingest
from adapt.traces.ingest.mapping import Mapping

IDS = [0.0, nan, None, 7.0, nan, -3.0]


def keys(tmp_path, key, values, kind=None):
    """The keys of rows in order, and why rows are rejected."""
    times = pa.array([1_700_000_000 + at for at in range(len(values))], pa.timestamp("s"))
    pq.write_table(pa.table({"x": pa.array(values, kind), "ts": times}), tmp_path / "in.parquet")
    made = ingest([str(tmp_path / "in.parquet")], tmp_path / "out.trace", Mapping(key), force=True)
    return made.trace.to_arrow()["key"].to_pylist(), dict(made.rejects.reasons)


@pytest.mark.parametrize(
    "key",
    [
        *("BIGINT (x)", "x::long", "try_cast(x as int)"),
        *("if(true, int(`x`), 1)", "cast(round(x) AS INTEGER)", "floor(x)"),
    ],
)
def test_nan_is_null_however_the_cast_is_written(spark, tmp_path, key):
    assert keys(tmp_path, key, IDS) == ([0, None, None, 7, None, -3], {})


@pytest.mark.parametrize(
    ("key", "values", "kind"),
    [
        ("bigint(x)", [7.0, 7.5, inf, -inf, 1e30, 2.0**63], pa.float64()),
        ("int(x)", [7.0, 7.25, 3e9, -inf], pa.float32()),
        ("smallint(x)", [7.0, 65543.0], pa.float64()),
        ("cast(x as bigint)", ["7", "7.5"], pa.string()),
    ],
)
def test_values_that_a_cast_would_merge_are_rejected(spark, tmp_path, key, values, kind):
    rejected = {"key is not a whole number": len(values) - 1}
    assert keys(tmp_path, key, values, kind) == ([7], rejected)


def test_a_computed_value_is_cut_as_meant(spark, tmp_path):
    assert keys(tmp_path, "bigint(x / 10)", [7.0, 12.5, nan]) == ([0, 1, None], {})
    assert keys(tmp_path, "floor(x)", [7.0, 7.5, nan]) == ([7, 7, None], {})


def test_whole_numbers_stay_what_they_are(spark, tmp_path):
    assert keys(tmp_path, "bigint(x)", [2**62 + 1, 2**62], pa.int64()) == ([2**62 + 1, 2**62], {})
    assert keys(tmp_path, "bigint(x)", ["007", "-", "9007199254740993"], pa.string())[0] == [7, None, 9007199254740993]
