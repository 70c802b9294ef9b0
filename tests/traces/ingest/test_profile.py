"""The profile of a trace against plain Python; the grid of its rates."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import BadInput
from adapt.traces.ingest.ingest import ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.ingest.profile import MOST_BINS, Grid, Profiler
from adapt.traces.store.trace import Trace

pytestmark = pytest.mark.usefixtures("spark")


@given(st.integers(-(2**62), 2**62), st.integers(0, 2**62))
def test_the_grid_holds_any_span_in_few_bins_of_one_width(first, span):
    grid = Grid.over(first, first + span)
    assert 1 <= grid.bins <= MOST_BINS
    assert grid.start_us <= first
    assert first + span < grid.start_us + grid.bins * grid.width_us
    assert grid.start_us % grid.width_us == 0
    # none of the bins is idle because the grid is too wide
    assert first < grid.start_us + grid.width_us


ROWS = 400


def row(number: int) -> dict:
    """A row in time order: whole seconds, keys with nulls and empty ones, costs and bytes, some missing."""
    return {
        "ts": 1_700_000_000 + number * 15,
        "key": None if number % 50 == 0 else "" if number % 33 == 0 else f"k{number % (1 + number % 17)}",
        "stream": f"s{number % 3}",
        "cost": None if number % 10 == 3 else number / 7,
        "bytes": number * 11,
    }


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return [row(number) for number in range(ROWS)]


@pytest.fixture(scope="module")
def trace(rows, tmp_path_factory) -> Trace:
    """Those rows ingested."""
    folder: Path = tmp_path_factory.mktemp("profile")
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    mapping = Mapping(
        "key", time="ts", cost="cost", cost_unit="us", bytes="bytes", stream="stream", time_format="epoch_s"
    )
    return ingest([str(folder / "rows.parquet")], folder / "t.trace", mapping).trace


def test_a_profile_is_what_plain_python_counts(trace, rows):
    told = trace.profile
    keys = Counter(row["key"] for row in rows)
    assert told["rows"] == ROWS
    assert told["distinct_keys"] == len(keys)
    assert told["distinct_exact"]
    by_count = sorted(keys.items(), key=lambda item: (-item[1], item[0] is not None, (item[0] or "").encode()))
    assert told["top_keys"] == [[key, count] for key, count in by_count]
    assert told["rank_counts"] == [count for _, count in by_count]
    assert told["top_missed"] == 0
    assert told["streams"] == Counter(row["stream"] for row in rows)
    assert told["facts"] == {
        "null_keys": keys[None],
        "empty_keys": keys[""],
        "longest_key": max(len(key) for key in keys if key),
        "whole_seconds": ROWS,
        "whole_minutes": sum(row["ts"] % 60 == 0 for row in rows),
    }
    assert told["missing"] == {"cost_us": sum(row["cost"] is None for row in rows), "bytes": 0}
    # a float sum may round once an addition
    assert told["totals"]["cost_us"] == pytest.approx(sum(row["cost"] or 0 for row in rows), rel=ROWS * 2**-53)
    assert told["totals"]["bytes"] == sum(row["bytes"] for row in rows)


def profile_of(batch: pa.Table) -> dict:
    """The profile of rows that are held in memory, as one block."""
    times = batch["ts"].cast(pa.int64()).to_pylist()
    profiler = Profiler.over((min(times), max(times)), len(batch), batch.schema)
    return profiler.merged([profiler.of_block(0, batch.to_batches())]).data


def test_profiles_merged_in_rounds_are_as_if_merged_at_once(spark, trace, monkeypatch):
    rows, blocks = trace.to_arrow(), 40
    profiler = Profiler.over((trace.first_us, trace.last_us), ROWS, rows.schema)
    size = ROWS // blocks
    told = pa.Table.from_batches(
        [profiler.as_row(at, at * size, rows.slice(at * size, size).to_batches()) for at in range(blocks)]
    )
    at_once = profiler.merged(told["told"].to_pylist())
    monkeypatch.setattr("adapt.traces.ingest.profile.MOST_HELD", 3)
    monkeypatch.setattr("adapt.traces.ingest.profile.MERGED_BLOCKS", 3)
    frame = spark.createDataFrame(told).repartition(3)
    in_rounds = profiler.reduced(frame, blocks)
    for each in (at_once, in_rounds):  # floats of an hour are added in another order
        shares = each.data["lint"]["minutes"].pop("shares")
        assert sum(shares) == pytest.approx(1)
    assert in_rounds == at_once


def stamps(count: int) -> pa.Array:
    return pa.array(range(count), pa.timestamp("us", "UTC"))


def test_many_streams_are_counted_before_the_most_frequent_are_kept():
    names = [f"s{at}" for at in range(300)] + ["s299"] * 3 + [None] * 2
    told = profile_of(pa.table({"ts": stamps(305), "key": ["k"] * 305, "stream": names}))
    assert list(told["streams"].items())[:3] == [("s299", 4), ("(null)", 2), ("s0", 1)]
    assert len(told["streams"]) == 100


@pytest.mark.parametrize("keys", [pa.array([3, None, 3, -1], pa.int64()), pa.array([b"\xff", None, b"\xff", b""])])
def test_keys_that_are_no_text_are_shown_as_text(keys):
    shown = {"int64": ["3", "-1"], "binary": ["ff", ""]}[str(keys.type)]
    told = profile_of(pa.table({"ts": stamps(4), "key": keys}))
    assert told["top_keys"] == [[shown[0], 2], [None, 1], [shown[1], 1]]
    assert told["facts"]["null_keys"] == 1


def test_amounts_beyond_all_numbers_are_refused():
    batch = pa.table({"ts": stamps(2), "key": ["a", "b"], "cost_us": [1e308, 1e308]})
    with pytest.raises(BadInput, match="the total cost_us of all rows exceeds"):
        profile_of(batch)
