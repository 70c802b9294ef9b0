"""Plain rows sifted into runs against Spark SQL: the same trace, rejects and manifest, whatever the source holds."""

import gzip
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.traces.ingest import ingest as ingesting
from adapt.traces.ingest import sieve
from adapt.traces.ingest.cleaning import Cleaning, ClockShift
from adapt.traces.ingest.ingest import IngestOptions, ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.ingest.sieve import Sieve, sieve_of
from adapt.traces.sources.reading.blocks import PATH
from adapt.traces.sources.sniff import ReadOptions
from adapt.traces.spark import runner as spark_runner
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.session import SparkOptions
from adapt.traces.store.trace import Trace
from tests.tiers import SOAK, soak
from tests.traces.ingest.odd_inputs import GROUPS

pytestmark = pytest.mark.usefixtures("spark")


Both = Callable[..., Trace]


def told(trace: Trace) -> dict:
    """What a trace says of itself, but for its files, and its rejects."""
    manifest = trace.manifest
    rejects = trace.path / "_rejects"
    return {
        "hash": manifest.content_hash,
        "summary": manifest.summary,
        "parameters": manifest.made.parameters,
        "inputs": manifest.made.inputs,
        "rejects": pq.read_table(rejects).to_pylist() if rejects.exists() else [],
        "row groups": [part.get("row_groups") for part in manifest.files],
    }


@pytest.fixture
def both(tmp_path, monkeypatch) -> Both:
    """Ingests on both paths, compares them, and returns the trace of the sifted one."""

    def run(source: Path, mapping: Mapping, options: IngestOptions | None = None, *, plain: bool = True) -> Trace:
        sieves: list[Sieve | None] = []

        def seen(*arguments):
            sieves.append(sieve_of(*arguments))
            return sieves[-1]

        spark = SparkOptions(runner=RunnerName.SPARK)
        by_sql = ingest([str(source)], tmp_path / "sql", mapping, options, force=True, spark_options=spark).trace
        with monkeypatch.context() as patched:
            patched.setattr(ingesting, "SMALL_BYTES", -1)
            patched.setattr(spark_runner, "TASK_BYTES", 1)  # a task, and so a run, for each file
            patched.setattr(sieve, "LEAST_PLAIN", 0.0)
            patched.setattr("adapt.traces.ingest.streams.sieve_of", seen)
            sifted = ingest([str(source)], tmp_path / "sifted", mapping, options, force=True).trace
        assert plain == any(each is not None for each in sieves)
        assert told(sifted) == told(by_sql)
        assert sorted(path.name for path in sifted.path.iterdir()) == sorted(
            path.name for path in by_sql.path.iterdir()
        )
        return sifted

    return run


@soak
@pytest.mark.parametrize("name", GROUPS)
def test_odd_inputs_give_the_same_trace(both, tmp_path, name):
    group = GROUPS[name]
    source = tmp_path / "in"
    source.mkdir()
    for file, odd in group.files.items():
        (source / file).write_bytes(odd.content)
    both(source, group.mapping, IngestOptions(reading=group.reading, time_zone=group.time_zone), plain=name != "json")


TIMES: dict[str, tuple[str, ...]] = {
    "iso": (
        "2015-05-17T10:00:{:02}",
        "2015-05-17 10:00:{:02}.5",
        "2015-05-17T10:00:{:02}.123456Z",
        "2015-05-17T12:30:{:02}+02:30",
        "2015-05-17T09:00:{:02}-01:00",
        "2015-05-17",
        "2015-02-29",
        " 2015-05-17T10:00:{:02}",
        "2015-05-17T10:00",
        "2015-05-17T10:00:{:02}.1234567",
        "2015-05-17T10:00:{:02} Z",
        "10:00:{:02}",
        "",
    ),
    "dd/MMM/yyyy:HH:mm:ss Z": (
        "17/May/2015:10:00:{:02} +0000",
        "17/May/2015:10:00:{:02} -0130",
        "17/MAY/2015:10:00:00 Z",
    ),
    "epoch_s": ("143185{:04}", "143185{:04}.25", "143185{:04}.1234567", "-{}", "1e9", "", "x", "9" * 19),
    "epoch_ms": ("1431856800{:03}", "1431856800{:03}.5", "-1.5", "", "1431856800{:03}.1239"),
    "epoch_us": ("14318568000000{:02}", "1431856800.5", "+14318568000000{:02}", "-{}"),
    "epoch_ns": ("14318568000000000{:02}", "-{}", "14318568000000{:02}.7"),
    "yyyy/MM/dd[ HH:mm[:ss][.SSSSSS]]": (
        "2015/05/17 10:00:{:02}",
        "2015/05/17 10:00",
        "2015/05/17 10:00:{:02}.5",
        "2015/05/17",
    ),
    "MM/dd/yyyy[ HH:mm[:ss][.SSSSSS]]": (
        "05/17/2015",
        "05/17/2015 10:00:{:02}",
        "05/17/2015 10:00",
        "17/05/2015",
        "5/17/2015",
    ),
    "dd.MM.yyyy[ HH:mm[:ss][.SSSSSS]]": (
        "17.05.2015",
        "17.05.2015 10:00:{:02}",
        "17.05.2015 10:00:00.25",
        "30.02.2015",
    ),
    "yyyyMMddHHmmss": ("201505171000{:02}", "2015051710", "20150517100060"),
    "yyyyMMdd": ("20150517", "201505{:02}", "20151301", "2015-05-17"),
    "dd-MMM-yyyy[ HH:mm:ss]": ("17-May-2015", "17-May-2015 10:00:{:02}", "17-Sept-2015", "17-SEP-2015"),
}
"""Times of each format, mostly plain; `{}` is a number below 60."""

