import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import BadInput, UsageError
from adapt.core.stage.conditions.settings import StageSettings, even_groups
from adapt.core.stage.input import keyed_rows
from adapt.core.stage.input.keyed_rows import Reading, bytes_by_partition, spread
from adapt.core.stage.input.mini_partitions import MiniPartitions
from adapt.core.stage.input.offered_load import Demand
from adapt.core.stage.input.row_costs import RowCosts

PARTITIONS = MiniPartitions(4, 4)
STAGE = StageSettings(4, PARTITIONS.owners, even_groups(16, 16))
ROWS = pa.table(
    {
        "ts": pa.array([1_000_000, 1_000_000, 3_000_000, 4_000_000, 9_000_000], pa.timestamp("us", "UTC")),
        "key": ["a", "b", "a", None, "c"],
        "stream": ["x", "y", "x", "x", None],
        "cost_us": [1.0, None, 3.0, 4.0, 5.0],
        "bytes": [10, 20, None, 40, 50],
    }
)


def chunks(size, rows=ROWS, **reading):
    return list(Reading(PARTITIONS, **reading).rows(lambda: rows.to_batches(size)).chunks())


def joined(parts, name):
    return np.concatenate([getattr(part, name) for part in parts]).tolist()


@pytest.mark.parametrize("size", [1, 2, 10])
def test_rows_arrive_by_their_times_at_a_speed_up_however_they_are_cut(size):
    parts = chunks(size, speedup=2.0, costs=RowCosts("cost_us"), by_stream=True)
    assert joined(parts, "due_s") == [0.0, 0.0, 1.0, 1.5, 4.0]
    assert joined(parts, "cost_s") == [cost * 1e-6 for cost in (1.0, 0.0, 3.0, 4.0, 5.0)]
    assert joined(parts, "groups") == PARTITIONS.partitions_of(ROWS["key"].combine_chunks()).tolist()
    producers = joined(parts, "producers")
    assert producers[0] == producers[2] == producers[3]
    assert joined(chunks(size), "producers") == spread(0, 5, 4).tolist()


def test_rows_as_fast_as_they_can_be_taken_have_no_time_and_no_cost():
    (part,) = chunks(10, speedup=None)
    assert part.due_s is part.cost_s is None


def test_rotating_rows_go_to_one_worker_after_another_and_each_key_keeps_its_order(monkeypatch):
    monkeypatch.setattr(keyed_rows, "ROTATED_ROWS", 300)
    rows = pa.table(
        {"ts": pa.array(range(1000), pa.timestamp("us", "UTC")), "key": [f"k{at % 37}" for at in range(1000)]}
    )
    straight, turned = (chunks(10**4, rows, speedup=None, rotates=each)[0] for each in (False, True))
    workers = PARTITIONS.owners[turned.groups]
    for first in range(0, 1000, 300):
        block = slice(first, first + 300)
        assert (np.diff(workers[block]) >= 0).all()
        assert set(workers[block]) == {0, 1, 2, 3}
        assert sorted(turned.groups[block]) == sorted(straight.groups[block])
    for group in range(16):
        np.testing.assert_array_equal(
            turned.producers[turned.groups == group], straight.producers[straight.groups == group]
        )
    with pytest.raises(UsageError, match="omit --join"):
        Reading(PARTITIONS, speedup=None, rotates=True, timed=True)


@pytest.mark.parametrize("size", [1, 2, 10])
def test_rows_after_the_end_are_left_out(size):
    assert joined(chunks(size, speedup=1.0, until_s=3.0), "due_s") == [0.0, 0.0, 2.0, 3.0]


def test_producers_are_spread_evenly():
    counts = np.bincount(spread(10**9, 40_000, 8), minlength=8)
    assert counts.sum() == 40_000
    assert counts.max() - counts.min() < 500


def test_a_row_without_time_is_refused():
    rows = ROWS.set_column(0, "ts", pa.array([1, None, 3, 4, 5], pa.timestamp("us", "UTC")))
    with pytest.raises(BadInput, match="has no timestamp"):
        chunks(10, rows)


def test_sizes_are_added_up_by_partition():
    sums = bytes_by_partition(ROWS.to_batches(2), PARTITIONS)
    of = PARTITIONS.partitions_of(ROWS["key"].combine_chunks())
    expected = np.zeros(16, np.int64)
    for partition, size in zip(of, [10, 20, 0, 40, 50], strict=True):
        expected[partition] += size
    assert sums.tolist() == expected.tolist()


def test_the_demand_is_the_same_however_rows_are_cut():
    whole, cut = (Demand.from_chunks(chunks(size, costs=RowCosts("cost_us")), STAGE) for size in (10, 1))
    assert whole.rows.tolist() == cut.rows.tolist()
    assert whole.cost_s.tolist() == cut.cost_s.tolist()
    assert whole.unused_s == cut.unused_s
    assert (whole.all_rows, whole.last_s) == (5, 8.0)
    assert whole.cost_s.sum() == pytest.approx(13e-6)
    assert Demand.from_chunks(chunks(10, speedup=None), STAGE).cost_s is None


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (ROWS.slice(0, 0), "no rows"),
        (ROWS.take([2, 0]), "before its predecessor"),
        (ROWS.set_column(3, "cost_us", pa.array([1.0, -1.0, 0, 0, 0])), "a service time is negative"),
        (ROWS.set_column(3, "cost_us", pa.array([1.0, np.inf, 0, 0, 0])), "or infinite"),
    ],
)
@pytest.mark.parametrize("size", [1, 10])
def test_streams_that_cannot_be_are_refused(rows, told, size):
    with pytest.raises(BadInput, match=told):
        Demand.from_chunks(chunks(size, rows, costs=RowCosts("cost_us")), STAGE)
