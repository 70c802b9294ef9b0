"""Cutting a stream into periods: the same whatever the batches, in memory that does not grow with the stream."""

import tracemalloc
from itertools import groupby, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import BadInput
from adapt.core.repartition import periods as module
from adapt.core.repartition.periods import periods
from adapt.core.units.row_or_time_span import Length

TS = pa.timestamp("us", "UTC")

keys = st.sampled_from(["a", "b", "", "ä", None])
weights = st.one_of(st.none(), st.floats(0, 1e6))
rows = st.lists(st.tuples(st.sampled_from([0, 0, 1, 3, 10, 10**13]), keys, weights), max_size=40)
lengths = st.builds(Length, st.integers(1, 12), st.booleans())


def batch(times, keys, weights=None):
    columns = {"ts": pa.array(times, TS), "key": pa.array(keys, pa.string())}
    if weights is not None:
        columns["cost_us"] = pa.array(weights, pa.float64())
    return pa.record_batch(columns)


def stream(rows, cuts=()):
    """The rows as batches, cut at the given places; each row comes some microseconds after the one before."""
    times = np.cumsum([gap for gap, _, _ in rows]).tolist()
    places = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    return [
        batch(times[first:end], [row[1] for row in rows[first:end]], [row[2] for row in rows[first:end]])
        for first, end in pairwise(places)
    ]


def plain(period):
    return (
        period.index,
        period.start_us,
        period.end_us,
        period.counted.rows,
        dict(zip(period.counted.keys.to_pylist(), period.counted.counts.tolist(), strict=True)),
    )


def literal_periods(rows, length):
    """Row by row, word for word."""
    times = np.cumsum([gap for gap, _, _ in rows]).tolist()
    numbered = [
        (at // length.size if length.in_rows else (time - times[0]) // length.size, time, key, weight)
        for at, (time, (_, key, weight)) in enumerate(zip(times, rows, strict=True))
    ]
    for number, group in groupby(numbered, key=lambda row: row[0]):
        held = list(group)
        sums = {}
        for _, _, key, weight in held:
            sums[key] = sums.get(key, 0.0) + (weight or 0.0)
        start = held[0][1] if length.in_rows else times[0] + number * length.size
        yield number, start, held[-1][1] if length.in_rows else start + length.size, len(held), sums


@given(rows, lengths, st.lists(st.integers(0, 40), max_size=8), st.integers(1, 5))
def test_periods_are_those_of_plain_counting_however_the_stream_is_cut(rows, length, cuts, kept):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ROWS_KEPT", kept)
        found = [plain(period) for period in periods(stream(rows, cuts), length, "cost_us")]
    assert found == list(literal_periods(rows, length))


@given(rows, lengths, st.lists(st.integers(0, 40), max_size=8))
def test_the_order_of_keys_does_not_depend_on_the_cut_either(rows, length, cuts):
    whole, cut = (list(periods(stream(rows, places), length)) for places in ((), cuts))
    assert [each.counted.keys.to_pylist() for each in whole] == [each.counted.keys.to_pylist() for each in cut]
    assert all(each.counted.counts.dtype == np.int64 for each in cut)


def test_periods_of_time_start_with_the_first_row_and_end_before_the_next():
    found = periods([batch([7, 16, 17], ["a", "b", "c"])], Length(10))
    assert [(each.start_us, each.end_us, each.counted.keys.to_pylist()) for each in found] == [
        (7, 17, ["a", "b"]),
        (17, 27, ["c"]),
    ]


def test_periods_of_rows_end_with_their_last_row():
    found = periods([batch([7, 16, 17], ["a", "b", "c"])], Length(2, in_rows=True))
    assert [(each.index, each.start_us, each.end_us) for each in found] == [(0, 7, 16), (1, 17, 17)]


def test_years_without_rows_cost_nothing():
    years = 2000 * 366 * 86_400_000_000
    found = list(periods([batch([0, years], ["a", "b"])], Length(1)))
    assert [each.index for each in found] == [0, years]


def test_integers_and_bytes_are_counted_as_what_they_are():
    for kind, values in ((pa.int64(), [3, 3, None]), (pa.binary(), [b"\xff", b"\xff", None])):
        rows = pa.record_batch({"ts": pa.array([0, 1, 2], TS), "key": pa.array(values, kind)})
        (period,) = periods([rows], Length.parse("1h"))
        assert plain(period)[4] == {values[0]: 2, None: 1}


def test_whole_weights_stay_whole():
    rows = pa.record_batch(
        {"ts": pa.array([0, 1, 2], TS), "key": pa.array(["a"] * 3), "bytes": pa.array([2**53, 1, None])}
    )
    (period,) = periods([rows], Length.parse("1h"), "bytes")
    assert period.counted.counts.tolist() == [2**53 + 1]


def test_a_stream_without_rows_has_no_periods():
    assert list(periods([], Length(1))) == list(periods([batch([], [])], Length(1))) == []


def test_rows_out_of_order_are_refused_by_number():
    with pytest.raises(BadInput, match="row 4 is earlier than the row before it"):
        list(periods([batch([1, 2], ["a", "a"]), batch([2, 1], ["a", "a"])], Length(1)))
    with pytest.raises(BadInput, match="row 3 is earlier"):
        list(periods([batch([1, 2], ["a", "a"]), batch([1, 5], ["a", "a"])], Length(1)))


def test_rows_without_a_time_or_with_coarse_times_are_refused():
    with pytest.raises(BadInput, match="no time"):
        list(periods([batch([1, None], ["a", "a"])], Length(1)))
    seconds = pa.record_batch({"ts": pa.array([1], pa.timestamp("s")), "key": pa.array(["a"])})
    with pytest.raises(ValueError, match="microseconds"):
        list(periods([seconds], Length(1)))


@pytest.mark.parametrize("length", ["1s", "1d"], ids=["many periods", "one period"])
def test_memory_grows_with_the_keys_of_a_period_not_with_the_stream(length):
    assert _peak(100, Length.parse(length)) < 1.5 * _peak(10, Length.parse(length))


def _peak(batches, length, rows=20_000):
    """The most memory held, of Python, numpy and Arrow, while a stream of 1000 keys passes."""
    held = 0

    def passing():
        nonlocal held
        for number in range(batches):
            times = pa.array(np.arange(number * rows, (number + 1) * rows) * 100, TS)
            texts = pa.array(np.arange(rows) % 1000 + 1).cast(pa.string())
            yield pa.record_batch({"ts": times, "key": texts})
            held = max(held, pa.total_allocated_bytes() - before)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ROWS_KEPT", 50_000)
        before = pa.total_allocated_bytes()
        tracemalloc.start()
        try:
            for _ in periods(passing(), length):
                pass
            return held + tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
