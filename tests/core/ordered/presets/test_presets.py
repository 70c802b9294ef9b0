"""The chains by name: on real threads they give what the serial run gives, and that is the answer to their question."""

import itertools
import os
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.ordered.chain.bound import BoundChain, bind, columns_of
from adapt.core.ordered.chain.names import Heuristic, Reorder, WorkQueue
from adapt.core.ordered.engine.reference import SerialRun, run_serially
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.ordered.engine.threads import run_by_workers
from adapt.core.ordered.model.model import run_model
from adapt.core.ordered.presets.presets import PRESETS, Answer
from adapt.core.synthetic.calls import AREAS
from adapt.traces.generators.calls import CallStream
from adapt.traces.generators.clicks import ClickStream
from adapt.traces.generators.sales import SaleStream
from tests.core.ordered.presets import oracles

soak = pytest.mark.skipif(not os.environ.get("ADAPT_SOAK"), reason="long; set ADAPT_SOAK=1")

ALL = 1 << 22
ROWS = 200_000
STREAMS = {
    "calls": CallStream(ROWS, seed=5, domain=5000),
    "clicks": ClickStream(ROWS, seed=5),
    "sales": SaleStream(ROWS, seed=5, rate_per_s=0.1),
}


def columns(rows: int) -> dict[str, pa.Array]:
    """Columns of all streams, in which phones, users, tickets and items are few, so that windows hold much."""
    random = np.random.default_rng(1)
    ts = 1_700_000_000_000_000 + np.cumsum(random.exponential(2e7, rows).astype(np.int64))
    pages = np.array(["view", "cart", "checkout", "search"])[random.choice(4, rows, p=[0.6, 0.1, 0.1, 0.2])]
    return {
        "ts": pa.array(ts).cast(pa.timestamp("us", tz="UTC")),
        "key": pa.array(random.zipf(1.3, rows) % 500),
        "item": pa.array(random.zipf(1.5, rows) % 300),
        "page": pa.array(pages),
        "category": pa.array(random.integers(0, 10, rows)),
        "cents": pa.array(random.integers(1, 5000, rows)),
        "qty": pa.array(random.integers(1, 5, rows)),
        "area": pa.array(random.integers(0, AREAS, rows)),
        "caller": pa.array(random.integers(1, 100, rows)),
        "callee": pa.array(random.integers(1, 100, rows)),
        **{f"{who}_{way}": pa.array(random.integers(0, 10**6, rows)) for who in ("caller", "callee") for way in "xy"},
    }


@cache
def chain_of(name: str, rows: int) -> tuple[BoundChain, SerialRun]:
    chain = bind(PRESETS[name].chain, columns(rows))
    return chain, run_serially(chain, keep=ALL)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("reorder", [Reorder.CLAIM, Reorder.LOCK])
def test_the_egress_is_that_of_the_serial_run(name: str, reorder: Reorder) -> None:
    chain, serial = chain_of(name, 5000)
    heuristics = itertools.cycle(Heuristic)
    for workers, work_queue in itertools.product((1, 2, 4), (WorkQueue.HYBRID, WorkQueue.PARTITIONED)):
        for size, chunk in ((16, 1), (1024, 8)):
            settings = RunSettings(
                workers, reorder, work_queue, next(heuristics), size, size, chunk, mark_every=7, checked=True
            )
            done = run_by_workers(chain, settings, pace=1, keep=ALL)
            assert done.egress == serial.egress, settings
            assert tuple(tally.inputs for tally in done.operators) == serial.inputs, settings
            assert not any(tally.overlaps or tally.disorders for tally in done.operators), settings
            assert PRESETS[name].answer(done.kept.tolist()) == PRESETS[name].answer(serial.kept)


@cache
def rows_of(stream: str) -> list[dict[str, Any]]:
    return list(STREAMS[stream].block(0).to_pylist())


def answer_of(name: str) -> Answer:
    """By two threads, with short rings, so that units wait for each other."""
    preset = PRESETS[name]
    rows = STREAMS[preset.stream].block(0)
    chain = bind(preset.chain, {column: rows.column(column) for column in columns_of(preset.chain)})
    done = run_by_workers(chain, RunSettings(2, ring_buffer=256, queue_capacity=256, checked=True), pace=1, keep=ALL)
    assert not any(tally.overlaps or tally.disorders for tally in done.operators)
    return preset.answer(done.kept.tolist())


def test_fraud_counts_the_phones_that_moved_too_fast() -> None:
    found = list(answer_of("fraud"))
    assert found == oracles.impossible_moves(rows_of("calls"))
    assert sum(moves for _, moves, _ in found) > 50


def test_q1_names_the_pairs_on_most_tickets_by_hour() -> None:
    assert list(answer_of("retail-q1")) == oracles.pairs_by_hour(rows_of("sales"))


