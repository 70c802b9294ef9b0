"""Lossy counts on Spark against Python's Counter, DuckDB and the counters of one process, however the work is cut.

Blocks and purges are made small here, so that little traces have many of each, and row groups that straddle them.
"""

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.counting.lossy import LossyCounter, merge_lossy
from adapt.core.counting.sliding import SlidingLossyCounter, SlidingWindow
from adapt.core.counting.timeline import Panes
from adapt.core.errors import BadInput, UsageError
from adapt.core.keys.columns import ARROW_TYPES, key_type_of
from adapt.core.stream import COLUMN_TYPES, KeyType, Weight
from adapt.core.units.row_or_time_span import Length
from adapt.traces.counting import lossy
from adapt.traces.counting.count import Counting
from adapt.traces.counting.lossy import count_lossy, count_panes, count_streams
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.session import SparkOptions
from adapt.traces.store import trace as traces
from adapt.traces.store.manifest import Manifest, Provenance, write_manifest
from adapt.traces.store.trace import Trace, blocks_from, open_trace, part_entry

ROWS = 9_000
BLOCK = 1_000
FLUSH = 220
EPSILON = 0.01
GAP_US = 2_000_000

ODD = {
    KeyType.STRING: [None, "", "a", "ä", "a ", "A", "x" * 300, "\U0001f600", "a\u0308"],
    KeyType.INT64: [None, 0, 1, 256, -1, 2**63 - 1, -(2**63)],
    KeyType.BINARY: [None, b"", b"\x00", b"\xff\xfe", b"a"],
}
MAKE = {KeyType.STRING: lambda number: f"k{number}", KeyType.INT64: int, KeyType.BINARY: lambda number: b"%d" % number}
AMOUNTS = {Weight.COST: "cost_us", Weight.BYTES: "bytes"}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks are cut, and purges timed, where Spark is asked; its tasks only do as they are told."""
    monkeypatch.setattr(traces, "BLOCK_ROWS", BLOCK)
    monkeypatch.setattr(lossy, "BLOCK_ROWS", BLOCK)
    monkeypatch.setattr(lossy, "FLUSH_ROWS", FLUSH)


def rows(key_type: KeyType) -> pa.Table:
    """Zipf keys of which most change from one stretch to the next, among them odd ones; amounts round or are missing.

    Times stand still for five rows at a time and leap two seconds twice.
    """
    random = np.random.default_rng(11)
    ranks = np.minimum(random.zipf(1.3, ROWS), 300)
    odd, make = ODD[key_type], MAKE[key_type]
    keys = [
        odd[rank] if rank < len(odd) else make(1_000 + rank * 30 + row // 300 % 30) for row, rank in enumerate(ranks)
    ]
    at = np.arange(ROWS)
    times = at // 5 * 1_000 + (at >= 3_333) * GAP_US + (at >= 7_000) * GAP_US
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "key": pa.array(keys, ARROW_TYPES[key_type]),
            "stream": pa.array([[None, "ä", "a", ""][row % 7 % 4] if row < 5_500 else "late" for row in range(ROWS)]),
            "cost_us": pa.array([[None, 0.1, 0.2, 1e6, 0.0, 7.3][row % 6] for row in range(ROWS)]),
            "bytes": pa.array([[None, 2**40 + 1, 3, 0, 11][row % 5] for row in range(ROWS)], pa.int64()),
        }
    )


def written(folder: Path, table: pa.Table, part_rows: int = 2_600, group_rows: int = 370, **layout) -> Trace:
    """Those rows as a trace of such parts and row groups."""
    folder.mkdir()
    entries = []
    for number, begin in enumerate(range(0, len(table), part_rows)):
        part = folder / f"part-{number:05d}.parquet"
        pq.write_table(
            table.slice(begin, part_rows), part, row_group_size=group_rows, write_page_checksum=True, **layout
        )
        entries.append(part_entry(folder, part))
    times = table["ts"].cast(pa.int64()).to_pylist() or [0]
    kind = key_type_of(table.schema.field("key").type)
    summary = {
        "rows": len(table),
        "first_us": times[0],
        "last_us": times[-1],
        "key_type": kind.value,
        "columns": table.column_names,
        "profile": {"distinct_keys": len(set(table["key"].to_pylist())), "rank_counts": []},
    }
    write_manifest(folder, Manifest("trace", "0" * 64, Provenance("test"), entries, summary))
    return open_trace(folder)


@pytest.fixture(scope="module", params=COLUMN_TYPES)
def trace(request, tmp_path_factory) -> Trace:
    """A trace of each key type."""
    return written(tmp_path_factory.mktemp("lossy") / f"{request.param}.trace", rows(request.param))


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> Trace:
    """The trace whose keys are text."""
    return written(tmp_path_factory.mktemp("lossy") / "texts.trace", rows(KeyType.STRING))


def plain(table: pa.Table, weight: Weight) -> dict:
    """The weight of each key, added up row by row."""
    keys = table["key"].to_pylist()
    if weight is Weight.COUNT:
        return dict(Counter(keys))
    summed: dict = defaultdict(int if weight is Weight.BYTES else float)
    for key, amount in zip(keys, table[AMOUNTS[weight]].to_pylist(), strict=True):
        summed[key] += amount or 0
    return dict(summed)


def holds(
    counted, table: pa.Table, weight: Weight = Weight.COUNT, epsilon: float = EPSILON, most: float | None = None
) -> None:
    """All that lossy counts of these rows promise; whole weights to the unit, floats to their rounding."""
    exact = plain(table, weight)
    total = sum(exact.values())
    slack = total * len(table) * 2**-52 if weight is Weight.COST else 0
    listed = dict(
        zip(
            counted.keys.to_pylist(),
            zip(counted.count_low.tolist(), counted.count_high.tolist(), strict=True),
            strict=True,
        )
    )
    assert len(listed) == len(counted.keys) <= (most or 2 / epsilon)
    assert (counted.rows, counted.weight, counted.epsilon) == (len(table), weight, epsilon)
    assert abs(counted.total - total) <= slack
    assert counted.distinct == len(exact)  # there are fewer keys than the sketch has places
    assert counted.complete_above <= epsilon * total + slack
    assert counted.count_low.dtype == counted.count_high.dtype == (np.float64 if weight is Weight.COST else np.int64)
    assert set(listed) <= set(exact)
    for key, true in exact.items():
        low, high = listed.get(key, (0, counted.complete_above))
        assert low - slack <= true <= high + slack, (key, low, true, high)
        assert true - low <= epsilon * total + slack, (key, low, true)


def facts(counted) -> tuple:
    """All of some counts, to be compared to the last bit."""
    return (
        counted.keys.to_pylist(),
        counted.count_low.tolist(),
        counted.count_high.tolist(),
        (counted.total, counted.rows, counted.weight, counted.epsilon, counted.complete_above, counted.distinct),
        counted.memory,
    )


def timeline_facts(timeline) -> list:
    return [
        (
            (pane.number, pane.first_us, pane.last_us, pane.summary.rows, pane.summary.total, pane.summary.missed),
            pane.summary.keys.to_pylist(),
            pane.summary.counts.tolist(),
            pane.summary.errors.tolist(),
            pane.summary.distinct.smallest.tolist(),
        )
        for pane in timeline.panes
    ]


def spread(items: int, tasks: int) -> list[list[int]]:
    """Items dealt out to tasks, so that neighbours are apart."""
    return [list(range(task, items, tasks)) for task in range(tasks)]


def in_tasks(tasks, count, *given, **more):
    """Counts of these Spark tasks."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("adapt.traces.spark.runner.shared_out", lambda *_: tasks)
        return count(*given, **more, spark_options=SparkOptions(runner=RunnerName.SPARK))


