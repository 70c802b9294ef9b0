"""Rows that scenarios share: each scenario has what it has alone, in bounded memory."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import BadInput
from adapt.core.mechanisms.cost_model import Wanted
from adapt.core.mechanisms.outcome import ScenarioRun, outcome_of_scenario
from adapt.core.mechanisms.scenario import simulated, staged
from adapt.core.mechanisms.scenarios import chosen
from adapt.core.stage.conditions.settings import Costs
from adapt.core.stage.input.keyed_rows import KEY, Reading
from adapt.core.stage.input.mini_partitions import MiniPartitions
from adapt.core.stage.input.offered_load import Demand, bounds_of
from adapt.core.stage.input.row_costs import RowCosts
from adapt.core.stage.input.speed import Speed
from adapt.traces.replay.comparing.shared_reading import SharedReading, one_reading, shared_stream, stream_of
from adapt.traces.store.trace import Trace
from tests.tiers import SOAK
from tests.traces.small_traces import write_trace

ROWS, GROUP = 2_000, 300
NAMES = ("static-consistent", "split-w-choices", "flux-load", "elastic", "elastic-shed", "shed-exact")


@pytest.fixture(scope="module")
def trace(tmp_path_factory) -> Trace:
    chance = np.random.default_rng(5)
    keys = np.where(chance.random(ROWS) < 0.3, 0, chance.zipf(1.3, ROWS) % 300)
    columns = {
        "ts": (np.sort(chance.uniform(0, 1000, ROWS)) * 1e6).astype(np.int64),
        "key": pa.array([f"k{key}" for key in keys]),
        "cost_us": chance.exponential(1e3, ROWS),
    }
    return write_trace(tmp_path_factory.mktemp("shared") / "x.trace", columns, parts=1, row_group=GROUP)


def points():
    """Settings that differ in load, workers, seed and costs."""
    usual = Wanted(4, costs=Costs(1e-3, 1e-4), per_worker=8, speed=Speed(offered=1.3))
    yield usual
    yield replace(usual, speed=Speed(offered=0.7))
    yield replace(usual, channels=6)
    yield replace(usual, seed=3)
    yield replace(usual, row_costs=RowCosts("cost_us"))
    yield replace(usual, duration_s=0.2)


def result(scenario, wanted, stream):
    """All that a run keeps."""
    whole = stream.rows(Reading(wanted.placed, costs=wanted.row_costs))
    terms = wanted.terms(Demand.from_chunks(whole.chunks(), wanted.uniform))
    stage = staged(scenario, terms, stream)
    done = simulated(scenario, terms, stage, terms.duration_s)
    bounds = bounds_of(stage.demand, stage.settings)
    return ScenarioRun(outcome_of_scenario(scenario, stage, done), bounds, stage, None, {}).as_data()


def test_a_scenario_has_the_same_run_with_others_and_alone(trace):
    shared = stream_of(trace)
    for at, wanted in enumerate(points()):
        for scenario in chosen(NAMES)[1:] if SOAK else chosen(NAMES)[at + 1 : at + 3]:
            assert result(scenario, wanted, shared) == result(scenario, wanted, stream_of(trace, 0)), scenario.name


@pytest.mark.parametrize(("most", "kept"), [(1 << 20, 7), (2 * GROUP + 1, 2), (0, 0)])
def test_keys_are_routed_once_for_each_placement_within_the_given_memory(trace, monkeypatch, most, kept):
    placed, columns = MiniPartitions(4, 8), [batch.column(KEY) for batch in trace.batches([KEY])]
    expected = [placed.partitions_of(keys).tolist() for keys in columns]
    size = sum(batch.get_total_buffer_size() for batch in trace.batches([KEY], [KEY]))
    routed = []
    route = MiniPartitions.partitions_of
    monkeypatch.setattr(MiniPartitions, "partitions_of", lambda self, keys: routed.append(keys) or route(self, keys))
    shared = SharedReading(trace, size + most)
    assert len(list(shared.batches([KEY]))) == len(columns) == 7
    for _ in range(2):
        assert [shared.route(placed, keys, at * GROUP).tolist() for at, keys in enumerate(columns)] == expected
    assert len(routed) == 2 * len(columns) - kept


def test_a_process_forgets_the_trace_after_a_comparison(trace):
    with one_reading():
        stream = shared_stream(trace.path, trace.manifest.content_hash)
        assert shared_stream(trace.path, trace.manifest.content_hash) is stream
        with pytest.raises(BadInput, match="give all machines one trace"):
            shared_stream(trace.path, "another")
    assert shared_stream.cache_info().currsize == 0
