"""A small source held as one table gives the trace that Spark's jobs give."""

import gzip
import json
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.traces.ingest import ingest as ingesting
from adapt.traces.ingest.cleaning import Cleaning, ClockShift
from adapt.traces.ingest.ingest import IngestOptions, ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.ingest.streams import Stream
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.session import SparkOptions
from tests.tiers import SOAK

pytestmark = pytest.mark.usefixtures("spark")

ROWS = 400


def rows():
    """Rows with ties, repeats, nulls and values that are refused."""
    for at in range(ROWS):
        bad = at % 37 == 5
        time = f"2015-05-17 10:{at * 7 % 60:02d}:{at % 3:02d}"
        yield {
            "ts": "soon" if bad else time,
            "key": None if at % 41 == 7 else f"k{at * at % 23}",
            "bytes": -1 if at % 53 == 9 else at % 9,
            "note": f"n{at % 4}",
            "part": "west" if at % 3 else "east",
        }


def csv(folder):
    lines = [",".join("" if value is None else str(value) for value in row.values()) for row in rows()]
    lines[17] = '"never closed'
    (folder / "a.csv").write_text("\n".join(["ts,key,bytes,note,part", *lines[:250], ""]))
    with gzip.open(folder / "b.csv.gz", "wt") as file:
        file.write("\r\n".join(["ts,key,bytes,note,part", *lines[250:]]))


def jsonl(folder):
    lines = [json.dumps(row) for row in rows()]
    lines[3] = "no object"
    (folder / "a.jsonl").write_text("\n".join(lines))


def access_log(folder):
    line = '{0} - - [17/May/2015:10:{1:02d}:00 +0000] "GET / HTTP/1.1" 200 {2} "-" "{3}"'
    lines = [line.format(row["key"] or "-", at % 60, row["bytes"], row["note"]) for at, row in enumerate(rows())]
    (folder / "a.log").write_text("\n".join([*lines, "cut off"]))


def parquet(folder):
    kinds = {"size": pa.int16(), "price": pa.float32(), "day": pa.date32(), "at": pa.timestamp("ms")}
    table = pa.Table.from_pylist(list(rows()))
    for name, kind in kinds.items():
        whole = pa.array(range(ROWS), pa.int64() if name == "at" else pa.int32())
        table = table.append_column(name, whole.cast(kind))
    pq.write_table(table, folder / "a.parquet")


USER = Mapping("key", "ts", bytes="bytes", keep=("note",))
SALT = "as long as it has to be"

CASES = {
    "csv": (csv, USER, IngestOptions()),
    "csv, deduplicated": (csv, Mapping("key", "ts", bytes="bytes", dedup="concat(key, ts)"), IngestOptions()),
    "csv, equal rows once": (csv, Mapping("key", "ts", dedup="*"), IngestOptions()),
    "csv, without late rows": (csv, USER, IngestOptions(cleaning=Cleaning(max_lateness_us=600_000_000))),
    "csv, keys hashed": (csv, USER, IngestOptions(cleaning=Cleaning(hash_keys=True), salt=SALT)),
    "csv, keys sampled": (csv, USER, IngestOptions(cleaning=Cleaning(sample=Fraction(1, 2)))),
    "csv, clocks shifted": (
        csv,
        Mapping("key", "ts", stream="part"),
        IngestOptions(cleaning=Cleaning(clock_shifts=(ClockShift("we*", 3_600_000_000),))),
    ),
    "csv in another zone": (csv, USER, IngestOptions(time_zone="America/New_York")),
    "expressions": (csv, Mapping("upper(key)", "to_timestamp(ts)", cost="length(note) * 2", cost_unit="ms"), None),
    "json lines": (jsonl, USER, IngestOptions()),
    "access log": (access_log, Mapping("host", bytes="bytes", keep=("agent",)), IngestOptions()),
    "parquet": (
        parquet,
        Mapping("key", "ts", bytes="bytes", keep=("note", "size", "price", "day", "at")),
        IngestOptions(),
    ),
    "several streams": (
        csv,
        Mapping(""),
        IngestOptions(
            streams=(
                Stream("west", Mapping("key", "ts", bytes="bytes"), where="part = 'west'"),
                Stream("notes", Mapping("note", "ts"), where="part = 'east'"),
            )
        ),
    ),
}

FEW = ("several streams",)
"""Of the short tier."""


def facts(folder, name, case, runner):
    """What a trace tells besides the bytes of its files."""
    write, mapping, options = case
    source = folder / "in"
    if not source.exists():
        source.mkdir()
        write(source)
    ingested = ingest([str(source)], folder / name, mapping, options, spark_options=SparkOptions(runner=runner))
    trace = ingested.trace
    manifest = json.loads((trace.path / "_manifest.json").read_text())
    for entry in manifest["files"]:
        for of_writer in ("bytes", "sha256", "footer"):
            entry.pop(of_writer, None)
    manifest.pop("seal")
    aside = trace.path / "_rejects"
    refused = pq.read_table(aside).to_pylist() if aside.exists() else []
    table = pa.Table.from_batches(trace.batches())
    return manifest, refused, ingested.rejects, ingested.guesses, table


@pytest.mark.parametrize("name", CASES if SOAK else FEW)
def test_both_ways_give_one_trace(tmp_path, name, monkeypatch):
    on_spark = facts(tmp_path, "spark.trace", CASES[name], RunnerName.SPARK)
    monkeypatch.setattr(ingesting, "take_stock", None)  # the other way has no use for it
    assert facts(tmp_path, "held.trace", CASES[name], RunnerName.AUTO) == on_spark
    assert on_spark[1] or name in ("several streams",)


def test_more_rows_than_a_part_are_left_to_spark(tmp_path, monkeypatch):
    monkeypatch.setattr(ingesting, "ROWS_A_PART", ROWS // 4)
    monkeypatch.setattr(ingesting, "_held", None)
    facts(tmp_path, "spark.trace", CASES["csv, deduplicated"], RunnerName.AUTO)
    assert len(list((tmp_path / "spark.trace").glob("part-*"))) > 1
