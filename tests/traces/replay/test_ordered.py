"""Binding a trace on disk to a chain: which rows, in which order, and how much memory at most."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.core.errors import BadInput, EnvironmentFailure, UsageError
from adapt.core.ordered.chain.names import Backend
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.replay import arrivals as replay_arrivals
from adapt.core.ordered.replay.arrivals import Arrivals, Ordered
from adapt.core.ordered.replay.tables import OrderedRun
from adapt.traces.replay import ordered as ordered_replaying
from adapt.traces.replay.chains import NamedChain, open_chain
from adapt.traces.replay.egress import EgressTarget
from adapt.traces.replay.files import scratch
from adapt.traces.replay.files.scratch import Scratch
from adapt.traces.replay.ordered import OrderedReplay, bound_trace
from adapt.traces.replay.replay import replay
from adapt.traces.store.trace import Trace
from tests.traces.small_traces import write_trace

ROWS = 3_000

BY_KEY = '[[operator]]\nname = "a"\nkind = "partitioned"\nkey = "key"\npartitions = 4\ncost = "cost_us"\n'
PLAIN = '[[operator]]\nname = "a"\nkind = "stateless"\ncost = 1.0\n'


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    chance = np.random.default_rng(1)
    columns = {
        "ts": np.arange(ROWS),
        "key": pa.array([f"k{key}" for key in chance.integers(0, 50, ROWS)]),
        "cost_us": pa.array(chance.random(ROWS)),
    }
    return write_trace(tmp_path / "x.trace", columns)


def chain(tmp_path: Path, text: str) -> NamedChain:
    (tmp_path / "c.toml").write_text(text)
    return open_chain(tmp_path / "c.toml")


@pytest.mark.parametrize("rows", [1, 700, 2_099, None])
def test_tuples_are_the_first_rows_in_their_order(tmp_path: Path, trace: Trace, rows: int | None) -> None:
    bound = bound_trace(trace, chain(tmp_path, BY_KEY), rows=rows)
    table = pa.Table.from_batches(list(trace.batches())).slice(0, rows)
    assert len(bound.tuples) == table.num_rows
    costs = bound.tuples[:, bound.fields.index("cost cost_us")]
    assert costs.tolist() == np.rint(np.asarray(table["cost_us"]) * 1000).tolist()
    codes = bound.tuples[:, bound.fields.index("key key")]
    assert len(set(zip(codes.tolist(), table["key"].to_pylist(), strict=True))) == len(set(codes.tolist()))


def test_a_chain_that_reads_no_column_runs_all_rows(tmp_path: Path, trace: Trace) -> None:
    assert bound_trace(trace, chain(tmp_path, PLAIN)).rows == ROWS


def test_more_rows_than_the_disk_has_room_for_are_refused(
    tmp_path: Path, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordered_replaying, "IN_MEMORY_BYTES", 24 * 1000)
    monkeypatch.setattr(scratch, "shutil", SimpleNamespace(disk_usage=lambda _: SimpleNamespace(free=24 * 2999)))
    with Scratch() as files, pytest.raises(EnvironmentFailure, match=r"need 0\.0 GB in .* or give --rows 300 or fewer"):
        bound_trace(trace, chain(tmp_path, BY_KEY), scratch=files)


LONG = """
[[operator]]
name = "a"
kind = "stateless"
cost = 1.0
[[operator]]
name = "b"
kind = "partitioned"
key = "key"
partitions = 4
cost = "cost_us"
selectivity = 1.3
"""


@pytest.mark.parametrize("backend", Backend)
@pytest.mark.parametrize("arrivals", [(), (Arrivals(rate=3e5),), (Arrivals(speedup=0.5),)])
def test_a_trace_that_is_read_by_blocks_gives_what_it_gives_as_a_whole(
    tmp_path: Path, trace: Trace, monkeypatch: pytest.MonkeyPatch, backend: Backend, arrivals: tuple[Arrivals, ...]
) -> None:
    def replayed(name: str) -> OrderedRun:
        is_real = backend is Backend.THREADS
        output = EgressTarget.named(tmp_path / f"{name}.parquet") if is_real else None
        how = Ordered((1, 3), backend, RunSettings(mark_every=7), arrivals=arrivals)
        options = OrderedReplay(chain(tmp_path, LONG), how, output=output, clock=lambda: 0.0, cpu_clock=lambda: 0.0)
        return replay(trace, options)

    whole = replayed("whole")
    monkeypatch.setattr(ordered_replaying, "IN_MEMORY_BYTES", 0)
    monkeypatch.setattr(ordered_replaying, "BLOCK_ROWS", 800)
    monkeypatch.setattr(replay_arrivals, "_AT_ONCE", 501)
    by_blocks = replayed("blocks")
    assert by_blocks.egress == whole.egress
    assert all(one.is_ordered for one in by_blocks.outcomes)
    if backend is Backend.SIM:
        assert by_blocks.tables()["workers"].rows == whole.tables()["workers"].rows
        return
    for one, other in zip(by_blocks.outcomes, whole.outcomes, strict=True):
        assert one.paced is None or one.paced.arrivals_ns.tolist() == other.paced.arrivals_ns.tolist()  # type: ignore[union-attr]
    assert pq.read_table(tmp_path / "blocks.parquet").equals(pq.read_table(tmp_path / "whole.parquet"))


def test_a_column_that_will_not_do_is_named_with_the_rows_before_its_block(
    tmp_path: Path, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordered_replaying, "IN_MEMORY_BYTES", 0)
    monkeypatch.setattr(ordered_replaying, "BLOCK_ROWS", 700)
    costs = np.where(np.arange(ROWS) == 2_000, -1.0, 1.0)
    bad = write_trace(tmp_path / "bad.trace", {"ts": np.arange(ROWS), "key": ["k"] * ROWS, "cost_us": costs})
    with (
        Scratch() as files,
        pytest.raises(BadInput, match=r"^c\.toml: operator 'a': .* row 1,500$") as told,
    ):
        bound_trace(bad, chain(tmp_path, BY_KEY), scratch=files)
    inside, before = re.findall(r"row ([\d,]+)", str(told.value))
    assert int(inside) + int(before.replace(",", "")) == 2_000


def test_a_trace_without_rows_is_refused(tmp_path: Path) -> None:
    empty = write_trace(tmp_path / "e.trace", {"ts": np.zeros(0, np.int64), "key": pa.array([], pa.string())})
    with pytest.raises(BadInput, match=r"e\.trace has no rows to run"):
        bound_trace(empty, chain(tmp_path, PLAIN))


def test_a_taken_place_is_refused_before_anything_is_read(tmp_path: Path, trace: Trace) -> None:
    (tmp_path / "x.run").mkdir()
    with pytest.raises(Exception, match=r"x\.run"):
        replay(trace, OrderedReplay(chain(tmp_path, PLAIN), Ordered((1,))), tmp_path / "x.run")


def test_rows_that_arrive_for_hours_are_refused(tmp_path: Path, trace: Trace) -> None:
    slow = Ordered((1,), Backend.THREADS, repeats=2, arrivals=(Arrivals(rate=0.5),))
    options = OrderedReplay(chain(tmp_path, PLAIN), slow)
    with pytest.raises(UsageError, match=r"rows arrive for 3.h 20.min in all runs, .* a higher rate of arrivals"):
        replay(trace, options)
