"""Local times when clocks change, against Python's zoneinfo, in every way that a time is written without its zone."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import fastavro
import pandas as pd
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from adapt.core.errors import BadInput, UsageError
from adapt.core.lint.findings import judged
from adapt.traces.ingest import ingest as ingesting
from adapt.traces.ingest.ingest import IngestOptions, ingest
from adapt.traces.ingest.mapping import Mapping
from tests.tiers import SOAK

BERLIN = ZoneInfo("Europe/Berlin")


def half_hours(zone, first, rows, minutes=30):
    """Moments in order, and what the clocks of the zone show then."""
    moments = [first + timedelta(minutes=minutes * at) for at in range(rows)]
    return moments, [moment.astimezone(zone).replace(tzinfo=None) for moment in moments]


def ingested(source, out, zone, **mapping):
    source = str(source) if isinstance(source, Path) else source
    trace = ingest([source], out, Mapping("k", "t", **mapping), IngestOptions(time_zone=zone)).trace
    return trace.to_arrow()["ts"].to_pylist(), {each.id: each for each in judged(trace.profile)}.get("local-times")


def csv_of(path, texts):
    path.write_text("t,k\n" + "".join(f"{text},a\n" for text in texts))
    return path


@pytest.mark.parametrize(
    ("zone", "first", "minutes"),
    [
        ("Europe/Berlin", datetime(2018, 10, 27, 22, tzinfo=UTC), 30),
        ("Europe/Berlin", datetime(2024, 3, 30, 22, tzinfo=UTC), 15),  # clocks go forward
        ("America/Sao_Paulo", datetime(2018, 2, 18, 0, tzinfo=UTC), 10),  # at midnight
        ("Australia/Lord_Howe", datetime(2024, 4, 6, 12, tzinfo=UTC), 10),  # by half an hour
    ],
)
def test_the_order_of_a_file_decides_between_both_passes(spark, tmp_path, zone, first, minutes):
    moments, shown = half_hours(ZoneInfo(zone) if zone[0] != "+" else UTC, first, 30, minutes)
    if zone[0] == "+":
        moments = [moment - timedelta(hours=2) for moment in moments]
    times, finding = ingested(csv_of(tmp_path / "in.csv", shown), tmp_path / "t.trace", zone)
    assert times == moments
    twice = sum(shown.count(each) > 1 for each in shown)
    assert (finding and finding.figures) == (
        {"doubled": twice, "second": twice // 2, "undecided": 0, "skipped": 0} if twice else None
    )


def test_a_large_source_is_read_as_a_small_one(spark, tmp_path, monkeypatch):
    moments, shown = half_hours(BERLIN, datetime(2018, 10, 27, 22, tzinfo=UTC), 12)
    monkeypatch.setattr(ingesting, "SMALL_BYTES", -1)
    times, finding = ingested(csv_of(tmp_path / "in.csv", shown), tmp_path / "t.trace", "Europe/Berlin")
    assert (times, finding.figures["second"]) == (moments, 2)


def test_a_pattern_and_each_type_without_a_zone_are_read_alike(spark, tmp_path):
    moments, shown = half_hours(BERLIN, datetime(2018, 10, 27, 22, tzinfo=UTC), 12)
    slashed = csv_of(tmp_path / "in.csv", [f"{each:%d.%m.%Y %H:%M:%S}" for each in shown])
    assert ingested(slashed, tmp_path / "pattern.trace", "Europe/Berlin")[0] == moments
    nine = csv_of(tmp_path / "nine.csv", [f"{each:%Y-%m-%dT%H:%M:%S}.000000999" for each in shown])
    assert ingested(nine, tmp_path / "nine.trace", "Europe/Berlin")[0] == moments
    for unit in ("s", "ms", "us", "ns") if SOAK else ("s", "ns"):
        frame = pd.DataFrame({"t": pd.Series(shown).astype(f"datetime64[{unit}]"), "k": "a"})
        assert ingested(frame, tmp_path / f"frame-{unit}.trace", "Europe/Berlin")[0] == moments
        if unit != "s":
            pq.write_table(pa.Table.from_pandas(frame), tmp_path / f"{unit}.parquet", coerce_timestamps=None)
            assert ingested(tmp_path / f"{unit}.parquet", tmp_path / f"{unit}.trace", "Europe/Berlin")[0] == moments
    pyarrow.orc.write_table(pa.table({"t": pa.array(shown, pa.timestamp("ns")), "k": ["a"] * 12}), tmp_path / "t.orc")
    assert ingested(tmp_path / "t.orc", tmp_path / "orc.trace", "Europe/Berlin")[0] == moments


def test_orc_of_spark_keeps_its_moments_and_its_local_times(spark, tmp_path):
    of_spark = "select timestamp'2018-10-28T00:30:00Z' as moment, timestamp_ntz'2018-10-28 03:30:00' as t, 'a' as k"
    spark.sql(of_spark).coalesce(1).write.orc(str(tmp_path / "in"))
    expected = [datetime(2018, 10, 28, 2, 30, tzinfo=UTC)]
    assert ingested(tmp_path / "in", tmp_path / "t.trace", "Europe/Berlin")[0] == expected
    made = ingest([str(tmp_path / "in")], tmp_path / "m.trace", Mapping("k", "moment"))
    assert made.trace.to_arrow()["ts"].to_pylist() == [datetime(2018, 10, 28, 0, 30, tzinfo=UTC)]


def test_nanoseconds_of_avro_have_the_zone_of_their_type(spark, tmp_path):
    moments, shown = half_hours(BERLIN, datetime(2018, 10, 27, 22, tzinfo=UTC), 12)
    for logical, times in {"timestamp-nanos": moments, "local-timestamp-nanos": shown}.items():
        kind = {"type": "long", "logicalType": logical}
        schema = {
            "type": "record",
            "name": "r",
            "fields": [{"name": "t", "type": kind}, {"name": "k", "type": "string"}],
        }
        rows = [{"t": int(each.replace(tzinfo=UTC).timestamp()) * 10**9 + 999, "k": "a"} for each in times]
        with (tmp_path / f"{logical}.avro").open("wb") as file:
            fastavro.writer(file, schema, rows)
        read, _ = ingested(tmp_path / f"{logical}.avro", tmp_path / f"{logical}.trace", "Europe/Berlin")
        assert read == moments, logical


def test_times_with_a_zone_are_moments_in_any_time_zone(spark, tmp_path):
    moments, _ = half_hours(BERLIN, datetime(2018, 10, 27, 22, 0, 0, 123456, tzinfo=UTC), 12)
    with_zone = pa.table({"t": pa.array(moments, pa.timestamp("ns", "Asia/Tokyo")), "k": ["a"] * 12})
    pq.write_table(with_zone, tmp_path / "in.parquet")
    assert ingested(tmp_path / "in.parquet", tmp_path / "p.trace", "Europe/Berlin") == (moments, None)
    texts = csv_of(tmp_path / "in.csv", [each.astimezone(BERLIN).isoformat() for each in moments])
    assert ingested(texts, tmp_path / "c.trace", "America/New_York") == (moments, None)


def test_rows_whose_order_does_not_decide_are_counted(spark, tmp_path):
    _, shown = half_hours(BERLIN, datetime(2018, 10, 27, 22, tzinfo=UTC), 16, 15)
    one_pass = [each for at, each in enumerate(shown) if not 8 <= at < 12]
    jitter = [each + timedelta(seconds=(7 * at) % 3) for at, each in enumerate(one_pass)]
    for name, texts in {"backward": shown[::-1], "one": one_pass, "jitter": jitter, "twice": shown + shown}.items():
        times, finding = ingested(csv_of(tmp_path / f"{name}.csv", texts), tmp_path / f"{name}.trace", "Europe/Berlin")
        twice = sum(each.hour == 2 for each in texts)
        assert finding.figures == {"doubled": twice, "second": 0, "undecided": twice, "skipped": 0}, name
        assert times == sorted(each.replace(tzinfo=BERLIN, fold=0).astimezone(UTC) for each in texts), name
    assert f"of {twice} the pass is unknown" in finding.evidence


def syslog_of(moments):
    return [f"{moment:%b} {moment.day:>2} {moment:%H:%M:%S}" for moment in moments]


def test_the_year_of_syslog_goes_up_by_the_order_of_its_lines(spark, tmp_path):
    moments = [datetime(2022, 3, 1, tzinfo=UTC) + timedelta(hours=37 * at) for at in range(700)]
    assert {moment.year for moment in moments} == {2022, 2023, 2024, 2025}
    moments[200], moments[201] = moments[201], moments[200]
    around = next(at for at, moment in enumerate(moments) if moment.year == 2024)
    moments[around - 1 : around + 1] = reversed(moments[around - 1 : around + 1])  # a late line of December
    assert any((moment.month, moment.day) == (2, 29) for moment in moments)
    source = csv_of(tmp_path / "in.csv", syslog_of(moments))
    times, _ = ingested(source, tmp_path / "t.trace", "UTC", time_format="syslog:2022")
    assert times == sorted(moments)
    berlin, _ = ingested(source, tmp_path / "b.trace", "Europe/Berlin", time_format="syslog:2022")
    assert berlin == [moment.replace(tzinfo=BERLIN).astimezone(UTC) for moment in sorted(moments)]


def test_each_file_of_syslog_starts_in_the_stated_year_and_lines_in_no_order_are_refused(spark, tmp_path):
    winter = [datetime(2023, 12, 31, 23, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)]
    (tmp_path / "logs").mkdir()
    for name in ("a", "b"):
        csv_of(tmp_path / "logs" / f"{name}.csv", syslog_of(winter))
    times, _ = ingested(tmp_path / "logs", tmp_path / "t.trace", "UTC", time_format="syslog:2023")
    assert times == sorted(2 * winter)
    mixed = csv_of(tmp_path / "mixed.csv", syslog_of(100 * winter))
    with pytest.raises(BadInput, match="would change more than 100 times; the lines are not in order"):
        ingested(mixed, tmp_path / "m.trace", "UTC", time_format="syslog:2023")
    frame = spark.createDataFrame([("Jan  1 00:00:01", "a")], ["t", "k"])
    with pytest.raises(UsageError, match="needs lines in order"):
        ingested(frame, tmp_path / "f.trace", "UTC", time_format="syslog:2023")
