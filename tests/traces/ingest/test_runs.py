"""Cuts of sorted runs, and their merge, against one sort of all rows."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.traces.ingest import runs as module
from adapt.traces.ingest.runs import MIXED, RunWriter, _merged, cut, rising, runs_of
from adapt.traces.ingest.sieve import TIME


@pytest.mark.parametrize("seed", range(30))
def test_runs_are_cut_and_merged_at_exact_ranks(tmp_path, monkeypatch, seed):
    chance = np.random.default_rng(seed)
    index_rows = int(chance.choice([1, 7, 100, 4096]))
    monkeypatch.setattr(module, "INDEX_ROWS", index_rows)
    monkeypatch.setattr(module, "RUN_BYTES", int(chance.choice([1000, 30_000, 10_000_000])))
    monkeypatch.setattr(module, "FEW", int(chance.choice([4, 64, 1 << 14])))
    monkeypatch.setattr(module, "ROW_GROUP_ROWS", 700)
    count, span = int(chance.integers(1, 5000)), int(chance.choice([1, 3, 100, 10**9]))
    rows = pa.table(
        {
            "_file": np.sort(chance.integers(0, 3, count)).astype(np.int32),
            "_line": np.arange(count),
            "ts": pa.array(chance.integers(-span, span, count)).cast(TIME),
        }
    )
    mixed = chance.random(count) < chance.choice([0, 0.1])
    order = [(name, "ascending") for name in ("ts", "_file", "_line")]
    for name, some in (("run", rows.filter(~mixed)), (MIXED, rows.filter(mixed).sort_by(order))):
        writer = RunWriter(tmp_path, name, 0)
        for batch in some.to_batches(max_chunksize=997):
            writer.add(batch)
        writer.close()
    runs, wanted = runs_of(tmp_path), rows.sort_by(order)
    whole = np.array([len(run.rows) for run in runs])
    assert whole.sum() == count
    for rank in {0, 1, count // 2, count - 1, count, *chance.integers(0, count + 1, 5).tolist()}:
        cuts = cut(runs, rank, whole * 0, whole)
        before = np.concatenate([run.order[2][:end] for run, end in zip(runs, cuts, strict=True)])
        assert sorted(before) == sorted(wanted["_line"].to_pylist()[:rank])
    first = count // 3
    merged = pa.Table.from_batches(_merged(runs, first, count, rows.schema), rows.schema)
    assert merged.equals(wanted.slice(first))


@pytest.mark.parametrize("span", [1, 50, 10**9, 1 << 62])
def test_rows_of_equal_time_keep_their_order(span):
    times = np.random.default_rng(0).integers(-span, span, 10_000)
    assert np.array_equal(rising(times), np.argsort(times, kind="stable"))
    assert np.array_equal(rising(times[:1]), [0])
