"""Replaying a trace from disk through a stage."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import BadInput, EnvironmentFailure
from adapt.core.flux.policies.load_policy import LoadBalancing
from adapt.core.flux.replay.replay import LOAD, Flux
from adapt.core.stage.conditions.settings import StageSettings, even_groups
from adapt.core.stage.input.keyed_rows import Reading, StateSource, StateUnit
from adapt.core.stage.input.mini_partitions import MiniPartitions
from adapt.core.stage.movement.splitting import HotSplit
from adapt.core.units.row_or_time_span import Length
from adapt.traces.replay.operators import Operator
from adapt.traces.replay.replay import replay
from adapt.traces.replay.stage import StageReplay, read_faults
from adapt.traces.store.runs import read_run
from tests.traces.small_traces import write_trace

ROWS = 3000
PARTITIONS = MiniPartitions(3, 4)
STAGE = StageSettings(3, PARTITIONS.owners, even_groups(12, 12), state_tuples=50)
REPLAY = StageReplay(STAGE, Reading(PARTITIONS), Flux(min_collection_s=0.02))


def columns(text):
    keys = np.random.default_rng(1).zipf(1.5, ROWS) % 200
    return {
        "ts": np.arange(ROWS) * 100,
        "key": pa.array([f"k{key}" for key in keys]) if text else pa.array(keys),
        "bytes": pa.array(np.arange(ROWS) % 300),
    }


@pytest.fixture
def trace(tmp_path):
    return write_trace(tmp_path / "a.trace", columns(text=True))


@pytest.mark.parametrize("text", [True, False])
def test_a_trace_is_replayed_the_same_however_it_is_cut_into_files(tmp_path, text):
    cut = [
        write_trace(tmp_path / f"{name}.trace", columns(text), parts, row_group)
        for name, parts, row_group in (("whole", 1, 10**6), ("cut", 7, 90))
    ]
    runs = [replay(trace, REPLAY).as_data() for trace in cut]
    assert runs[0] == runs[1]
    assert [case["processed"] for case in runs[0]["cases"]] == [ROWS, ROWS]


def test_a_run_is_kept_as_it_was_measured(trace, tmp_path):
    run = replay(trace, REPLAY, tmp_path / "a.flux")
    stored = read_run(tmp_path / "a.flux")
    assert stored.as_data() == run.as_data()
    assert list(stored.manifest.made.inputs) == [{"name": "a.trace", "content_hash": "c0ffee"}]


def test_a_split_partition_has_aggregates_by_key(trace):
    flux = replace(REPLAY.mechanism, hot=HotSplit(0.1, 0.005))
    run = replay(trace, replace(REPLAY, mechanism=flux))
    for case in run.outcomes:
        counts = np.unique(columns(text=True)["key"].to_numpy(zero_copy_only=False), return_counts=True)[1]
        assert sorted(case.simulated.totals["count"].tolist()) == sorted(counts.tolist())
        assert case.simulated.splits.added > 0
    for row in run.tables()["cases"].records():
        assert row["parts_added"] >= row["parts_max"] - 1 > 0
        assert row["merged"] > 80
        assert row["merge_lag_max"] >= 0.005
    assert run.parameters["split_hot"] == {"threshold": 0.1, "every_s": 0.005}


def test_progress_tells_the_case_the_time_and_the_rows(trace):
    told = []
    replay(trace, REPLAY, progress=lambda *each: told.append(each))
    assert told[0] == ("reading", 0, ROWS)
    for case in ("static", "load"):
        done = [rows for what, rows, total in told if what.startswith(f"{case}, ") and total == ROWS]
        assert done == sorted(done)
        assert done[-1] == ROWS


def test_state_grows_to_that_of_the_rows_their_bytes_or_their_keys(trace):
    flux = Flux((replace(LOAD, parameters=LoadBalancing(1.01)),), 0.02)
    keys, sizes = (
        np.concatenate([batch.column(0).to_numpy(zero_copy_only=False) for batch in trace.batches([name])])
        for name in ("key", "bytes")
    )
    of = PARTITIONS.partitions_of(pa.array(keys))
    of_keys = PARTITIONS.partitions_of(pa.array(np.unique(keys)))
    last = np.unique(keys, return_counts=True)[1]
    for text, each in {
        "rows": np.bincount(of) * 80,
        "bytes": np.bincount(of, sizes),
        "keys": np.bincount(of_keys) * 80,
        "rows@3rows": np.bincount(of_keys, np.minimum(last, 3)) * 80,
    }.items():
        unit, _, window = text.partition("@")
        state = StateSource(StateUnit(unit), Length.parse(window) if window else None)
        run = replay(trace, replace(REPLAY, mechanism=flux, operator=Operator(state)))
        moves = run.tables()["moves"].records()
        assert moves
        assert all(0 <= move["state"] <= each[move["partition"]] for move in moves)
        for case in run.outcomes:
            totals = [int((one.state_in_memory + one.state_on_disk).sum()) for one in case.simulated.intervals]
            assert totals == sorted(totals)
            assert totals[0] < totals[-1] == each.sum()


def test_a_taken_place_is_refused_before_the_work(trace, tmp_path):
    (tmp_path / "a.flux").write_text("mine")
    told = []
    with pytest.raises(EnvironmentFailure, match="--force"):
        replay(trace, REPLAY, tmp_path / "a.flux", progress=lambda *each: told.append(each))
    assert told == []


def test_a_schedule_of_faults_that_is_none_is_refused_with_its_file(tmp_path):
    (tmp_path / "faults.json").write_text("[]")
    for name, told in (("faults.json", "the fault schedule must be"), ("none.json", "cannot be read")):
        with pytest.raises(BadInput, match=rf"{name}.*{told}"):
            read_faults(tmp_path / name, STAGE)
