"""Binding a trace on disk to a chain: which rows, in which order, and how much memory at most."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import BadInput, UsageError
from adapt.core.ordered.chain.names import Backend
from adapt.core.ordered.replay.arrivals import Arrivals
from adapt.core.ordered.replay.replay import Ordered, OrderedRun
from adapt.traces.replay import ordered as ordered_replaying
from adapt.traces.replay.ahead.foresight import Foresight
from adapt.traces.replay.chains import NamedChain, open_chain
from adapt.traces.replay.ordered import OrderedOptions, arriving_time, bound_trace, replay_ordered_trace
from adapt.traces.store.trace import Trace
from tests.traces.replay.slow_machine import refused_and_allowed
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


def test_more_rows_than_memory_may_hold_are_refused_saying_how_many_may_be(
    tmp_path: Path, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordered_replaying, "MOST_TUPLE_BYTES", 24 * 1000)
    named = chain(tmp_path, BY_KEY)
    with pytest.raises(UsageError, match=r"3,000 rows with 2 columns need more than .* use --rows 1000 or fewer"):
        bound_trace(trace, named)
    assert bound_trace(trace, named, rows=1000).rows == 1000


def test_a_trace_without_rows_is_refused(tmp_path: Path) -> None:
    empty = write_trace(tmp_path / "e.trace", {"ts": np.zeros(0, np.int64), "key": pa.array([], pa.string())})
    with pytest.raises(BadInput, match=r"e\.trace has no rows to run"):
        bound_trace(empty, chain(tmp_path, PLAIN))


def test_a_taken_place_is_refused_before_anything_is_read(tmp_path: Path, trace: Trace) -> None:
    (tmp_path / "x.run").mkdir()
    with pytest.raises(Exception, match=r"x\.run"):
        replay_ordered_trace(
            trace,
            tmp_path / "x.run",
            OrderedOptions(chain(tmp_path, PLAIN), Ordered((1,))),
            clock=lambda: 0.0,
            cpu_clock=lambda: 0.0,
        )


def test_how_long_a_replay_takes_is_foreseen(tmp_path: Path, trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    named, ordered = chain(tmp_path, PLAIN), Ordered((1, 2), repeats=2)

    def replayed(foresight: Foresight | None) -> object:
        options = OrderedOptions(named, ordered, foresight=foresight)
        return Rows(replay_ordered_trace(trace, None, options, clock=lambda: 0.0, cpu_clock=lambda: 0.0))

    sentence, _ = refused_and_allowed(replayed, monkeypatch)
    assert "(4 cases of 3,000 rows)" in sentence


@pytest.mark.parametrize(
    ("backend", "arrivals", "times", "least_s"),
    [
        (Backend.THREADS, {"rate": 100.0}, 1.0, 10 * 30.0),
        (Backend.THREADS, {"speedup": 0.5}, 1.0, 10 * 10.0),
        (Backend.THREADS, {"offered": 0.25}, 1 + 4.0, 0.0),
        (Backend.SIM, {"offered": 0.25}, 2.0, 0.0),
        (Backend.SIM, {"rate": 100.0}, 1.0, 0.0),
    ],
)
def test_a_rate_of_arrivals_makes_a_run_longer(
    backend: Backend, arrivals: dict[str, float], times: float, least_s: float
) -> None:
    ordered = Ordered((1, 2), backend, repeats=5, arrivals=(Arrivals(**arrivals),))  # type: ignore[arg-type]
    times_us = np.linspace(3e6, 8e6, ROWS).astype(np.int64)
    assert arriving_time(ordered, ROWS, times_us) == (times, least_s)


def test_a_few_rows_at_a_slow_rate_are_foreseen(tmp_path: Path, trace: Trace) -> None:
    slow = Ordered((1,), Backend.THREADS, repeats=2, arrivals=(Arrivals(rate=0.5),))
    options = OrderedOptions(chain(tmp_path, PLAIN), slow, foresight=Foresight(lambda: 0.0, lambda _: None))
    with pytest.raises(UsageError, match=r"the run would take about 3.h 20.min .* a higher rate of arrivals, or give"):
        replay_ordered_trace(trace, None, options, clock=lambda: 0.0, cpu_clock=lambda: 0.0)


class Rows:
    """The rows of an ordered run, whose times differ from run to run."""

    def __init__(self, run: OrderedRun) -> None:
        self._run = run

    def as_data(self) -> dict[str, object]:
        return {"summary": self._run.chain.rows}
