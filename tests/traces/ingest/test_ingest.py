"""Ingest as a whole: every row is kept or refused, in one order, the same on any cut of the work."""

import os
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.core.errors import BadInput, UsageError
from adapt.core.stream import KeyType
from adapt.traces.ingest.ingest import IngestOptions, ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.ingest.rejects import MaxRejects
from adapt.traces.ingest.time_sort import take_stock
from adapt.traces.sources.names import FormatName
from adapt.traces.sources.sniff import ReadOptions
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.session import SparkOptions
from adapt.traces.store.trace import open_trace

pytestmark = pytest.mark.usefixtures("spark")

USER = Mapping("user", "ts")
HEADED = IngestOptions(ReadOptions(FormatName.CSV, ",", header=True))


@pytest.fixture(autouse=True)
def usual_settings(spark):
    """Options of one ingest stay in the session; the next test finds it as it was."""
    parts = spark.conf.get("spark.sql.shuffle.partitions")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", parts)


def rows_of(trace):
    return pa.Table.from_batches(trace.batches()).to_pylist()


def rejects_of(trace):
    return pq.read_table(trace.path / "_rejects").to_pylist()


def write(folder, **files):
    """Files by name, each from its lines; their folder."""
    folder.mkdir(exist_ok=True)
    for name, lines in files.items():
        (folder / f"{name}.csv").write_text("".join(f"{line}\n" for line in lines))
    return str(folder)


def second(at):
    return f"2015-05-17T10:00:{at:02d}"


def test_rows_come_in_time_order_and_ties_in_the_order_of_the_source(tmp_path):
    source = write(
        tmp_path / "in",
        b=["ts,user", f"{second(1)},b2", f"{second(0)},b3"],
        a=["ts,user", f"{second(1)},a2", f"{second(1)},a3", f"{second(2)},a4", f"{second(0)},a5"],
    )
    trace = ingest([source], tmp_path / "out", USER, HEADED).trace
    assert [row["key"] for row in rows_of(trace)] == ["a5", "b3", "a2", "a3", "b2", "a4"]
    named = [os.path.join(source, name) for name in ("b.csv", "a.csv")]
    trace = ingest(named, tmp_path / "other", USER, HEADED).trace
    assert [row["key"] for row in rows_of(trace)] == ["b3", "a5", "b2", "a2", "a3", "a4"]


MIXED = [
    "ts,user,cost",
    f"{second(3)},ann,1",
    f"{second(1)},bob,x",
    "soon,carl,1",
    "",
    f"{second(2)},dora",
    f'{second(0)},"e,\nf",2',
    ",gina,1",
    f"{second(5)},,",
]


def test_every_row_is_kept_or_refused_with_file_line_reason_and_text(tmp_path):
    source = write(tmp_path / "in", mixed=MIXED)
    done = ingest([source], tmp_path / "out", Mapping("user", "ts", cost="cost", cost_unit="us"), HEADED)
    assert [(row["key"], row["cost_us"]) for row in rows_of(done.trace)] == [("e,\nf", 2), ("ann", 1), ("", None)]
    assert rejects_of(done.trace) == [
        {"file": "mixed.csv", "line": 3, "reason": "cost is not a number", "text": f"{second(1)},bob,x"},
        {"file": "mixed.csv", "line": 4, "reason": "time cannot be read", "text": "soon,carl,1"},
        {"file": "mixed.csv", "line": 6, "reason": "2 fields instead of 3", "text": f"{second(2)},dora"},
        {"file": "mixed.csv", "line": 9, "reason": "time is missing", "text": ",gina,1"},
    ]
    assert done.rejects.rows == 4
    assert done.rejects.reasons == dict.fromkeys(sorted(done.rejects.reasons), 1)
    assert done.rejects.examples["time is missing"] == [{"file": "mixed.csv", "line": 9, "text": ",gina,1"}]
    assert [row[2] for row in done.rejects.table().rows] == [
        "mixed.csv line 6",
        "mixed.csv line 3",
        "mixed.csv line 4",
        "mixed.csv line 9",
    ]


