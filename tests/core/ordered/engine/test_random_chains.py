"""Random chains on threads: whatever the settings, the egress is that of the serial run, in value and in order."""

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.ordered.chain.bound import BoundChain, bind
from adapt.core.ordered.chain.chain import COUNTED, Chain, Operator, Punctuations
from adapt.core.ordered.chain.names import (
    FunctionName,
    Heuristic,
    OperatorKind,
    Parallelism,
    PartitionCount,
    Reorder,
    WorkQueue,
)
from adapt.core.ordered.chain.own import own_function
from adapt.core.ordered.engine.reference import run_serially
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.engine.threads import run_by_workers
from tests.core.ordered.chains import counting, partitioned, stateful, stateless, stream
from tests.core.ordered.walk import walked

soak = pytest.mark.skipif(not os.environ.get("ADAPT_SOAK"), reason="long; set ADAPT_SOAK=1")

SELECTIVITIES = (0.0, 0.3, 0.5, 1.0, 1.0, 1.0, 1.3, 2.0, 8.0)
PARTITIONS = (1, 2, 16, 64)
CHUNKS = (0, 0, 1, 2, 7, 64, 1024)
SIZES = (1, 2, 8, 64, 512, 4096)
WORKERS = (1, 2, 2, 3, 4, 8, 16, 64)
SCHEMES = (
    (Reorder.CLAIM, WorkQueue.HYBRID),
    (Reorder.CLAIM, WorkQueue.HYBRID),
    (Reorder.CLAIM, WorkQueue.PARTITIONED),
    (Reorder.LOCK, WorkQueue.HYBRID),
    (Reorder.LOCK, WorkQueue.PARTITIONED),
    (Reorder.RETRY, WorkQueue.HYBRID),
    (Reorder.RETRY, WorkQueue.PARTITIONED),
)
HOUR_US = 3_600_000_000


def random_operator(random: np.random.Generator, name: str, selectivity: float) -> Operator:
    partitions = int(random.choice(PARTITIONS))
    kinds = [
        stateless(name, selectivity),
        partitioned(name, partitions, selectivity),
        counting(name, partitions),
        stateful(name, selectivity),
    ]
    return kinds[random.integers(len(kinds))]


def random_operators(random: np.random.Generator) -> list[Operator]:
    """One to five operators, with at most 16 outputs for each row."""
    operators, through = list[Operator](), 1.0
    for number in range(random.integers(1, 6)):
        name, selectivity = f"o{number}", float(random.choice([s for s in SELECTIVITIES if s * through <= 16]))
        operators.append(random_operator(random, name, selectivity))
        through *= 1.0 if operators[-1].function is FunctionName.COUNT else selectivity
    return operators


def parametric(seed: int, operators: list[Operator]) -> list[Operator]:
    """The operators, in half of the chains with payloads, larger states, or as many partitions as workers."""
    random, made = np.random.default_rng([seed, 1]), list[Operator]()
    if random.random() < 0.5:
        return operators
    for operator in operators:
        has_state = operator.kind is not OperatorKind.STATELESS
        sizes = {"tuple_bytes": 8 * int(random.choice([0, 1, 3, 8]))}
        sizes["state_bytes"] = 8 * int(random.choice([0, 1, 7, 32])) if has_state else 0
        count = operator.partitions if random.random() < 0.5 or not operator.key else PartitionCount.WORKERS
        of_work = sizes if operator.function is FunctionName.WORK else {}
        made.append(replace(operator, partitions=count, **of_work))
    return made


def windowed(random: np.random.Generator, rows: int) -> BoundChain:
    """Pairs of items in a basket, counted at each full hour: windows that punctuations end."""
    top = FunctionName.WINDOW_TOP_100
    chain = (
        Operator("hours", OperatorKind.STATELESS, function=FunctionName.HOUR),
        Operator("pairs", OperatorKind.PARTITIONED, "key", 3, function=FunctionName.BASKET_PAIRS),
        Operator("counts", OperatorKind.PARTITIONED, COUNTED, int(random.choice(PARTITIONS)), function=top),
        Operator("top", OperatorKind.STATEFUL, function=top),
    )
    times = np.sort(random.integers(0, 3 * HOUR_US, rows))
    columns = {"ts": times, "key": np.arange(rows) % 9, "item": random.integers(0, 40, rows)}
    return bind(
        Chain(chain, Punctuations(every_us=HOUR_US)), {name: pa.array(words) for name, words in columns.items()}
    )


class Sum(NamedTuple):
    value: int


class Sums:
    """Up to eight outputs of a tuple, and up to five of a window; they depend on the order and on the stream."""

    total: int

    def step(self, from_: int, value: int) -> Iterator[Sum]:
        self.total = self.total * 31 + value + from_
        for copy in range((value >> 8) & 7):
            yield Sum(self.total + copy)

    def close(self, time: int) -> Iterator[Sum]:
        for copy in range(self.total & 7):
            yield Sum(self.total + copy)
        self.total = 0


SUMS = own_function("fuzz:Sums", Sums)


