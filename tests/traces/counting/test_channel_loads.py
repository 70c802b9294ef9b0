"""Loads of channels in windows: every row is routed, and the loads are kept."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.engines.names import Engine
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.stream import KeyType, Weight
from adapt.traces.counting.channel_loads import channel_loads
from tests.traces.small_traces import write_trace

ROWS = 2_500
ARROW = {KeyType.STRING: pa.string(), KeyType.BINARY: pa.binary(), KeyType.INT64: pa.int64()}


@pytest.fixture(params=list(KeyType))
def trace(request, tmp_path):
    draw = np.random.default_rng(3)
    keys = pa.array([None if number == 5 else int(number) for number in draw.zipf(1.2, ROWS) % 300], pa.int64())
    if request.param is not KeyType.INT64:
        keys = keys.cast(pa.string()).cast(ARROW[request.param])
    rows = {"ts": pa.array(np.arange(ROWS), pa.timestamp("us", "UTC")), "key": keys}
    rows |= {"cost_us": pa.array(draw.exponential(3.0, ROWS)), "bytes": pa.array(draw.integers(0, 1_000, ROWS))}
    return write_trace(tmp_path / "t.trace", pa.table(rows))


def by_row(trace, today, weight):
    """The loads, row by row; five windows."""
    rows = pa.Table.from_batches(list(trace.batches()))
    column = {Weight.COST: "cost_us", Weight.BYTES: "bytes"}.get(weight)
    weights = np.ones(ROWS) if column is None else rows[column].to_numpy()
    loads = np.zeros((today.channels, 5))
    np.add.at(loads, (today.channels_of(rows["key"]), np.arange(ROWS) // 500), weights)
    return loads


@pytest.mark.parametrize("weight", list(Weight))
@pytest.mark.parametrize("engine", [Engine.KAFKA, Engine.SPARK])
def test_loads_are_those_of_all_rows(trace, tmp_path, engine, weight):
    today = Plan(engine, 7, trace.key_type)
    found = channel_loads(trace, today, tmp_path, weight)
    assert found == pytest.approx(by_row(trace, today.partitioner(), weight))
    kept = channel_loads(trace, today, tmp_path, weight)
    assert (kept == found).all()


def test_damaged_loads_are_made_anew_and_placements_are_told_apart(trace, tmp_path):
    one, other = (Plan(engine, 4, trace.key_type) for engine in (Engine.KAFKA, Engine.SPARK))
    found = channel_loads(trace, one, tmp_path, Weight.COUNT)
    assert (channel_loads(trace, other, tmp_path, Weight.COUNT) != found).any()
    for kept in tmp_path.glob("*.loads"):
        kept.write_text("[1")
    assert (channel_loads(trace, one, tmp_path, Weight.COUNT) == found).all()


def test_other_key_groups_are_another_placement(trace, tmp_path):
    one, other = (Plan(Engine.FLINK, 4, trace.key_type, max_parallelism=groups) for groups in (128, 7))
    found = channel_loads(trace, one, tmp_path, Weight.COUNT)
    assert (channel_loads(trace, other, tmp_path, Weight.COUNT) != found).any()


def test_a_folder_that_cannot_be_written_only_costs_time(trace, tmp_path):
    aside = tmp_path / "file"
    aside.write_text("")
    assert channel_loads(trace, Plan(Engine.KAFKA, 4, trace.key_type), aside, Weight.COUNT) is not None
