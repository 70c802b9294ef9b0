"""Loads of channels in windows: every row is routed, and the loads are kept."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.engines.names import Engine
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.stream import COLUMN_TYPES, Weight
from adapt.traces.counting.routed_sums import channel_loads
from tests.traces.counting.skewed_trace import ROWS, skewed_trace


@pytest.fixture(params=COLUMN_TYPES)
def trace(request, tmp_path):
    return skewed_trace(tmp_path, request.param)


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