def random_graph(random: np.random.Generator, rows: int, keys: int, seed: int) -> BoundChain:
    """Two to six operators that read some of one to three inputs and of each other, with at most 16 outputs a row."""
    inputs = [f"i{number}" for number in range(random.integers(1, 4))]
    through, operators, readable = dict.fromkeys(inputs, 1.0), list[Operator](), list(inputs)
    count = int(random.integers(2, 7))
    for number in range(count):
        unread = [name for name in inputs if not any(name in (each.sources or ()) for each in operators)]
        some = list(random.choice(readable, random.integers(1, min(3, len(readable)) + 1), replace=False))
        sources = tuple(dict.fromkeys([*some, *(unread if number == count - 1 else [])]))
        most = sum(through[each] for each in sources)
        selectivity = float(random.choice([s for s in SELECTIVITIES if s * most <= 16]))
        made = random_operator(random, f"o{number}", selectivity)
        operators.append(replace(made, sources=sources))
        through[made.name] = most * (1.0 if made.function is FunctionName.COUNT else selectivity)
        readable += [made.name] if through[made.name] <= 8 else []
    operators, punctuations = parametric(seed, operators), None
    if random.random() < (0.4 if seed >= 1000 else 0.04):  # each of its layouts takes a second to compile
        sources = tuple(random.choice(readable, random.integers(1, min(4, len(readable) + 1)), replace=False))
        kind = [{"kind": OperatorKind.STATEFUL}, {"kind": OperatorKind.PARTITIONED, "key": "key", "partitions": 3}]
        windows = {**kind[random.integers(2)], "function": SUMS, "sources": sources}
        operators += [Operator("windows", **windows), replace(stateless("behind", 1.3), sources=("windows", inputs[0]))]
        punctuations = Punctuations(every_us=int(random.choice([5, 100])))
    unread = [each.name for each in operators if not any(each.name in (one.sources or ()) for one in operators)]
    outputs = {*unread, *random.choice([each.name for each in operators], 2)}
    chain = Chain(tuple(operators), punctuations, tuple(inputs), tuple(sorted(outputs)))
    parts = [stream(part, keys, seed=seed + number) for number, part in enumerate(np.full(len(inputs), rows))]
    for columns in parts:
        columns["ts"] = pa.array(np.sort(random.integers(0, 1 + rows // 2, len(columns["key"]))))
    return bind(chain, parts[0], more=parts[1:])


def random_settings(random: np.random.Generator) -> RunSettings:
    reorder, work_queue = SCHEMES[random.integers(len(SCHEMES))]
    chunk, ring = int(random.choice(CHUNKS)), int(random.choice(SIZES))
    if random.random() < 0.3:  # a ring of one chunk
        ring = 1 << (chunk - 1).bit_length() if chunk else ring
    queue, workers = int(random.choice(SIZES)), int(random.choice(WORKERS))
    heuristic = list(Heuristic)[random.integers(len(Heuristic))]
    how = list(Parallelism)[random.integers(len(Parallelism))]
    degrees, batch = tuple[int, ...](), 0
    if how is Parallelism.REPLICATED:
        work_queue, degrees = WorkQueue.HYBRID, (int(random.choice([1, 2, 3, workers])),)
    if how is Parallelism.MICRO_BATCH:
        heuristic, batch = Heuristic.CT, int(random.choice([1, queue, (queue + 1) // 2]))
    return RunSettings(
        workers,
        reorder,
        work_queue,
        heuristic,
        ring,
        queue,
        chunk or None,
        slice_us=float(random.choice([1.0, 10.0, 100.0])),
        ct_window_ms=float(random.choice([0.1, 20.0])),
        qst_limit=500.0,
        lp_minimum=int(random.choice([1, 1, queue, (queue + 1) // 2])),
        mark_every=int(random.choice([0, 0, 1, 7])),
        checked=True,
        parallelism=how,
        degrees=degrees,
        batch=batch,
    )


def assert_random_run_is_ordered(seed: int, *, graph: bool = False) -> None:
    random = np.random.default_rng(seed)
    rows, windows = int(random.choice([0, 1, 30, 400, 2000])), bool(random.random() < 0.1)
    keys = int(random.choice([1, 3, 50]))
    if graph:
        chain = random_graph(random, min(rows, 400), keys, seed)
    elif windows:
        chain = windowed(random, min(rows, 400) + 1)
    else:
        chain = bind(Chain(tuple(parametric(seed, random_operators(random)))), stream(rows, keys, seed=seed))
    settings = random_settings(random)
    serial = walked(chain, keep=20)
    assert run_serially(chain, keep=20) == run_serially(chain, keep=20, compiled=True) == serial
    done = run_by_workers(chain, settings, pace=1, keep=20)
    where = f"seed {seed}: {settings}"
    assert done.egress == serial.egress, where
    assert [[word % 2**64 for word in row] for row in done.kept.tolist()] == [list(row) for row in serial.kept], where
    assert tuple(tally.inputs for tally in done.operators) == serial.inputs, where
    assert tuple(tally.outputs for tally in done.operators) == serial.outputs, where
    assert not any(tally.overlaps or tally.disorders for tally in done.operators), where
    assert all(tally.fullest <= settings.ring_buffer or settings.reorder is Reorder.RETRY for tally in done.operators)


@pytest.mark.parametrize("first", range(0, 60, 15))
def test_random_chains_give_the_egress_of_the_serial_run(first: int, promise) -> None:
    for seed in range(first, first + 15):
        assert_random_run_is_ordered(seed)
    promise("ordered-output").checked(15)


@pytest.mark.parametrize("first", range(0, 60, 15))
def test_random_graphs_give_the_egress_of_a_walk_through_the_graph(first: int, promise) -> None:
    for seed in range(first, first + 15):
        assert_random_run_is_ordered(seed, graph=True)
    promise("ordered-output").checked(15)


@soak
@pytest.mark.parametrize("first", range(1000, 6000, 250))
def test_5000_random_graphs_give_the_egress_of_a_walk_through_the_graph(first: int, promise) -> None:
    for seed in range(first, first + 250):
        assert_random_run_is_ordered(seed, graph=True)
    promise("ordered-output").checked(250)


@soak
@pytest.mark.parametrize("first", range(1000, 6000, 250))
def test_5000_random_chains_give_the_egress_of_the_serial_run(first: int, promise) -> None:
    for seed in range(first, first + 250):
        assert_random_run_is_ordered(seed)
    promise("ordered-output").checked(250)
