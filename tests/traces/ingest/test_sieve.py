"""Plain values against Python's reading, and sorted runs against one sort."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.traces.ingest import runs as module
from adapt.traces.ingest.runs import MIXED, RunWriter, _merged, cut, rising, runs_of
from adapt.traces.ingest.sieve import (
    MISSING,
    ODD,
    TIME,
    VALUE,
    layout_of,
    plain_decimals,
    plain_epochs,
    plain_times,
    plain_wholes,
)
from adapt.traces.ingest.times import EPOCH_UNITS, PATTERNS, TimeFormat

START = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


@given(st.lists(st.datetimes(timezones=st.just(UTC)), min_size=1), st.sampled_from(["T", " "]))
def test_iso_times_are_read_to_the_microsecond(moments, between):
    layout = layout_of(TimeFormat("iso"), "UTC")
    texts = [moment.isoformat(between) for moment in moments]
    times, plain = plain_times(pa.array(texts), layout, zoned=True)
    assert plain.all()
    assert times.tolist() == [(moment - START) // MICROSECOND for moment in moments]
    bare = [moment.replace(tzinfo=None).isoformat(between) for moment in moments]
    assert plain_times(pa.array(bare), layout, zoned=False)[0].tolist() == times.tolist()
    assert not plain_times(pa.array(bare), layout, zoned=True)[1].any()


OTHERWISE = (
    *("", "2015", "2015-5-7", "2015-02-29", "0000-01-01", None),
    *("2015-05-17T24:00:00", "2016-12-31T23:59:60", "2015-05-17T10:00:00."),
    *("2015-05-17T10:00:00+18:00", "2015-05-17T10:05Z", "2015-05-17T10:00:00z", "2015-05-17T10:00:00 EST"),
)


@pytest.mark.parametrize("text", OTHERWISE)
def test_a_time_written_otherwise_is_left(text):
    layout = layout_of(TimeFormat("iso"), "UTC")
    assert not plain_times(pa.array([text], pa.string()), layout, zoned=False)[1][0]


def test_patterns_of_dates_have_a_layout():
    assert [each for each in PATTERNS if layout_of(TimeFormat(each), "UTC") is None] == []
    assert layout_of(TimeFormat("yyyyMMdd"), "Europe/Berlin") is None
    assert layout_of(TimeFormat("dd/MMM/yyyy:HH:mm:ss Z"), "Europe/Berlin") is not None
    for pattern in ("dd.MM", "yyyy-MM-dd yyyy", "MMM-MM-dd-yyyy", "yyyy{MM}dd", "yyyy-MM-dd hh:mm", "yyyy-MM-dd HH a"):
        assert layout_of(TimeFormat(pattern), "UTC") is None


@given(st.lists(st.floats(0, allow_infinity=False), min_size=1))
def test_decimals_are_correctly_rounded(numbers):
    texts = [repr(number) for number in numbers] + [f"{number:.3f}" for number in numbers]
    values, kinds = plain_decimals(pa.array(texts))
    assert (kinds == VALUE).all()
    assert values.tolist() == [float(text) for text in texts]


def test_other_numbers_are_left():
    texts = [
        "",
        None,
        "-1",
        "+1",
        " 1",
        "1 ",
        "1.",
        ".5",
        "1e",
        "1e5.0",
        "1.2.3",
        "nan",
        "inf",
        "0x1",
        "1d",
        "1e999",
        "x",
    ]
    kinds = plain_decimals(pa.array(texts))[1].tolist()
    assert kinds == [MISSING, MISSING, *[ODD] * (len(texts) - 2)]
    texts = ["", None, "7", "7.9", "9" * 18, "9" * 19, "-1", "7.", ".7", "1e3", "x"]
    values, kinds = plain_wholes(pa.array(texts))
    assert kinds.tolist() == [MISSING, MISSING, VALUE, VALUE, VALUE, *[ODD] * 6]
    assert values[2:5].tolist() == [7, 7, 10**18 - 1]


def test_epochs_are_read_to_the_microsecond():
    texts = ["12", "-12", "1.5", "1.1234567", "-1.5", "1.", "x", "", None, "9" * 19]
    read = {unit: plain_epochs(pa.array(texts), scale) for unit, scale in EPOCH_UNITS.items()}
    plain = {unit: np.flatnonzero(mask).tolist() for unit, (_, mask) in read.items()}
    assert plain == {"epoch_s": [0, 1, 2], "epoch_ms": [0, 1, 2], "epoch_us": [0, 1], "epoch_ns": [0, 1]}
    texts = ["1710410703250000999", "9223372036854775799", "9223372036854775808"]
    nanos, plain_nanos = plain_epochs(pa.array(texts), EPOCH_UNITS["epoch_ns"])
    assert (nanos[:2].tolist(), plain_nanos.tolist()) == ([1710410703250000, 9223372036854775], [True, True, False])
    assert [read[unit][0][:3].tolist() for unit in ("epoch_s", "epoch_ms")] == [
        [12_000_000, -12_000_000, 1_500_000],
        [12_000, -12_000, 1_500],
    ]
    assert read["epoch_ns"][0][:2].tolist() == [0, -1]


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