COSTS = (
    *("{}", "{}.5", "0.1234567890123456789", "{}e-3", "12345678901234567890"),
    *("", " {}", ".5", "1e400", "-1", "NaN", "5d", "x"),
)
SIZES = ("{}", "{}.75", "", "x", "-3", "9223372036854775807", "9223372036854775808", "1e3", " {} ")
KEYS = ("k{}", "", '"a,b"', '"say ""x"""', "ключ", " ")


def odd_rows(random: Random, times: tuple[str, ...]) -> bytes:
    """A CSV of rows that are mostly plain, with ties of time, several line ends, and some rows cut short."""
    lines = ["t,k,c,b,s"]
    for _ in range(random.randint(1, 250)):
        # the first of each are plain
        cells = [random.choice(kinds[:2] if random.random() < 0.7 else kinds) for kinds in (times, KEYS, COSTS, SIZES)]
        row = ",".join(cell.format(random.randrange(60)) for cell in cells) + f",s{random.randrange(3)}"
        lines.append(row if random.random() < 0.97 else row.rpartition(",")[0])
    return random.choice(["\n", "\r\n"]).join(lines).encode() + b"\n"


@pytest.mark.parametrize("form", TIMES if SOAK else ["iso"])
@pytest.mark.parametrize("seed", range(20 if SOAK else 1))
def test_random_rows_give_the_same_trace(both, tmp_path, form, seed):
    random = Random(f"{form} {seed}")
    source = tmp_path / "in"
    source.mkdir()
    for at in range(random.randint(1, 3)):
        content = odd_rows(random, TIMES[form])
        (source / f"{at}.csv").write_bytes(gzip.compress(content) if random.random() < 0.3 else content)
    stream = random.choice(["", "s", PATH])
    mapping = Mapping(*("k", "t", "c", "b", stream, form, ("s",)), cost_unit="3ms", partition=random.choice(("", "b")))
    both(source, mapping, IngestOptions(reading=ReadOptions(header=True)))


def test_rows_of_one_time_keep_the_order_of_the_source(both, tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    for at in range(3):  # a space before a time makes it one that Spark reads
        rows = [f"{' ' * (number % 3 == 0)}2015-05-17T10:00:00,k{at} {number}" for number in range(100)]
        (source / f"{at}.csv").write_text("\n".join(["t,k", *rows]))
    trace = both(source, Mapping("k", "t", time_format="iso"), IngestOptions(reading=ReadOptions(header=True)))
    keys = [key for batch in trace.batches(["key"]) for key in batch.column("key").to_pylist()]
    assert keys == [f"k{at} {number}" for at in range(3) for number in range(100)]


CLEANING = {
    "an expression": (Mapping("upper(k)", "t", cost="c + 1", bytes="b", keep=("s",)), Cleaning()),
    "repeated rows": (Mapping("k", "t", cost="c", stream="s", dedup="concat(k, c)"), Cleaning()),
    "all rules": (
        Mapping("k", "t", cost="c", stream="s", dedup="*"),
        Cleaning((ClockShift("s1", 3_000_000),), 40_000_000, hash_keys=True, sample=Fraction(1, 2)),
    ),
}


@pytest.mark.parametrize("name", CLEANING if SOAK else ["all rules"])
def test_expressions_and_cleaning_give_the_same_trace(both, tmp_path, name):
    source = tmp_path / "in"
    source.mkdir()
    random = Random(name)
    for at in range(2):
        (source / f"{at}.csv").write_bytes(odd_rows(random, TIMES["iso"]))
    mapping, cleaning = CLEANING[name]
    mapping = replace(mapping, time_format="iso", cost_unit="us")
    options = IngestOptions(reading=ReadOptions(header=True), cleaning=cleaning, salt="a salt of the tests")
    both(source, mapping, options, plain=False)


def test_kept_columns_of_every_type_give_the_same_trace(both, tmp_path):
    moment = datetime(2015, 5, 17, 10, 0, 0, 1)
    kept = {
        "tiny": pa.array([1, None, -3], pa.int8()),
        "whole": pa.array([1, None, -3], pa.int32()),
        "half": pa.array([1.5, None, -0.0], pa.float32()),
        "exact": pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(9, 2)),
        "wide": pa.array([Decimal("1.5"), None, Decimal("-2.2")], pa.decimal128(30, 1)),
        "day": pa.array([moment.date(), None, moment.date()]),
        "at": pa.array([moment, None, moment], pa.timestamp("us", "UTC")),
        "local": pa.array([moment, None, moment], pa.timestamp("us")),
        "raw": pa.array([b"\xff", None, b""]),
        "yes": pa.array([True, None, False]),
        "day=1": pa.array(["x", None, ""]),
    }
    table = pa.table({"ts": pa.array([3, 1, 2]), "key": pa.array([7, None, -7]), **kept})
    pq.write_table(table, tmp_path / "rows.parquet")
    mapping = Mapping("key", "ts", time_format="epoch_s", keep=tuple(kept))
    both(tmp_path / "rows.parquet", mapping, IngestOptions(time_zone="Europe/Berlin"))
