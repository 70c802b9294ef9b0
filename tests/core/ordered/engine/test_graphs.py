"""Graphs of operators: the order of a walk, joins of inputs, and what each backend gives."""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import BadInput, UsageError
from adapt.core.ordered.chain.bound import BoundChain, bind
from adapt.core.ordered.chain.chain import Chain, Operator, Punctuations
from adapt.core.ordered.chain.names import Backend, OperatorKind, Reorder, WorkQueue
from adapt.core.ordered.chain.own import own_function
from adapt.core.ordered.engine.reference import check_sample, run_serially
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.ordered.engine.threads import run_by_workers
from adapt.core.ordered.model.model import run_model
from adapt.core.ordered.replay.arrivals import Ordered
from adapt.core.ordered.replay.replay import replay_ordered
from tests.core.ordered.chains import partitioned, stateful, stateless
from tests.core.ordered.walk import walked

STATELESS, PARTITIONED, STATEFUL = OperatorKind.STATELESS, OperatorKind.PARTITIONED, OperatorKind.STATEFUL


class Step(NamedTuple):
    ts: int
    way: int


def first(ts) -> Iterator[Step]:
    yield Step(ts, 1)
    yield Step(ts, 2)


def left(ts, way) -> Iterator[Step]:
    yield Step(ts, 10 * way + 1)
    yield Step(ts, 10 * way + 2)


def right(ts, way) -> Step | None:
    return Step(ts, 10 * way + 3) if way == 1 else None


class Met(NamedTuple):
    ts: int
    way: int
    number: int
    stream: int


class Numbers:
    """Numbers what it meets."""

    met: int

    def step(self, from_: int, ts: int, way: int) -> Met:
        self.met += 1
        return Met(ts, way, self.met, from_)


def operator(name: str, of: Any, kind: OperatorKind = STATELESS, **more: Any) -> Operator:
    sources = more.pop("sources", None)
    return Operator(name, kind, function=own_function(f"mine:{name}", of), sources=sources, **more)


DIAMOND = (
    operator("first", first),
    operator("left", left, sources=("first",)),
    operator("right", right, sources=("first",)),
    operator("numbers", Numbers, STATEFUL, sources=("right", "left")),
)


def test_a_row_goes_through_each_branch_before_the_next_one_and_leaves_after_what_was_made_of_it() -> None:
    chain = bind(Chain(DIAMOND, outputs=("first", "numbers")), {"ts": pa.array([7, 8])})
    ways = [(1, 11, 1, 1), (1, 12, 2, 1), (1, 13, 3, 0), (1, 1), (2, 21, 4, 1), (2, 22, 5, 1), (2, 2)]
    expected = [
        (ts, *way[1:3], way[3], 4) if len(way) == 4 else (ts, way[1], 0, 0, 1)
        for ts, more in ((7, 0), (8, 5))
        for way in [(each[0], each[1], each[2] + more, each[3]) if len(each) == 4 else each for each in ways]
    ]
    done = walked(chain, keep=100)
    assert list(done.kept) == expected
    assert (done.inputs, done.outputs) == ((2, 4, 4, 10), (4, 8, 2, 10))
    threads = run_by_workers(chain, RunSettings(3), pace=1, keep=100)
    assert [tuple(row) for row in threads.kept.tolist()] == expected


class Pair(NamedTuple):
    key: str
    ts: int
    price: float
    volume: int


class Quoted:
    """Each trade with the last price quoted up to 50 us before it."""

    price: float
    at: int = -1

    def step(self, from_: int, key: str, ts: int, price: float, volume: int) -> Pair | None:
        if from_ == 1:
            self.price = price
            self.at = ts
            return None
        return Pair(key, ts, self.price, volume) if self.at >= 0 and ts - self.at <= 50 else None


def is_large(volume) -> bool:
    return volume > 3


def trades_and_quotes(rows: int) -> tuple[dict[str, pa.Array], dict[str, pa.Array]]:
    random = np.random.default_rng(rows)

    def some(**more: Any) -> dict[str, pa.Array]:
        times = np.sort(random.integers(0, 20 * rows, rows))
        return {"ts": pa.array(times), "key": pa.array([f"k{each}" for each in random.integers(0, 9, rows)]), **more}

    trades = some(volume=pa.array(random.integers(0, 9, rows)))
    return trades, some(price=pa.array(random.random(rows)))


