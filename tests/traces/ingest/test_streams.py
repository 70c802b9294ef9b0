"""Several streams in one trace, by a mapping in a file: files and rows each read and mapped in their own way."""

import gzip
import json
from itertools import starmap

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.traces.store.trace import open_trace
from tests.traces.sources.kcat_printing import Message, envelope

US = 1_000_000


def rows_of(trace, *names):
    table = pa.Table.from_batches(trace.batches())
    times = (table["ts"].cast(pa.int64()).to_numpy() // US).tolist()
    return list(zip(times, *(table[name].to_pylist() for name in names), strict=True))


@pytest.fixture
def folder(tmp_path):
    """Sources of five formats: everything of one second, 1,000 to 1,004, in its own clock and zone."""
    (tmp_path / "east.csv").write_text("when,user,n\n1970-01-01 01:16:40,ann,1\nsoon,eve,2\n")
    (tmp_path / "west.csv").write_text("uid;seconds;more\nbob;999;x\n")
    (tmp_path / "app.jsonl.gz").write_bytes(gzip.compress(b'{"at": 1002000, "who": {"id": "carl"}}\n'))
    pq.write_table(
        pa.table({"t": pa.array([1003 * US], pa.timestamp("us", "UTC")), "u": ["dora"]}), tmp_path / "d.parquet"
    )
    sent = [Message(key, b"{}", at, at, 1_004_000) for at, key in enumerate((b"emil", None, b"skip", b"other"))]
    (tmp_path / "topic.json").write_text("".join(map(envelope, sent)))
    return tmp_path


MAPPING = """
keep = ["n"]
time-zone = "UTC"

[[stream]]
name = "east"
paths = "east*"
key = "user"
time = "when"
time-zone = "Europe/Berlin"

[[stream]]
name = "west"
paths = ["nowhere", "west.csv"]
key = "uid"
time = "seconds"
time-format = "epoch_s"
shift-clock = "2s"

[[stream]]
name = "app's"
paths = "*.jsonl.gz"
key = "who.id"
time = "at"
time-format = "epoch_ms"

[[stream]]
name = "table"
paths = "*.parquet"
key = "u"

[[stream]]
name = "nulls"
paths = "topic.*"
where = "key is null"
key = "key"

[[stream]]
name = "keyed"
paths = "topic.*"
where = "key not like 'skip%' and partition < 2"
key = "upper(key)"
"""


def test_streams_of_one_file_each_have_their_own_format_zone_clock_and_expressions(adapt, spark, folder, tmp_path):
    (tmp_path / "m.toml").write_text(MAPPING)
    names = ("east.csv", "west.csv", "app.jsonl.gz", "d.parquet", "topic.json")
    line = ("ingest", *(folder / name for name in names), "--mapping", tmp_path / "m.toml", "-o", tmp_path / "t.trace")
    said = json.loads(adapt.done(*line, "--json", "--spark-conf", "spark.sql.shuffle.partitions=3").out)
    trace = open_trace(tmp_path / "t.trace")
    assert rows_of(trace, "key", "stream", "n", "partition") == [
        (1000, "ann", "east", "1", None),
        (1001, "bob", "west", None, None),
        (1002, "carl", "app's", None, None),
        (1003, "dora", "table", None, None),
        (1004, "EMIL", "keyed", None, None),
        (1004, None, "nulls", None, 1),
    ]
    rejects = pq.read_table(trace.path / "_rejects").to_pylist()
    assert [(row["file"], row["line"], row["reason"]) for row in rejects] == [
        ("east.csv", 3, "time cannot be read"),
        ("topic.json", 3, "matches no stream of the mapping"),
        ("topic.json", 4, "matches no stream of the mapping"),
    ]
    assert "soon,eve,2" in rejects[0]["text"]
    assert '"key":"skip"' in rejects[1]["text"]
    assert said["rows"] == 6
    streams = trace.manifest.made.parameters["streams"]
    told = [(of["name"], of["time_zone"], of["time_format"], of["mapping"]["time"]) for of in streams]
    assert told[:3] == [
        ("east", "Europe/Berlin", "iso", "when"),
        ("west", "UTC", "epoch_s", "seconds"),
        ("app's", "UTC", "epoch_ms", "at"),
    ]
    assert told[4] == ("nulls", "UTC", "epoch_ms", "ts")
    assert trace.manifest.made.parameters["cleaning"]["clock_shifts"] == [{"streams": "west", "forward_us": 2 * US}]


def test_files_with_headers_of_their_own_are_one_table_by_name(adapt, spark, tmp_path):
    contents = {"a": "ts,user,x\n1000,ann,1\n", "b": "user,y,ts\nbob,2,1001\n", "c": "ts;user\n1002;carl\n"}
    for name, text in contents.items():
        (tmp_path / f"{name}.csv").write_text(text)
    line = ("ingest", *(tmp_path / f"{name}.csv" for name in contents), "--key", "user", "--time", "ts")
    adapt.done(*line, "--time-format", "epoch_s", "--keep", "x", "--keep", "y", "-o", tmp_path / "t.trace")
    assert rows_of(open_trace(tmp_path / "t.trace"), "key", "x", "y") == [
        (1000, "ann", "1", None),
        (1001, "bob", None, "2"),
        (1002, "carl", None, None),
    ]


STREAM = '[[stream]]\nname = "a"\nkey = "user"\ntime = "ts"\n'
ODD_FILES = {
    "no TOML": ("key = \n", 3, "m.toml is not valid TOML: Invalid value (at line 1, column 7)"),
    "an unknown field": ('keys = "a"\n', 3, "m.toml has an unknown field 'keys'; did you mean 'key'?"),
    "a stream without a name": ("[[stream]]\n", 3, "m.toml: one [[stream]] has no name; add name = ..."),
    "two streams of a name": (STREAM * 2, 3, "m.toml: two streams are named 'a'"),
    "paths that fit nothing": (f'{STREAM}paths = "b*"\n', 3, "rows.csv matches no [[stream]] of the mapping"),
    "a stream without files": (
        STREAM + STREAM.replace('"a"', '"b"'),
        3,
        "stream 'b' of the mapping has no file: earlier streams take all that its paths match",
    ),
    "a file read in two ways": (
        f'{STREAM}where = "true"\nformat = "csv"\n' + STREAM.replace('"a"', '"b"'),
        3,
        "rows.csv has two formats, in the streams 'a' and 'b'",
    ),
    "a clock of a pattern": (
        f'{STREAM.replace("a", "a*", 1)[:0]}[[stream]]\nname = "a*"\nshift-clock = "1s"\n',
        3,
        "must not contain * or ?",
    ),
    "a cost without a unit": (f'{STREAM}cost = "n"\n', 2, "m.toml: stream 'a': --cost 'n' needs a unit"),
    "--stream beside streams": ('stream = "x"\n', 2, "--key is required"),
}


@pytest.mark.parametrize("name", ODD_FILES)
def test_a_mapping_that_cannot_be_meant_is_refused_in_a_sentence(adapt, tmp_path, name):
    text, code, says = ODD_FILES[name]
    (tmp_path / "m.toml").write_text(text)
    (tmp_path / "rows.csv").write_text("ts,user\n1700000000,ann\n")
    line = ("ingest", tmp_path / "rows.csv", "--mapping", tmp_path / "m.toml", "-o", tmp_path / "t.trace")
    assert says in adapt.refused(code, *line)
    assert not (tmp_path / "t.trace").exists()


@pytest.mark.parametrize(
    ("second", "says"),
    [
        ('key = "usr"', "stream 'b': --key 'usr': column 'usr' does not exist; did you mean 'user'?"),
        ('key = "length(user)"', "the key is string in one stream and int32 in another; convert both to one type"),
        ('where = "user"', "stream 'b': where 'user' has type string; it must be boolean"),
        ('time-zone = "Mars"', "stream 'b': unknown time zone 'Mars'"),
    ],
)
def test_a_stream_that_does_not_fit_its_rows_is_named(adapt, spark, tmp_path, second, says):
    fields = {"key": '"user"', "time": '"ts"'}
    fields.pop(second.split(" =")[0], None)
    more = "\n".join(starmap("{} = {}".format, fields.items()))
    (tmp_path / "m.toml").write_text(f'{STREAM}where = "user = \'ann\'"\n[[stream]]\nname = "b"\n{more}\n{second}\n')
    (tmp_path / "rows.csv").write_text("ts,user\n1700000000,ann\n1700000000,bob\n")
    line = ("ingest", tmp_path / "rows.csv", "--mapping", tmp_path / "m.toml", "-o", tmp_path / "t.trace")
    assert says in adapt.refused(2, *line)
