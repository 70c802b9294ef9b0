"""The contract of every source: what the tool of its kind wrote is what the trace holds, in the order of the source.

One small table with nasty values goes through each; a source that cannot hold some of them says so in its case.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from adapt.traces.ingest.ingest import IngestOptions, ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.ingest.streams import Stream
from adapt.traces.sources.names import FormatName
from adapt.traces.sources.reading.files import Container
from adapt.traces.sources.sniff import ReadOptions
from adapt.traces.spark.session import SparkOptions
from tests.tiers import soak
from tests.traces.sources.kcat_printing import Message, envelope

pytestmark = pytest.mark.usefixtures("spark")

DAY = 1_431_857_103_000_000
TEXTS = (
    *("plain", "", "é ключ 日本 \N{GRINNING FACE}", 'say "hi"', "''", "a,b;c|d", "tab\tin", "line\nbreak", "cr\r\nlf"),
    *(
        " spaces ",
        "NULL",
        "-1",
        "back\\slash",
        "\\N",
        "{}",
        "%41",
        "\N{ZERO WIDTH NO-BREAK SPACE}mark",
        None,
        "x" * 5000,
    ),
)
NUMBERS = (0, 2**63 - 1, -(2**63), -1)
ROWS = tuple(
    # times of three values, so that the order of the source decides
    (DAY + (at * 7 % 3) * 1_000_001, text, NUMBERS[at % len(NUMBERS)], TEXTS[at * 5 % len(TEXTS)])
    for at, text in enumerate([*TEXTS, *TEXTS])
)
"""Time in microseconds, key, number, text."""


@dataclass(frozen=True)
class Case:
    """How a source is written and read.

    Attributes:
        write: Makes the bytes of a file of rows.
        reading: Its options.
        time: The expression of the time in microseconds.
        fits: What of a row can be written at all.
        holds: What is read of it: the row itself where the source knows types and nulls.
    """

    write: Callable[[list], bytes]
    reading: ReadOptions
    time: str = "timestamp_micros(bigint(t))"
    key: str = "k"
    keep: tuple[str, ...] = ("n", "s")
    fits: Callable[[tuple], tuple] = field(default=lambda row: row)
    holds: Callable[[tuple], tuple] = field(default=lambda row: row)


def delimited(delimiter):
    def write(rows):
        text = io.StringIO()
        csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows([("t", "k", "n", "s"), *rows])
        return text.getvalue().encode()

    return write


def named(rows):
    return [dict(zip("tkns", row, strict=True)) for row in rows]


def objects(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in named(rows)).encode()


def records(rows):
    return json.dumps({"Records": named(rows)}, ensure_ascii=False, indent=1).encode()


def changes(rows):
    return "".join(
        json.dumps({"before": None, "after": row, "op": "c", "ts_ms": 1}) + "\n" for row in named(rows)
    ).encode()


def spans(rows):
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": named(rows)}]}]}, indent=1).encode()


def parquet(rows):
    sink = io.BytesIO()
    columns = dict(zip("tkns", zip(*rows, strict=True), strict=True))
    pq.write_table(pa.table(columns), sink, row_group_size=5)
    return sink.getvalue()


def orc(rows):
    spark = SparkSession.getActiveSession()
    with tempfile.TemporaryDirectory() as folder:
        frame = spark.createDataFrame(rows, "t bigint, k string, n bigint, s string")
        frame.coalesce(1).write.mode("overwrite").orc(folder)
        (part,) = Path(folder).glob("part-*.orc")
        return part.read_bytes()


def avro(rows):
    sink = io.BytesIO()
    kinds = (("t", {"type": "long", "logicalType": "timestamp-micros"}), ("k", ["null", "string"]), ("n", "long"))
    fields = [{"name": name, "type": kind} for name, kind in (*kinds, ("s", ["null", "string"]))]
    objects = [dict(zip("tkns", row, strict=True)) for row in rows]
    fastavro.writer(sink, {"type": "record", "name": "Row", "fields": fields}, objects, "deflate", sync_interval=300)
    return sink.getvalue()


def log(rows):
    def line(t, k, n, s):
        when = datetime.fromtimestamp(t // 10**6, UTC)
        return f'{k} - - [{when:%d/%b/%Y:%H:%M:%S %z}] "GET {s} HTTP/1.1" {n} -\n'

    return "".join(line(*row) for row in rows).encode()


def lines(rows):
    return "".join(f"{t} <{k}> {n} {s}\n" for t, k, n, s in rows).encode()


def payload(row):
    return json.dumps(dict(zip("tns", (row[0], row[2], row[3]), strict=True)))


def messages(rows):
    for at, row in enumerate(rows):
        key = None if row[1] is None else row[1].encode()
        yield Message(key, payload(row).encode(), at % 3, at, row[0] // 1000)


def of_topic(print_one):
    return lambda rows: b"".join(print_one(message) for message in messages(rows))


def in_one_word(text):
    return "".join(text.split()).replace('"', "") if text else ""


def as_text(row):
    return (row[0], row[1] or "", str(row[2]), row[3] or "")


def as_words(row):
    return (row[0], in_one_word(row[1]) or "h", 200 + (row[2] & 63), f"/{in_one_word(row[3])}")


def as_line(row):
    return (row[0], *(" ".join((text or "").splitlines()) for text in (row[1], str(row[2]), row[3])))


def as_logged(row):
    return (row[0] // 10**6 * 10**6, row[1], str(row[2]), row[3])


def as_sent(row):
    return (row[0] // 1000 * 1000, row[1], payload(row))


def as_printed(row):
    return (row[0], None if row[1] is None else " ".join(row[1].split()), *row[2:])


def key_in_console(sent):
    return "null" if sent.key is None else sent.key.decode()


CASES = {
    "csv": Case(delimited(","), ReadOptions(FormatName.CSV), holds=as_text),
    "csv guessed": Case(delimited(";"), ReadOptions(), holds=as_text),
    "tsv": Case(delimited("\t"), ReadOptions(FormatName.TSV), holds=as_text),
    "jsonl": Case(objects, ReadOptions(FormatName.JSONL)),
    "json": Case(records, ReadOptions(FormatName.JSON)),
    "debezium": Case(changes, ReadOptions(FormatName.DEBEZIUM)),
    "otlp": Case(spans, ReadOptions(FormatName.OTLP)),
    "parquet": Case(parquet, ReadOptions(FormatName.PARQUET)),
    "orc": Case(orc, ReadOptions(FormatName.ORC)),
    "avro": Case(avro, ReadOptions(FormatName.AVRO), "t"),
    "clf": Case(log, ReadOptions(FormatName.CLF), "time", "host", ("status", "path"), as_words, as_logged),
    "text": Case(
        lines,
        ReadOptions(FormatName.TEXT, pattern=r"^(?P<t>\d+) <(?P<k>.*)> (?P<n>-?\d+) (?P<s>.*)$"),
        fits=as_line,
    ),
    "kcat -J": Case(
        of_topic(lambda message: envelope(message).encode()), ReadOptions(), "", "key", ("payload",), holds=as_sent
    ),
    "console": Case(
        of_topic(
            lambda sent: (
                f"CreateTime:{sent.ts}\tPartition:{sent.partition}\t{key_in_console(sent)}\t{sent.payload.decode()}\n".encode()
            )
        ),
        ReadOptions(FormatName.CONSOLE),
        "",
        "key",
        ("value",),
        fits=as_printed,
        holds=as_sent,
    ),
}
"""By the format, and more than one way to write some."""

TASKS = (1, 2, 7)
"""The content hash is the same for each of these numbers of parts."""

PACKED = {
    Container.PLAIN: bytes,
    Container.GZIP: gzip.compress,
    Container.BZIP2: bz2.compress,
    Container.ZSTD: lambda data: pa.compress(data, "zstd", asbytes=True),
    Container.XZ: lzma.compress,
    Container.ZIP: lambda data: zipped(data),
}


def zipped(data):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rows", data)
    return sink.getvalue()


def made(sources, folder, case, parts=1):
    """The trace of the sources, cut into that many parts."""
    conf = {"spark.sql.shuffle.partitions": str(parts)}
    mapping = Mapping(case.key, case.time, keep=case.keep)
    options = SparkOptions(conf=conf)
    return ingest(
        list(map(str, sources)), folder, mapping, IngestOptions(reading=case.reading), spark_options=options
    ).trace


def rows_of(trace, case):
    table = pa.Table.from_batches(trace.batches())
    times = table["ts"].cast(pa.int64()).to_pylist()
    return list(zip(times, *(table[name].to_pylist() for name in ("key", *case.keep)), strict=True))


def in_order(rows, case):
    return sorted((case.holds(row) for row in rows), key=lambda row: row[0])


@pytest.fixture(autouse=True)
def usual_settings(spark):
    parts = spark.conf.get("spark.sql.shuffle.partitions")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", parts)


def test_every_format_and_container_has_its_case():
    formats = {case.reading.format for case in CASES.values()}
    assert formats | {FormatName.KCAT} == set(FormatName)  # kcat is found out
    assert PACKED.keys() == set(Container)


@pytest.mark.parametrize("container", Container)
def test_what_was_packed_is_read_as_what_is_plain(opened, tmp_path, container):
    case = CASES["kcat -J"]
    (tmp_path / "rows").write_bytes(PACKED[container](case.write(ROWS)))
    source = opened(tmp_path / "rows")
    rows = source.frame(["key", source.partitions["key"]]).collect()
    assert [(row["key"], row["partition"]) for row in rows] == [(row[1], at % 3) for at, row in enumerate(ROWS)]


def put(folder, case, name="rows"):
    """The rows in two files, and what of them is written."""
    rows = [case.fits(row) for row in ROWS]
    cut = len(rows) // 3
    for number, some in enumerate((rows[:cut], rows[cut:])):
        (folder / f"{name}-{number}").write_bytes(case.write(some))
    return rows


def test_what_each_tool_wrote_is_what_one_trace_of_all_of_them_holds(tmp_path):
    written = {name: put(tmp_path, case, name) for name, case in CASES.items()}
    streams = []
    for name, case in CASES.items():
        values = ", ".join(f"'{column}', string({column})" for column in (case.key, *case.keep))
        mapping = Mapping(f"to_json(named_struct({values}))", case.time)
        streams.append(Stream(name, mapping, case.reading, paths=(f"{name}-?",)))
    trace = ingest([str(tmp_path)], tmp_path / "all.trace", Mapping(""), IngestOptions(streams=streams)).trace
    table = pa.Table.from_batches(trace.batches())
    times = table["ts"].cast(pa.int64()).to_pylist()
    read = list(zip(table["stream"].to_pylist(), times, map(json.loads, table["key"].to_pylist()), strict=True))
    for name, case in CASES.items():
        of_case = [(time, *map(values.get, (case.key, *case.keep))) for stream, time, values in read if stream == name]
        expected = in_order(written[name], case)
        assert of_case == [(row[0], *(None if cell is None else str(cell) for cell in row[1:])) for row in expected]


@soak
@pytest.mark.parametrize("name", CASES)
def test_what_its_tool_wrote_is_what_the_trace_holds_on_any_number_of_tasks(tmp_path, name):
    case = CASES[name]
    rows = put(tmp_path, case)
    sources = sorted(tmp_path.glob("rows-*"))
    traces = [made(sources, tmp_path / f"{parts}.trace", case, parts) for parts in TASKS]
    assert rows_of(traces[0], case) == in_order(rows, case)
    assert len({trace.manifest.content_hash for trace in traces}) == 1