def joined(rows: int, *more: Operator, outputs: tuple[str, ...] = ()) -> BoundChain:
    operators = (
        operator("large", is_large, sources=("trades",)),
        operator("quoted", Quoted, PARTITIONED, key="key", partitions=5, sources=("large", "quotes")),
        *more,
    )
    trades, quotes = trades_and_quotes(rows)
    return bind(Chain(operators, inputs=("trades", "quotes"), outputs=outputs), trades, more=[quotes])


def pairs(rows: int) -> list[tuple[str, int, float, int]]:
    """The same join in a few lines, trades before quotes of the same time."""
    trades, quotes = ({name: column.to_pylist() for name, column in each.items()} for each in trades_and_quotes(rows))
    pending, last, found = deque(zip(quotes["ts"], quotes["key"], quotes["price"], strict=True)), {}, []
    for ts, key, volume in zip(trades["ts"], trades["key"], trades["volume"], strict=True):
        while pending and pending[0][0] < ts:
            at, of, price = pending.popleft()
            last[of] = at, price
        if volume > 3 and key in last and ts - last[key][0] <= 50:
            found.append((key, ts, last[key][1], volume))
    return found


@pytest.mark.parametrize(
    "settings",
    [
        RunSettings(1),
        RunSettings(3, ring_buffer=8, queue_capacity=8, chunk=1, mark_every=5),
        RunSettings(2, Reorder.LOCK, WorkQueue.PARTITIONED, ring_buffer=64),
        RunSettings(4, Reorder.RETRY, ring_buffer=16, queue_capacity=64, chunk=16),
    ],
)
def test_a_join_by_event_order_gives_what_a_plain_one_does(settings: RunSettings) -> None:
    chain, expected = joined(2_000), pairs(2_000)
    done = run_by_workers(chain, replace(settings, checked=True), pace=1, keep=5_000)
    texts = chain.texts["key"].to_pylist()
    made = [
        (texts[key], ts, np.int64(price).view(np.float64), volume) for key, ts, price, volume, _ in done.kept.tolist()
    ]
    assert made == expected
    assert len(expected) > 200
    assert (
        done.egress == walked(chain).egress == run_serially(chain).egress == run_serially(chain, compiled=True).egress
    )
    large = sum(volume > 3 for volume in trades_and_quotes(2_000)[0]["volume"].to_pylist())
    assert [(tally.inputs, tally.outputs) for tally in done.operators] == [
        (2_000, large),
        (large + 2_000, len(expected)),
    ]
    assert done.operators[1].partition_loads.sum() == large + 2_000
    assert not any(tally.overlaps or tally.disorders for tally in done.operators)


def test_the_model_runs_the_functions_of_a_graph_and_charges_no_cost_for_rows_that_pass() -> None:
    chain = joined(500)
    run = run_model(chain, RunSettings(4), Contention(), np.random.default_rng(1), [0.0, 0.0]).run
    assert run.egress == walked(chain).egress
    assert run.elapsed_s == 0.0
    large = run.operators[0].outputs
    first_only = run_model(chain, RunSettings(1), Contention(), np.random.default_rng(1), [1.0, 0.0]).run
    assert first_only.elapsed_s == pytest.approx(500e-6)  # of 1,000 rows, of which half pass
    second_only = run_model(chain, RunSettings(1), Contention(), np.random.default_rng(1), [0.0, 1.0]).run
    assert second_only.elapsed_s == pytest.approx((large + 500) * 1e-6)


class Many(NamedTuple):
    way: int


def many(way) -> Iterator[Many]:
    for copy in range(way % 9):
        yield Many(copy)


@pytest.mark.parametrize("workers", [1, 3])
def test_outputs_that_fill_their_room_leave_with_the_row_behind_them(workers: int) -> None:
    operators = (operator("rows", same), operator("many", many))
    chain = bind(Chain(operators, outputs=("rows", "many")), {"way": pa.array(np.arange(100))})
    expected = [row for way in range(100) for row in (*((copy, 2) for copy in range(way % 9)), (way, 1))]
    done = run_by_workers(chain, RunSettings(workers, ring_buffer=16), pace=1, keep=1_000)
    assert [tuple(row) for row in done.kept.tolist()] == expected
    check_sample(chain, 100)


