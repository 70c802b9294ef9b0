"""The retail chains: on real threads they give what the serial run gives."""

import itertools
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import BadInput, UsageError
from adapt.core.ordered.bound import BoundChain, bind, columns_of
from adapt.core.ordered.names import Reorder, Worklist
from adapt.core.ordered.retail import PRESETS, preset_chain
from adapt.core.ordered.serial import SerialRun, run_serially
from adapt.core.ordered.settings import RunSettings
from adapt.core.ordered.threads import run_by_workers

ALL = 1 << 22


def columns(rows: int) -> dict[str, pa.Array]:
    """Columns of both streams, in which users, tickets and items are few, so that windows hold much."""
    random = np.random.default_rng(1)
    ts = 1_700_000_000_000_000 + np.cumsum(random.exponential(2e7, rows).astype(np.int64))
    return {
        "ts": pa.array(ts).cast(pa.timestamp("us", tz="UTC")),
        "key": pa.array(random.zipf(1.3, rows) % 500),
        "item": pa.array(random.zipf(1.5, rows) % 300),
        "page": pa.array(
            np.array(["view", "cart", "checkout", "search"])[random.choice(4, rows, p=[0.6, 0.1, 0.1, 0.2])]
        ),
        "category": pa.array(random.integers(0, 10, rows)),
        "cents": pa.array(random.integers(1, 5000, rows)),
        "qty": pa.array(random.integers(1, 5, rows)),
    }


@cache
def chain_of(name: str, rows: int) -> tuple[BoundChain, SerialRun]:
    chain = bind(preset_chain(name), columns(rows))
    return chain, run_serially(chain, keep=ALL)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("reorder", [Reorder.CLAIM, Reorder.LOCK])
def test_the_egress_is_that_of_the_serial_run(name: str, reorder: Reorder) -> None:
    chain, serial = chain_of(name, 5000)
    for workers, worklist in itertools.product((1, 2, 4), (Worklist.HYBRID, Worklist.PARTITIONED)):
        for size, batch in ((16, 1), (1024, 8)):
            settings = RunSettings(
                workers, reorder, worklist, ring=size, queue=size, batch=batch, mark_every=7, checked=True
            )
            done = run_by_workers(chain, settings, pace=1, keep=ALL)
            assert done.egress == serial.egress, settings
            assert tuple(tally.inputs for tally in done.operators) == serial.inputs, settings
            assert not any(tally.overlaps or tally.disorders for tally in done.operators), settings
            assert PRESETS[name].answer(done.kept.tolist()) == PRESETS[name].answer(serial.kept)


@pytest.mark.parametrize("name", PRESETS)
def test_a_chain_reads_the_columns_that_it_says(name: str) -> None:
    named = columns_of(preset_chain(name))
    chain = bind(preset_chain(name), {column: words for column, words in columns(200).items() if column in named})
    assert run_serially(chain) == run_serially(bind(preset_chain(name), columns(200)))


def test_retry_is_refused_where_windows_end_with_any_number_of_outputs() -> None:
    with pytest.raises(UsageError, match="operator 'baskets' runs basket-pairs, which gives any number of outputs"):
        run_by_workers(chain_of("retail-q1", 5000)[0], RunSettings(reorder=Reorder.RETRY), pace=1)
    for name in ("retail-q3", "retail-q15"):
        chain, serial = chain_of(name, 5000)
        settings = RunSettings(2, Reorder.RETRY, queue=16)
        assert run_by_workers(chain, settings, pace=1).egress == serial.egress


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(BadInput, match="there is no chain 'retail-q5'; did you mean"):
        preset_chain("retail-q5")
