"""Random chains on threads: whatever the settings, the egress is that of the serial run, in value and in order."""

import os

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.ordered.chain.bound import BoundChain, bind
from adapt.core.ordered.chain.chain import Chain, Operator, Punctuations
from adapt.core.ordered.chain.names import FunctionName, Heuristic, OperatorKind, Reorder, WorkQueue
from adapt.core.ordered.chain.roles import COUNTED
from adapt.core.ordered.engine.serial import run_serially
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.engine.threads import run_by_workers
from tests.core.ordered.chains import counting, partitioned, stateful, stateless, stream

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


def random_operators(random: np.random.Generator) -> list[Operator]:
    """One to five operators, with at most 16 outputs for each row."""
    operators, through = list[Operator](), 1.0
    for number in range(random.integers(1, 6)):
        name, selectivity = f"o{number}", float(random.choice([s for s in SELECTIVITIES if s * through <= 16]))
        partitions = int(random.choice(PARTITIONS))
        kinds = [
            stateless(name, selectivity),
            partitioned(name, partitions, selectivity),
            counting(name, partitions),
            stateful(name, selectivity),
        ]
        operators.append(kinds[random.integers(len(kinds))])
        through *= 1.0 if operators[-1].function is FunctionName.COUNT else selectivity
    return operators


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


def random_settings(random: np.random.Generator) -> RunSettings:
    reorder, work_queue = SCHEMES[random.integers(len(SCHEMES))]
    chunk, ring = int(random.choice(CHUNKS)), int(random.choice(SIZES))
    if random.random() < 0.3:  # a ring of one chunk
        ring = 1 << (chunk - 1).bit_length() if chunk else ring
    queue = int(random.choice(SIZES))
    return RunSettings(
        int(random.choice(WORKERS)),
        reorder,
        work_queue,
        list(Heuristic)[random.integers(len(Heuristic))],
        ring,
        queue,
        chunk,
        slice_us=float(random.choice([0.0, 1.0, 100.0])),  # 0 is tuned
        ct_window_ms=float(random.choice([0.0, 0.1, 20.0])),
        qst_limit=float(random.choice([0.0, 500.0])),
        lp_minimum=int(random.choice([1, 1, queue, (queue + 1) // 2])),
        mark_every=int(random.choice([0, 0, 1, 7])),
        checked=True,
    )


def assert_random_run_is_ordered(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, windows = int(random.choice([0, 1, 30, 400, 2000])), bool(random.random() < 0.1)
    if windows:
        chain = windowed(random, min(rows, 400) + 1)
    else:
        columns = stream(rows, keys=int(random.choice([1, 3, 50])), seed=seed)
        chain = bind(Chain(tuple(random_operators(random))), columns)
    settings = random_settings(random)
    serial = run_serially(chain, keep=20)
    done = run_by_workers(chain, settings, pace=1, keep=20)
    where = f"seed {seed}: {settings}"
    assert done.egress == serial.egress, where
    assert [[word % 2**64 for word in row] for row in done.kept.tolist()] == [list(row) for row in serial.kept], where
    assert tuple(tally.inputs for tally in done.operators) == serial.inputs, where
    assert not any(tally.overlaps or tally.disorders for tally in done.operators), where
    assert all(tally.fullest <= settings.ring_buffer or settings.reorder is Reorder.RETRY for tally in done.operators)


@pytest.mark.parametrize("first", range(0, 60, 15))
def test_random_chains_give_the_egress_of_the_serial_run(first: int) -> None:
    for seed in range(first, first + 15):
        assert_random_run_is_ordered(seed)


@soak
@pytest.mark.parametrize("first", range(1000, 6000, 250))
def test_5000_random_chains_give_the_egress_of_the_serial_run(first: int) -> None:
    for seed in range(first, first + 250):
        assert_random_run_is_ordered(seed)