def test_q2_names_the_pairs_of_most_sessions() -> None:
    assert list(answer_of("retail-q2")) == oracles.pairs_of_sessions(rows_of("clicks"))


def test_q3_names_the_items_viewed_before_a_checkout() -> None:
    assert list(answer_of("retail-q3")) == oracles.last_views(rows_of("clicks"))


def test_q4_counts_the_pages_of_sessions_that_leave_a_cart() -> None:
    ((pages, sessions),) = answer_of("retail-q4")
    assert (sessions, Fraction(pages, sessions)) == oracles.abandoned_carts(rows_of("clicks"))


def test_q15_names_the_categories_that_were_drawn_to_fall() -> None:
    slopes = {category: rise / spread for category, rise, spread in answer_of("retail-q15")}
    expected = {category: slope for category, slope in oracles.slopes(rows_of("sales")).items() if slope <= 0}
    assert slopes == pytest.approx(expected)
    assert set(slopes) == set(np.flatnonzero(STREAMS["sales"].shop.trends < 0).tolist())  # type: ignore[union-attr]


GAPS_MINUTES = st.sampled_from([0, 1, 30, 60, 61, 900, 15_000])
EVENTS = st.lists(st.tuples(GAPS_MINUTES, *[st.integers(0, most) for most in (5, 40, 3, 100)]), min_size=1, max_size=60)


@given(EVENTS)
def test_short_streams_with_pauses_are_answered_too(events: list[tuple[int, ...]]) -> None:
    ts, rows = datetime(2024, 1, 1, tzinfo=UTC), list[dict[str, Any]]()
    for gap, key, item, page, cents in events:
        ts += timedelta(minutes=gap)
        more = {"page": ["view", "cart", "checkout", "search"][page], "category": key, "cents": cents, "qty": item}
        rows.append({"ts": ts, "key": key, "item": item, **more})
    table = pa.Table.from_pylist(rows)
    answers = {}
    for name in ("retail-q1", "retail-q2", "retail-q3", "retail-q4", "retail-q15"):
        chain = bind(PRESETS[name].chain, {each: table[each] for each in table.column_names})
        answers[name] = list(PRESETS[name].answer(run_serially(chain, keep=ALL).kept))
    assert answers["retail-q1"] == oracles.pairs_by_hour(rows)
    assert answers["retail-q2"] == oracles.pairs_of_sessions(rows)
    assert answers["retail-q3"] == oracles.last_views(rows)
    found = oracles.abandoned_carts(rows)
    assert [(sessions, Fraction(pages, sessions)) for pages, sessions in answers["retail-q4"] if sessions] == [
        *([found] if found[0] else [])
    ]
    falling = {category: slope for category, slope in oracles.slopes(rows).items() if slope <= 1e-9}
    assert {category: rise / spread for category, rise, spread in answers["retail-q15"]} == pytest.approx(falling)


@pytest.mark.parametrize("name", PRESETS)
def test_a_chain_reads_the_columns_that_it_says(name: str) -> None:
    named = columns_of(PRESETS[name].chain)
    chain = bind(PRESETS[name].chain, {column: words for column, words in columns(200).items() if column in named})
    assert run_serially(chain) == run_serially(bind(PRESETS[name].chain, columns(200)))


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("work_queue", [WorkQueue.HYBRID, WorkQueue.PARTITIONED])
def test_retry_runs_also_where_windows_end_with_any_number_of_outputs(name: str, work_queue: WorkQueue) -> None:
    chain, serial = chain_of(name, 5000)
    settings = RunSettings(3, Reorder.RETRY, work_queue, ring_buffer=8, queue_capacity=16)
    assert run_by_workers(chain, settings, pace=1).egress == serial.egress


@pytest.mark.parametrize("name", ["retail-q1", "retail-q15"])
def test_the_model_passes_punctuations_on_and_is_the_same_for_all_settings(name: str) -> None:
    chain = chain_of(name, 5000)[0]
    runs = [
        run_model(
            chain,
            RunSettings(workers, reorder, work_queue, ring_buffer=size, queue_capacity=size, mark_every=9),
            Contention(0.3, 0.1, 0.05, 0.01, 0.15),
            np.random.default_rng(1),
            [1.0] * len(chain.operators),
            [1.5] + [0.5] * (len(chain.operators) - 1),
        ).run
        for workers, reorder, work_queue, size in (
            (1, Reorder.CLAIM, WorkQueue.HYBRID, 16),
            (16, Reorder.CLAIM, WorkQueue.PARTITIONED, 1024),
            (5, Reorder.LOCK, WorkQueue.HYBRID, 64),
        )
    ]
    assert len({run.egress for run in runs}) == 1
    assert [tally.inputs for tally in runs[0].operators][:1] == [5000]
    assert all((run.marks.left > 0).all() for run in runs)
