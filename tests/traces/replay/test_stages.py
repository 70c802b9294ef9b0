"""Replaying a trace from disk through a DAG of stages."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import BadInput, UsageError
from adapt.core.flux.replay.replay import Flux
from adapt.core.stage.conditions.settings import StageSettings, even_groups
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.mini_partitions import MiniPartitions
from adapt.traces.replay.replay import replay
from adapt.traces.replay.stage import StageReplay
from adapt.traces.replay.stages import DagReplay, open_stages
from adapt.traces.store.runs import read_run
from tests.traces.small_traces import write_trace

ROWS = 3000
PARTITIONS = MiniPartitions(3, 4)
STAGE = StageSettings(3, PARTITIONS.owners, even_groups(12, 12), state_tuples=50)
STAGE_REPLAY = StageReplay(STAGE, Reading(PARTITIONS))
STAGES = """
[[stage]]
name = "users"
state = "bytes"
selectivity = 2

[[stage]]
name = "pages"
query = "late"
inputs = ["users"]
key = "page"
state = "keys"
partitions = 2

[[query]]
name = "late"
arrive = "100ms"
leave = "200ms"
"""


@pytest.fixture
def trace(tmp_path):
    return made(tmp_path)


def made(folder, name="a.trace", parts=2, row_group=700):
    chance = np.random.default_rng(1)
    columns = {
        "ts": np.arange(ROWS) * 100,
        "key": pa.array([f"k{key}" for key in chance.zipf(1.5, ROWS) % 200]),
        "page": chance.integers(0, 9, ROWS),
        "bytes": pa.array(np.arange(ROWS) % 300),
    }
    return write_trace(folder / name, columns, parts, row_group)


def named(folder, text=STAGES):
    (folder / "stages.toml").write_text(text)
    return open_stages(folder / "stages.toml")


def test_a_run_is_kept_and_does_not_depend_on_the_files(trace, tmp_path):
    other = made(tmp_path, "b.trace", 7, 90)
    stages = named(tmp_path)
    run = replay(trace, DagReplay(stages, STAGE_REPLAY, Flux(min_collection_s=0.02)), tmp_path / "a.flux")
    assert read_run(tmp_path / "a.flux").as_data() == run.as_data()
    assert replay(other, DagReplay(stages, STAGE_REPLAY, Flux(min_collection_s=0.02))).as_data() == run.as_data()
    assert [row["case"] for row in run.as_data()["cases"]] == ["static", "load"]


def test_stages_and_queries_process_what_the_file_says(trace, tmp_path):
    run = replay(trace, DagReplay(named(tmp_path), STAGE_REPLAY, Flux(min_collection_s=0.02))).as_data()
    users, pages = run["stages"][:2]
    assert users["processed"] == ROWS
    assert pages["processed"] == pytest.approx(2 * 1000, abs=60)
    assert users["state_max"] == sum(np.arange(ROWS) % 300)
    assert pages["state_max"] == 9 * 80
    main, late = run["queries"][:2]
    assert (main["results"], main["leaves"]) == (ROWS, None)
    assert (late["arrives"], late["leaves"], late["results"]) == (0.1, 0.2, pages["processed"])
    assert run["cases"][0]["processed"] == users["processed"] + pages["processed"]
    assert run["cases"][0]["capacity_share"] == pytest.approx(1.0, abs=0.02)
    assert {row["stage"] for row in run["intervals"]} == {"users", "pages"}


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (
            STAGES.replace('"page"', '"paeg"'),
            BadInput,
            "stages.toml, line 11: stage 'pages': key column 'paeg'",
        ),
        ("[[stage]]", BadInput, "stages.toml: "),
        (STAGES.replace("partitions = 2", "partitions = 2000000"), UsageError, "at most"),
    ],
)
def test_stages_that_do_not_fit_are_refused(trace, tmp_path, text, error, said):
    with pytest.raises(error, match=said):
        replay(trace, DagReplay(named(tmp_path, text), STAGE_REPLAY, Flux(min_collection_s=0.02)))
