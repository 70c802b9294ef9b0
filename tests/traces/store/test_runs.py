"""Runs on disk: whole, as they were measured, and never silently damaged."""

import json
from itertools import count

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import BadInput
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.repartition.decisions import Replan, Schedule
from adapt.core.repartition.replay import replay_repartition
from adapt.core.units.row_or_time_span import Length
from adapt.traces.store.manifest import Provenance
from adapt.traces.store.runs import StoredRun, read_run, write_run

MADE = Provenance("adapt replay repartition", {"period": "1ms"}, [{"name": "a.trace", "content_hash": "0"}])


def replayed(channels=3, step=1.0, rows=4000):
    keys = pa.array(np.random.default_rng(1).zipf(1.3, rows) % 100).cast(pa.string())
    batch = pa.record_batch({"ts": pa.array(np.arange(rows), pa.timestamp("us", "UTC")), "key": keys})
    ticks = count(step=step)
    return replay_repartition(
        lambda columns: [batch.select(columns)],
        Replan(Recipe(Scheme.HYBRID, replicas=20), Schedule.fixed(channels), Length.parse("1ms")),
        clock=lambda: next(ticks),
    )


def test_a_run_comes_back_as_it_was_measured(tmp_path):
    run = replayed()
    manifest = write_run(run, tmp_path / "a.run", MADE)
    back = read_run(tmp_path / "a.run")
    assert (back.summary, dict(back.tables)) == (run.summary(), run.tables())
    assert json.dumps(back.as_data()) == json.dumps(run.as_data())
    assert back.periods is back.tables["periods"]
    assert back.manifest == manifest
    assert manifest.made == MADE


def test_the_content_hash_is_of_what_was_measured_not_of_when(tmp_path):
    runs = {"one": replayed(), "slower": replayed(step=7.0), "other": replayed(channels=4)}
    hashes = {name: write_run(run, tmp_path / name, MADE).content_hash for name, run in runs.items()}
    assert hashes["one"] == hashes["slower"] != hashes["other"]


def test_a_run_of_another_mechanism_has_no_periods_to_give(tmp_path):
    write_run(replayed(), tmp_path / "a.run", MADE)
    back = read_run(tmp_path / "a.run")
    other = StoredRun(back.path, back.manifest, "flux", {}, back.summary, {})
    with pytest.raises(BadInput, match="a run of flux, which has no periods"):
        _ = other.periods