@pytest.mark.parametrize("weight", list(Weight))
def test_every_key_is_within_its_interval(trace, weight):
    table = rows(trace.key_type)
    assert len(trace.blocks()) == ROWS // BLOCK
    assert any(piece.skip for block in trace.blocks() for piece in block.pieces)
    counted = count_lossy(trace, EPSILON, weight=weight)
    assert counted.key_type is trace.key_type
    assert 0 < len(counted.keys) < len(plain(table, weight))
    holds(counted, table, weight)


@pytest.mark.parametrize("weight", list(Weight))
def test_counts_are_those_of_one_process_block_by_block(texts, weight):
    table = rows(KeyType.STRING)
    summaries = []
    for begin in range(0, ROWS, BLOCK):
        flush = BLOCK if weight is Weight.COST else FLUSH
        counter = LossyCounter(EPSILON / 2, pa.string(), weight, flush_rows=flush, purge_above=int(2 / EPSILON))
        block = table.slice(begin, BLOCK).combine_chunks()
        amounts = None if weight is Weight.COUNT else block[AMOUNTS[weight]].fill_null(0).to_numpy()
        counter.update(block["key"], amounts)
        summaries.append(counter.summary())
    serial = merge_lossy(summaries)
    high = dict(zip(serial.keys.to_pylist(), (serial.counts + serial.errors).tolist(), strict=True))
    low = dict(zip(serial.keys.to_pylist(), serial.counts.tolist(), strict=True))
    counted = count_lossy(texts, EPSILON, weight=weight)
    listed = counted.keys.to_pylist()
    assert len(listed) == int(2 / EPSILON) < len(serial)
    assert counted.memory == serial.memory
    rounding = {"rel": ROWS * 2**-52}
    assert counted.count_low.tolist() == pytest.approx([low[key] for key in listed], **rounding)
    assert counted.count_high.tolist() == pytest.approx([high[key] for key in listed], **rounding)
    left_out = [high[key] for key in set(high) - set(listed)]
    assert counted.complete_above == pytest.approx(max([serial.missed, *left_out]), **rounding)
    assert max(left_out, default=0) <= counted.count_high.min() * (1 + ROWS * 2**-52)


