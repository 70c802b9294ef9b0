"""Ingest of the real streams: every row accounted for, in order."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from adapt.core.lint.findings import judged
from adapt.core.stream import KeyType
from adapt.traces.ingest.cleaning import Cleaning, ClockShift
from adapt.traces.ingest.ingest import IngestOptions, ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.sources.names import FormatName
from adapt.traces.sources.sniff import ReadOptions
from tests.tiers import SOAK, soak

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def taken_in(tmp_path, real_traces):
    """Ingests a real stream, or of a folder what fits a pattern, and checks that its times are in order."""

    def take_in(name, mapping, pattern="", **options):
        done = ingest(
            [str(real_traces(name) / pattern)], tmp_path / "out.trace", mapping, IngestOptions(**options), force=True
        )
        times = np.concatenate([batch.column(0).cast(pa.int64()).to_numpy() for batch in done.trace.batches(["ts"])])
        assert (np.diff(times) >= 0).all()
        assert len(times) == done.trace.rows
        return done

    return take_in


def findings(done):
    """The figures of what the lint finds, by its id."""
    return {finding.id: finding.figures for finding in judged(done.trace.profile) or ()}


def test_weblog_2015_has_one_line_that_is_none(taken_in):
    reading = ReadOptions(FormatName.CLF)
    done = taken_in("weblog-2015/apache_logs", Mapping("host", bytes="bytes"), reading=reading)
    assert (done.trace.rows, done.rejects.rows) == (9_999, 1)
    (refused,) = pq.read_table(done.trace.path / "_rejects").to_pylist()
    assert refused["line"] == 8_899
    assert done.trace.profile["distinct_keys"] == 1_753
    found = findings(done)
    assert (found["minute-of-hour"]["minute"], found["minute-of-hour"]["share"]) == (5, 1)
    assert (found["source-order"]["late"], found["source-order"]["latest_s"]) == (9_447, 59)


def test_wiki_edits_are_all_kept(taken_in):
    done = taken_in("wiki-edits/wikiticker-2015-09-12-sampled.json.gz", Mapping("page", "time"))
    assert (done.trace.rows, done.rejects.rows) == (39_244, 0)
    keys = pa.chunked_array([batch.column(0) for batch in done.trace.batches(["key"])])
    assert pc.count_distinct(keys, mode="all").as_py() == 35_143
    outliers = findings(done)["outlier-dates"]
    assert (outliers["before"], outliers["after"]) == (4, 8)
    assert "source-order" not in findings(done)  # but for these, it is in order


def test_two_clocks_that_disagree_are_set_right(taken_in):
    """The one-minute changes of the mid-price at both venues, by the times that the trace then has."""
    day = "20140507" if not SOAK else "2014050*"
    mapping = Mapping(
        "split(_path, '/')[0]",
        "timestamp_millis(bigint(ms) + 86400000 * datediff(to_date(regexp_extract(_path, '([0-9]{8})_quote', 1),"
        " 'yyyyMMdd'), date'1970-01-01'))",
        stream="split(_path, '/')[0]",
        keep=("bid", "ask"),
    )
    reading = ReadOptions(FormatName.CSV, ",", header=False, columns=("ms", "bid", "ask"))
    correlations = []
    for cleaning in (Cleaning(), Cleaning((ClockShift.parse("fxcm=5h"),))):
        done = taken_in("fx-ticks/forex", mapping, f"*/tick/eurusd/{day}_quote.zip", reading=reading, cleaning=cleaning)
        rows = pa.Table.from_batches(done.trace.batches())
        minutes = rows["ts"].cast(pa.int64()).to_numpy() // 60_000_000
        middle = (rows["bid"].cast(pa.float64()).to_numpy() + rows["ask"].cast(pa.float64()).to_numpy()) / 2
        last = {}
        for venue in ("fxcm", "oanda"):
            of = pc.equal(rows["stream"], venue).to_numpy()
            at, first_from_behind = np.unique(minutes[of][::-1], return_index=True)
            last[venue] = dict(zip(at.tolist(), middle[of][::-1][first_from_behind].tolist(), strict=True))
        both = [at for at in last["fxcm"] if all(when in last[venue] for venue in last for when in (at, at - 1))]
        changes = [[last[venue][at] - last[venue][at - 1] for at in both] for venue in last]
        correlations.append(np.corrcoef(changes)[0, 1])
    assert correlations[0] < 0.2
    assert correlations[1] >= 0.98


@soak
def test_reviews_are_brought_into_time_order(taken_in):
    done = taken_in("reviews/anonreviews.csv.bz2", Mapping("int(vendorId)", "date"))
    assert (done.trace.rows, done.rejects.rows) == (578_805, 0)
    assert done.trace.key_type is KeyType.INT32
    assert done.trace.profile["distinct_keys"] == 247
    assert findings(done)["source-order"]["late"] == 577_400
    assert findings(done)["key-blocks"]["same_as_before"] > 0.89


def test_flights_by_departure_lack_those_that_were_cancelled(taken_in):
    clock = "int(nullif(dep_time, 'NA'))"  # 517 is 05:17, and 2400 the midnight that ends the day
    day = f"date_add(make_date(int(year), int(month), int(day)), int({clock} div 2400))"
    hour, minute = f"int({clock} div 100 % 24)", f"int({clock} % 100)"
    local = f"make_timestamp(year({day}), month({day}), day({day}), {hour}, {minute}, 0)"
    done = taken_in("flights/flights.csv.gz", Mapping("origin", local), time_zone="America/New_York")
    assert (done.trace.rows, done.rejects.rows) == (328_521, 8_255)
    assert done.rejects.reasons == {"time is missing": 8_255}
    assert findings(done)["few-keys"]["keys"] == 3
    times = pa.chunked_array([batch.column(0) for batch in done.trace.batches(["ts"])])
    assert times[0].as_py().isoformat() == "2013-01-01T10:17:00+00:00"  # 05:17 in New York
    local_times = times.cast(pa.timestamp("us", "America/New_York"))
    midnights = pc.and_(pc.equal(pc.hour(local_times), 0), pc.equal(pc.minute(local_times), 0))
    assert pc.sum(midnights).as_py() == 29


DAY = {"fxcm:nzdusd": 109_542, "fxcm:eurusd": 89_504, "oanda:nzdusd": 41_960, "oanda:eurusd": 41_367}
WEEK = {
    "oanda:xauusd": 907_987,
    "fxcm:eurusd": 519_917,
    "fxcm:nzdusd": 444_856,
    "oanda:eurusd": 246_875,
    "oanda:nzdusd": 200_182,
}
"""Ticks by venue and instrument."""


def test_fx_ticks_of_two_clocks_become_one_stream_of_utc(taken_in):
    venue, instrument = "regexp_extract(_path, '([a-z]+)/tick/', 1)", "regexp_extract(_path, 'tick/([a-z]+)/', 1)"
    midnight = "to_timestamp(regexp_extract(_path, '([0-9]{8})_quote', 1), 'yyyyMMdd')"
    clock = f"if({venue} = 'fxcm', 5 * 3600000, 0)"
    time = f"timestamp_micros(unix_micros({midnight}) + bigint(round((double(_c0) + {clock}) * 1000)))"
    mapping = Mapping(instrument, time, stream=f"concat({venue}, ':', {instrument})")
    reading = ReadOptions(FormatName.CSV, ",", header=False)
    done = taken_in("fx-ticks", mapping, "" if SOAK else "forex/*/tick/*/20140507_quote.zip", reading=reading)
    ticks = DAY if not SOAK else WEEK
    assert (done.trace.rows, done.rejects.rows) == (sum(ticks.values()), 0)
    assert done.trace.profile["streams"] == ticks
    assert "clocks" not in findings(done)  # with these five hours added