def test_the_content_hash_is_the_same_for_any_number_of_partitions_and_on_repetition(tmp_path):
    names = [f"u{at * 7919 % 101}" for at in range(600)]
    lines = [f"{second(at * 31 % 60)},{name}" for at, name in enumerate(names)]
    source = write(tmp_path / "in", a=["ts,user", *lines[:300]], b=["ts,user", *lines[300:]])
    hashes, parts = set(), []
    for at, partitions in enumerate([1, 8, 8]):
        options = SparkOptions(conf={"spark.sql.shuffle.partitions": str(partitions)})
        trace = ingest([source], tmp_path / f"{at}.out", USER, HEADED, spark_options=options).trace
        hashes.add(trace.manifest.content_hash)
        parts.append(len(list(trace.path.glob("part-*"))))
    assert len(hashes) == 1
    assert parts[0] == 1
    assert parts[1] == parts[2] > 2


def test_max_rejects_refuses_the_whole_and_leaves_nothing(tmp_path):
    source = write(tmp_path / "in", mixed=MIXED)
    with pytest.raises(BadInput, match=r"3 of 7 rows were rejected, more than --max-rejects .*line 6") as refused:
        ingest([source], tmp_path / "out", USER, replace(HEADED, max_rejects=MaxRejects(2)))
    assert "\n" not in str(refused.value)
    assert os.listdir(tmp_path) == ["in"]
    assert ingest([source], tmp_path / "out", USER, replace(HEADED, max_rejects=MaxRejects(3))).rejects.rows == 3


def test_a_percentage_is_meant_to_the_last_row():
    assert not any(MaxRejects.parse(f"{percent}%").exceeded(percent, 100) for percent in range(101))
    assert all(MaxRejects.parse(f"{percent}%").exceeded(percent + 1, 100) for percent in range(100))


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("0", MaxRejects(0)),
        ("12", MaxRejects(12)),
        ("1%", MaxRejects(None, Fraction(1, 100))),
        ("0.5%", MaxRejects(None, Fraction(1, 200))),
    ],
)
def test_max_rejects_are_rows_or_a_percentage(text, limit):
    assert MaxRejects.parse(text) == limit


@pytest.mark.parametrize("text", ["", "x", "-1", "101%", "%", "1.5", "nan%"])
def test_max_rejects_that_are_neither_are_refused(text):
    with pytest.raises(UsageError, match="must be a number of rows or a percentage"):
        MaxRejects.parse(text)


def test_guesses_are_said_and_kept_in_the_manifest(tmp_path):
    done = ingest([write(tmp_path / "in", a=["ts,user", f"{second(0)},ann"])], tmp_path / "out", Mapping("user"))
    said = ("format csv", "delimiter comma", "a header line", "time from ts", "time format iso")
    assert done.guesses == said
    assert tuple(done.trace.manifest.made.parameters["guesses"]) == said
    assert [source["name"] for source in done.trace.manifest.made.inputs] == ["a.csv"]


def test_parquet_rows_that_are_refused_are_kept_aside_with_row_number_and_json(tmp_path):
    (tmp_path / "in").mkdir()
    times = pa.array([2, None, 1, 3], pa.int64())
    pq.write_table(pa.table({"t": times, "k": [b"x", b"y", None, b"z"], "c": [1.0, 1.0, 2.0, -1.0]}), tmp_path / "in/a")
    mapping = Mapping("k", "t", cost="c", cost_unit="us", time_format="epoch_s")
    done = ingest([str(tmp_path / "in")], tmp_path / "out", mapping)
    assert done.trace.key_type is KeyType.BINARY
    assert [(row["key"], row["cost_us"]) for row in rows_of(done.trace)] == [(None, 2.0), (b"x", 1.0)]
    assert [(row["file"], row["line"], row["reason"]) for row in rejects_of(done.trace)] == [
        ("a", 2, "time is missing"),
        ("a", 4, "cost is negative"),
    ]
    assert '"c": -1.0' in rejects_of(done.trace)[1]["text"]