def same(way) -> Many:
    return Many(way)


class Unlike:
    """What Numba cannot compile."""

    seen: dict

    def step(self, from_: int, ts: int) -> Met | None:
        self.seen[ts] = self.seen.get(ts, 0) + 1
        return Met(ts, 0, self.seen[ts], from_)


def test_a_graph_that_cannot_be_compiled_runs_serially() -> None:
    operators = (stateless("all"), operator("unlike", Unlike, STATEFUL, sources=("trace", "all")))
    chain = bind(Chain(operators), {"ts": pa.array([1, 1, 2])})
    taken: list[list[int]] = []
    run = replay_ordered(
        chain, Ordered((1, 2)), clock=lambda: 0.0, cpu_clock=lambda: 0.0, taken=lambda rows: taken.extend(rows.tolist())
    )
    assert "is a dict" in run.obstacles[0]
    # Each row first by way of `all`, as its output comes before the row that goes on behind it.
    assert [(row[0], row[2], row[3]) for row in taken] == [
        (1, 1, 1),
        (1, 2, 0),
        (1, 3, 1),
        (1, 4, 0),
        (2, 1, 1),
        (2, 2, 0),
    ]


def test_a_table_says_what_each_operator_reads() -> None:
    run = replay_ordered(
        joined(100), Ordered((1,), Backend.SIM, min_time_s=0.0), clock=lambda: 0.0, cpu_clock=lambda: 0.0
    )
    assert run.tables()["operators"].values("reads") == ["trades", "large, quotes"]


class Count(NamedTuple):
    rows: int


class Counts:
    rows: int

    def step(self, ts: int) -> None:
        self.rows += 1

    def close(self, time: int) -> Count:
        closed = Count(self.rows)
        self.rows = 0
        return closed


def test_punctuations_close_operators_in_their_order_after_all_rows_before() -> None:
    counts = own_function("mine:Counts", Counts)
    of_inputs = [Operator(name, STATEFUL, function=counts, sources=(name[-1],)) for name in ("of b", "of a")]
    chain = Chain((*of_inputs,), Punctuations(every_us=10), ("a", "b"), ("of a", "of b"))
    bound = bind(chain, {"ts": pa.array([1, 12, 13])}, more=[{"ts": pa.array([2, 9, 30])}])
    assert list(walked(bound, keep=9).kept) == [(2, 2), (1, 3), (2, 3), (1, 2)]
    assert run_by_workers(bound, RunSettings(2), pace=1).egress == walked(bound).egress


AT = {"ts": pa.array([1]), "key": pa.array(["k"])}


@pytest.mark.parametrize(
    ("operators", "more", "told"),
    [
        ((partitioned("a"), stateless("b")), {"ts": pa.array([1])}, "'a' is partitioned by 'key', which one of .* 'r'"),
        ((stateful("a"),), {"ts": pa.array([1]), "key": pa.array([1])}, None),
        ((partitioned("a"),), {"ts": pa.array([1]), "key": pa.array([1])}, "'key' is string in input 'l' and int64 in"),
        ((operator("a", left),), {"ts": pa.array([1])}, "operator 'a': column 'way' does not exist"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(operators: Any, more: Any, told: str | None) -> None:
    opening, *others = operators
    chain = Chain((replace(opening, sources=("l", "r")), *others), inputs=("l", "r"))
    if told is None:
        assert bind(chain, AT, more=[more]).rows == 2
        return
    with pytest.raises(BadInput, match=told):
        bind(chain, AT, more=[more])


def test_an_input_without_rows_to_bind_is_refused() -> None:
    chain = Chain((replace(stateless("a"), sources=("l", "r")),), inputs=("l", "r"))
    with pytest.raises(UsageError, match=r"the chain has 2 inputs: l, r \(got 1\)"):
        bind(chain, AT)


def test_a_field_that_a_stream_gives_as_another_type_is_refused() -> None:
    class Price(NamedTuple):
        ts: float

    def price(ts: int) -> Price | None:
        return None

    steps, way = operator("steps", first, sources=("trace",)), operator("way", left, sources=("price", "steps"))
    chain = Chain((operator("price", price), steps, way))
    with pytest.raises(BadInput, match="operator 'way' reads 'ts' as float and as int; rename one"):
        bind(chain, {"ts": pa.array([1])})
