"""Replaying a trace from disk."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.core.errors import BadInput, EnvironmentFailure, UsageError
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.repartition.decisions import Replan, Schedule
from adapt.core.repartition.replay import replay_repartition
from adapt.core.stream import Weight
from adapt.core.units.row_or_time_span import Length
from adapt.traces.replay.repartition import RepartitionReplay, weighed
from adapt.traces.replay.replay import replay
from adapt.traces.store.manifest import Manifest, Provenance, write_manifest
from adapt.traces.store.runs import read_run
from adapt.traces.store.trace import Trace, open_trace, part_entry

LENGTH, SCHEDULE, RECIPE = Length.parse("500ms"), Schedule.parse("0h:3,1s:5"), Recipe(Scheme.HYBRID, replicas=20)
OPTIONS = Replan(RECIPE, SCHEDULE, LENGTH)
ROWS = 4000
TIMES = pa.array(np.arange(ROWS) * 1000, pa.timestamp("us", "UTC"))
KEYS = pa.array(np.random.default_rng(1).zipf(1.3, ROWS) % 100).cast(pa.string())


@pytest.fixture
def trace(tmp_path) -> Trace:
    """Two parts, several row groups each, with sizes in bytes and no costs."""
    rows = pa.table({"ts": TIMES, "key": KEYS, "bytes": pa.array(np.arange(ROWS)), "note": ["x" * 50] * ROWS})
    folder: Path = tmp_path / "a.trace"
    folder.mkdir()
    for number in range(2):
        half = rows.slice(number * ROWS // 2, ROWS // 2)
        pq.write_table(half, folder / f"part-{number:05d}.parquet", row_group_size=700, write_page_checksum=True)
    entries = [part_entry(folder, part) for part in sorted(folder.iterdir())]
    summary = {"rows": ROWS, "key_type": "string", "columns": rows.column_names, "profile": {}}
    summary |= {"first_us": 0, "last_us": (ROWS - 1) * 1000}
    write_manifest(folder, Manifest("trace", "c0ffee", Provenance("a test"), entries, summary))
    return open_trace(folder)


def test_a_trace_is_replayed_as_its_rows_are_and_kept(trace, tmp_path):
    run = replay(trace, RepartitionReplay(OPTIONS), tmp_path / "a.run")
    rows = pa.record_batch({"ts": TIMES, "key": KEYS})
    assert (
        run.as_data()
        == replay_repartition(lambda columns: [rows.select(columns)], weighed(OPTIONS, trace, None)).as_data()
    )
    stored = read_run(tmp_path / "a.run")
    assert stored.as_data() == run.as_data()
    assert list(stored.manifest.made.inputs) == [{"name": "a.trace", "content_hash": "c0ffee"}]
    assert stored.manifest.made.parameters["schedule"] == "0h:3,1s:5"


def test_without_a_place_nothing_is_written(trace, tmp_path):
    replay(trace, RepartitionReplay(OPTIONS))
    assert [path.name for path in tmp_path.iterdir()] == ["a.trace"]


def test_sizes_are_the_loads_where_they_are_asked_for(trace):
    run = replay(trace, RepartitionReplay(weighed(OPTIONS, trace, Weight.BYTES)))
    assert sum(run.tables()["channels"].values("network")) == ROWS * (ROWS - 1) / 2
    assert run.parameters["weight"] == "bytes"


def test_a_weight_that_the_trace_has_not_is_refused(trace):
    with pytest.raises(UsageError, match="ingest it with --cost COLUMN"):
        weighed(OPTIONS, trace, Weight.COST)


def test_progress_tells_rows_done_of_rows_in_all(trace):
    told = []
    replay(trace, RepartitionReplay(OPTIONS), progress=lambda *each: told.append(each))
    assert told[0] == ("replaying", 0, ROWS)
    assert told[-1] == ("replaying", ROWS, ROWS)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)


def test_a_taken_place_is_refused_before_the_work(trace, tmp_path):
    (tmp_path / "a.run").write_text("mine")
    told = []
    with pytest.raises(EnvironmentFailure, match="--force"):
        replay(trace, RepartitionReplay(OPTIONS), tmp_path / "a.run", progress=lambda *each: told.append(each))
    assert told == []


def test_a_damaged_trace_leaves_no_run(trace, tmp_path):
    part = trace.path / "part-00001.parquet"
    whole = part.read_bytes()
    part.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    with pytest.raises(BadInput, match=r"part-00001\.parquet is damaged"):
        replay(trace, RepartitionReplay(OPTIONS), tmp_path / "a.run")
    assert not (tmp_path / "a.run").exists()