def test_a_trace_reads_back_as_a_source_and_stays_the_same(tmp_path):
    source = write(tmp_path / "in", a=["ts,user", *(f"{second(at * 7 % 11)},u{at}" for at in range(11))])
    first = ingest([source], tmp_path / "first", USER, HEADED).trace
    second_trace = ingest([str(first.path)], tmp_path / "second", Mapping("key", "ts")).trace
    assert second_trace.manifest.content_hash == first.manifest.content_hash
    assert open_trace(second_trace.path, check_all=True).rows == 11


def test_an_expression_that_gives_another_result_each_time_is_refused(tmp_path, monkeypatch):
    source = tmp_path / "rows.csv"
    source.write_text("ts,key\n1700000000,k\n1700000001,k\n")

    def stock_of_another_time(*arguments):
        stock = take_stock(*arguments)
        return replace(stock, kept=stock.kept - 1)

    monkeypatch.setattr("adapt.traces.ingest.ingest.take_stock", stock_of_another_time)
    with pytest.raises(BadInput, match="1 rows were good at first, but 2 when written"):
        ingest(
            [str(source)],
            tmp_path / "x.trace",
            Mapping("key", "ts"),
            spark_options=SparkOptions(runner=RunnerName.SPARK),
        )
    assert os.listdir(tmp_path) == ["rows.csv"]


@pytest.mark.parametrize("above", ["Orders\n"])
@pytest.mark.usefixtures("spark")
def test_a_header_below_other_lines_is_hinted_at(tmp_path, above):
    (tmp_path / "in.csv").write_text(f'{above}\n"ts",customer\n2024-03-01 10:00:00,u0\n2024-03-01 10:00:01,u1\n')
    line = 2 + above.count("\n")
    for mapping in (Mapping("customer"), Mapping("lower(customer)", "ts")):
        with pytest.raises(UsageError, match=rf"; line {line} has '(customer|ts)': .* `tail -n \+{line} FILE \| adapt"):
            ingest([str(tmp_path / "in.csv")], tmp_path / "x.trace", mapping)


@pytest.mark.parametrize(("first", "rows"), [("ts,,customer", 300), ("ts,id,,customer", 2)])
@pytest.mark.usefixtures("spark")
def test_a_column_that_the_first_line_names_is_hinted_at(tmp_path, first, rows):
    names = first.split(",")
    lines = [
        ",".join(
            {"ts": f"2024-03-01 10:00:{row % 60:02}", "customer": f"u{row}"}.get(name, str(1709287200 + row))
            for name in names
        )
        for row in range(rows)
    ]
    (tmp_path / "in.csv").write_text("\n".join([first, *lines]) + "\n")
    source = str(tmp_path / "in.csv")
    for mapping in (Mapping("customer"), Mapping("lower(customer)", "ts"), Mapping("customer", "_c1")):
        with pytest.raises(UsageError, match=r"first line, which .* has '(customer|ts)': .* `adapt ingest --header`"):
            ingest([source], tmp_path / "x.trace", mapping)
    with pytest.raises(UsageError) as refused:
        ingest(
            [source],
            tmp_path / "x.trace",
            Mapping("nobody"),
            IngestOptions(ReadOptions(columns=tuple("abcd"[: len(names)]))),
        )
    assert "--header" not in str(refused.value)
    made = ingest([source], tmp_path / "x.trace", Mapping("customer"), IngestOptions(ReadOptions(header=True)))
    assert sorted(set(made.to_arrow()["key"].to_pylist())) == sorted({f"u{row}" for row in range(rows)})