@pytest.mark.parametrize("weight", list(Weight))
def test_any_tasks_give_the_same_counts_to_the_last_bit(spark, texts, weight):
    blocks = len(texts.blocks())
    one, two, eight = (
        facts(in_tasks(spread(blocks, tasks), count_lossy, texts, EPSILON, weight=weight)) for tasks in (1, 2, 8)
    )
    assert one == two == eight


@pytest.mark.parametrize(
    ("weight", "panes"),
    [
        (Weight.COST, Panes(Length(1_700, in_rows=True))),
        (Weight.COUNT, Panes(Length(GAP_US // 2))),
    ],
    ids=str,
)
def test_any_tasks_give_the_same_panes_to_the_last_bit(spark, texts, weight, panes):
    blocks = len(texts.blocks())
    one, two, eight = (
        timeline_facts(in_tasks(spread(blocks, tasks), count_panes, texts, panes, EPSILON, weight=weight))
        for tasks in (1, 2, 8)
    )
    assert one == two == eight


HALF_A_DICTIONARY = {"dictionary_pagesize_limit": 400, "data_page_size": 500}
"""The dictionary of a row group is given up after some keys, and the rest written plain."""


def test_the_cut_into_files_does_not_show(texts, tmp_path):
    table = rows(KeyType.STRING)
    whole = written(tmp_path / "whole.trace", table, ROWS, ROWS)
    parts = written(tmp_path / "parts.trace", table, 777, 101, use_dictionary=False)
    half = written(tmp_path / "half.trace", table, 4_000, 1_500, **HALF_A_DICTIONARY)
    by_count, by_cost = (
        [facts(count_lossy(held, EPSILON, weight=weight)) for held in traces_held]
        for weight, traces_held in ((Weight.COUNT, (texts, whole, parts, half)), (Weight.COST, (texts, parts)))
    )
    assert all(told == by_count[0] for told in by_count)
    assert by_cost[0] == by_cost[1]


def test_a_key_that_is_left_out_for_its_low_count_may_not_be_heavier_than_is_said(tmp_path, monkeypatch):
    """Ten keys are listed of twelve. The twelfth by count, y, was light in the large blocks and is 2,000 all the same.

    Stream s has 10,000 rows in the first block, 5,000 in the second and 1,000 in the third.
    """
    monkeypatch.setattr(traces, "BLOCK_ROWS", 10_000)
    monkeypatch.setattr(lossy, "FLUSH_ROWS", 10_000)
    blocks = [{**{f"a{at}": 1_001 for at in range(9)}, "y": 991}, {"x1": 510, "x2": 510, "y": 500}, {"y": 509}]
    sizes = [10_000, 5_000, 1_000]
    keys, streams = [], []
    for number, (block, size) in enumerate(zip(blocks, sizes, strict=True)):
        heavy = [key for key, count in block.items() for _ in range(count)]
        light = [f"light {number} {at}" for at in range(size - len(heavy))]
        other = 10_000 - size
        keys += heavy + light + ["other"] * other
        streams += ["s"] * size + ["t"] * other
    table = pa.table({"ts": pa.array(range(30_000), pa.timestamp("us", "UTC")), "key": keys, "stream": streams})
    counted = count_streams(written(tmp_path / "t", table), 0.2)["s"]
    listed = counted.keys.to_pylist()
    assert len(listed) == 10
    low, high = counted.intervals(pa.array(["y"]))
    assert low[0] <= 2_000 <= high[0]
    assert counted.complete_above <= 0.2 * 16_000


@pytest.mark.parametrize(
    ("panes", "weight"),
    [
        (Panes(Length(2_500, in_rows=True), 3), Weight.COUNT),
        (Panes(Length(GAP_US // 3), 7), Weight.COUNT),
        (Panes(Length(GAP_US // 4)), Weight.BYTES),
    ],
    ids=str,
)
def test_every_pane_has_its_rows_and_keeps_its_bounds(texts, panes, weight):
    table, epsilon = rows(KeyType.STRING), 0.02
    times = table["ts"].cast(pa.int64()).to_numpy()
    places = np.arange(ROWS) if panes.length.in_rows else times - times[0]
    begins = [number * panes.length.size // panes.per_length for number in range(1_000)]
    numbers = np.searchsorted(begins, places, side="right") - 1
    timeline = count_panes(texts, panes, epsilon, weight=weight)
    assert (timeline.epsilon, timeline.weight, timeline.origin_us) == (epsilon, weight, int(times[0]))
    assert [pane.number for pane in timeline.panes] == sorted(set(numbers.tolist()))
    for pane in timeline.panes:
        within = times[numbers == pane.number]
        assert (pane.first_us, pane.last_us) == (within[0], within[-1])
        held = table.filter(pa.array(numbers == pane.number))
        holds(pane.summary.frequencies(epsilon, weight), held, weight, epsilon)


def test_panes_without_rows_are_passed_over_and_all_together_are_the_trace(texts):
    timeline = count_panes(texts, Panes(Length(GAP_US)), EPSILON, weight=Weight.COUNT)
    assert [pane.number for pane in timeline.panes] == [0, 1, 2]
    thirds = count_panes(texts, Panes(Length(GAP_US), 3), EPSILON, weight=Weight.COUNT)
    assert len(thirds.panes) < len(thirds)
    holds(thirds.whole(), rows(KeyType.STRING), most=len(thirds.panes) * 2 / EPSILON)


@pytest.mark.parametrize("weight", [Weight.COUNT, Weight.COST])
def test_every_stream_keeps_its_bounds(texts, weight):
    table = rows(KeyType.STRING)
    found = count_streams(texts, 0.02, weight=weight)
    names = table["stream"].to_pylist()
    assert set(found) == set(names)
    totals = [counted.total for counted in found.values()]
    assert totals == sorted(totals, reverse=True)
    for name, counted in found.items():
        holds(counted, table.filter(pa.array([held == name for held in names])), weight, 0.02)


# A window that slides.

WINDOWS = {
    "rows within a block": Length(700, in_rows=True),
    "rows over blocks": Length(2_345, in_rows=True),
    "more rows than there are": Length(ROWS + 1, in_rows=True),
    "time since the last gap": Length(300_000),
    "time over a gap": Length(GAP_US + 500_000),
    "more time than there is": Length(5 * GAP_US),
}


@pytest.mark.parametrize("counters", [2, 3, 5])
@pytest.mark.parametrize("length", WINDOWS.values(), ids=list(WINDOWS))
def test_what_is_counted_begins_where_the_counter_in_use_began(texts, length, counters):
    """No Spark: the rows that are left are those that a sliding counter holds after the last row."""
    window = SlidingWindow(length, counters)
    held = slid(rows(KeyType.STRING), window).summary().rows
    left = blocks_from(texts.blocks(), lossy._window_start(texts, window))
    assert sum(block.rows for block in left) == held


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=60),
    st.integers(1, 40),
    st.integers(2, 6),
    st.integers(1, 25),
    st.booleans(),
)
@settings(max_examples=60)
def test_the_window_begins_at_the_right_row_of_any_trace(tmp_path_factory, gaps, size, counters, block, in_rows):
    """Equal times, and times just at the beginnings of panes, among them."""
    table = pa.table({"ts": pa.array(np.cumsum(gaps), pa.timestamp("us", "UTC")), "key": ["k"] * len(gaps)})
    window = SlidingWindow(Length(max(size, counters - 1), in_rows), counters)
    trace = written(tmp_path_factory.mktemp("any") / "t", table, 17, 7)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(traces, "BLOCK_ROWS", block)
        start = lossy._window_start(trace, window)
    times = table["ts"].cast(pa.int64()).to_numpy()
    last = len(gaps) - 1 if in_rows else int(times[-1] - times[0])
    panes = window.panes
    number = next(at for at in range(last, -1, -1) if panes.start(at) <= last)  # the last pane that has begun
    begin = panes.start(max(number - (counters - 1), 0))
    assert start == (begin if in_rows else int(np.searchsorted(times, times[0] + begin)))


def slid(table: pa.Table, window: SlidingWindow, weight: Weight = Weight.COUNT) -> SlidingLossyCounter:
    """A counter of one process that has seen all rows."""
    counter = SlidingLossyCounter(EPSILON, table.schema.field("key").type, window, weight)
    for batch in table.to_batches(max_chunksize=613):
        amounts = None if weight is Weight.COUNT else batch[AMOUNTS[weight]].fill_null(0).to_numpy()
        counter.update(batch["key"], amounts, batch["ts"].cast(pa.int64()).to_numpy())
    return counter


@pytest.mark.parametrize(
    ("name", "counters", "weight"),
    [
        ("rows over blocks", 2, Weight.COST),
        ("more rows than there are", 5, Weight.BYTES),
        ("time since the last gap", 3, Weight.COUNT),
        ("time over a gap", 5, Weight.BYTES),
        ("time over a gap", 2, Weight.COUNT),
    ],
)
def test_a_window_is_counted_as_the_sliding_counter_and_the_panes_count_it(texts, name, counters, weight):
    table, window = rows(KeyType.STRING), SlidingWindow(WINDOWS[name], counters)
    held = slid(table, window, weight).summary()
    counted = count_lossy(texts, EPSILON, weight=weight, window=window)
    within = table.slice(ROWS - held.rows)
    assert counted.total == pytest.approx(held.total)
    holds(counted, within, weight)
    assert list(count_panes(texts, window.panes, EPSILON, weight=weight).windows(counters))[-1][1].rows == held.rows


# What is refused.


@pytest.mark.parametrize("epsilon", [0.0, 1.0, -0.1, float("nan")])
def test_an_error_outside_0_and_1_is_refused_everywhere(texts, epsilon):
    for count in (
        lambda: count_lossy(texts, epsilon),
        lambda: count_panes(texts, Panes(Length(10, in_rows=True)), epsilon),
        lambda: count_streams(texts, epsilon),
        lambda: Counting(epsilon=epsilon),
    ):
        with pytest.raises(UsageError, match=r"epsilon.* must be between 0 and 1"):
            count()


@pytest.mark.parametrize("a_block", [6, 3], ids=["in one block", "in all blocks"])
def test_more_streams_than_there_may_be_are_refused(tmp_path, monkeypatch, a_block):
    monkeypatch.setattr(lossy, "MOST_GROUPS", 5)
    table = rows(KeyType.STRING).slice(0, 2 * BLOCK)
    streams = pa.array([f"s{row * a_block // BLOCK}" for row in range(len(table))])
    trace = written(tmp_path / "t", table.set_column(2, "stream", streams))
    with pytest.raises(BadInput, match="more than 5 streams"):
        count_streams(trace, EPSILON)


def test_a_trace_without_rows_has_no_keys(tmp_path):
    empty = written(tmp_path / "empty.trace", rows(KeyType.STRING).slice(0, 0))
    assert empty.blocks() == []
    for count in (
        lambda: count_lossy(empty, EPSILON),
        lambda: count_panes(empty, Panes(Length(10, in_rows=True)), EPSILON),
        lambda: count_streams(empty, EPSILON),
    ):
        with pytest.raises(BadInput, match=r"empty\.trace has no rows to count"):
            count()


@pytest.mark.parametrize("keys", [["a", "a"], ["a", "b"]], ids=["of one key", "of two keys"])
def test_bytes_that_are_too_much_together_are_refused(tmp_path, keys):
    """2^62 in each of two blocks."""
    table = rows(KeyType.STRING).slice(0, 2 * BLOCK)
    heavy = pa.array([2**62 if row in (5, BLOCK + 5) else 0 for row in range(2 * BLOCK)])
    named = pa.array([keys[row // BLOCK] for row in range(2 * BLOCK)])
    much = table.set_column(4, "bytes", heavy).set_column(1, "key", named)
    with pytest.raises(BadInput, match="overflows an int64"):
        count_lossy(written(tmp_path / "t", much), EPSILON, weight=Weight.BYTES)


@pytest.mark.parametrize("count", [1, FLUSH - 1, FLUSH, FLUSH + 1])
def test_of_no_more_rows_than_lie_between_two_purges_every_key_is_listed(tmp_path, count):
    table = rows(KeyType.STRING).slice(0, count)
    counted = count_lossy(written(tmp_path / "t", table), EPSILON, weight=Weight.COUNT)
    if count <= FLUSH:
        assert dict(zip(counted.keys.to_pylist(), counted.count_low.tolist(), strict=True)) == plain(
            table, Weight.COUNT
        )
        assert (counted.complete_above, counted.count_low.tolist()) == (0, counted.count_high.tolist())
    else:
        holds(counted, table)


def test_rows_that_all_weigh_nothing_are_counted(tmp_path):
    table = rows(KeyType.STRING).slice(0, 2 * BLOCK)
    nothing = table.set_column(3, "cost_us", pa.array([0.0] * len(table)))
    counted = count_lossy(written(tmp_path / "t", nothing), EPSILON)
    assert (counted.total, counted.rows, len(counted.keys), counted.complete_above) == (0, len(table), 0, 0)
    assert counted.distinct == len(set(table["key"].to_pylist()))
