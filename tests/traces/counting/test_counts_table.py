"""Tables of counts: read from any form and names, refused with the line at fault, judged as rows are."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt import verdict
from adapt.core.errors import BadInput, UsageError
from adapt.core.out_of_sample.windows import rows_a_pane
from adapt.core.stream import KeyType, Weight
from adapt.core.values import human
from adapt.core.verdict.hot_keys import HotKeys
from adapt.traces.counting.counts_table import has_counts, read_counts
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.sources.source import Source


def csv(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "counts.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


@pytest.mark.parametrize(
    "text",
    [
        "key,count\nb,1\na,2\n",
        "b,1\na,2\n",
        "\ufeffKey, Count\r\nb,1\r\na,2",
        '\n\nkey,count\n\n"b",1\n"a","2"\n',
        "b,1.0\na,2e0",
    ],
)
def test_a_csv_is_read_with_or_without_its_header(tmp_path, text):
    read = read_counts(csv(tmp_path, text)).frequencies
    assert (read.keys.to_pylist(), read.count_low.tolist(), read.total, read.rows) == (["a", "b"], [2, 1], 3.0, 3)
    assert read.count_low.dtype == np.int64


def test_keys_may_hold_commas_quotes_and_line_ends(tmp_path):
    assert read_counts(csv(tmp_path, '"a,b",1\n"say ""no""",2\n"x\ny",3\n,4\n')).frequencies.keys.to_pylist() == [
        "",
        "x\ny",
        'say "no"',
        "a,b",
    ]


def test_further_columns_are_measured_by_their_headings(tmp_path):
    path = csv(tmp_path, "key,count,note,state bytes\nb,1,x,2.5\na,2,,0\n")
    read = read_counts(path, measured=["state bytes", "count"]).frequencies
    assert read.keys.to_pylist() == ["a", "b"]
    assert read.column("state bytes").values.tolist() == [0, 2.5]
    assert (read.column("state bytes").total, read.column("count").values.tolist()) == (2.5, [2, 1])
    assert read_counts(path).frequencies.measured == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("key,count,x\na,1,2\nb,1\n", "line 3: 2 fields instead of 3"),
        ("key,count,x\na,1,2\nb,1,-2\n", "line 3: the x must be a number, at least 0 (got '-2')"),
        ("key,count,x\n\na,1,much\n", "line 3: the x must be a number, at least 0 (got 'much')"),
        ("key,count,x\na,1,\n", "line 2: the x must be a number, at least 0 (got '')"),
        ("key,count,x\na,1,nan\n", "line 2: the x must be a number, at least 0 (got 'nan')"),
        ("key,count,x\na,1,1e308\nb,1,1e308\n", "the sum of column x is inf; it must be below 2^63"),
    ],
)
def test_a_bad_row_of_a_measured_column_is_refused_with_its_line(tmp_path, text, told):
    with pytest.raises(BadInput) as refused:
        read_counts(csv(tmp_path, text), measured=["x"])
    assert told in str(refused.value)
    assert "counts.csv" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("key,count\na,1\nb\n", "line 3: 1 fields instead of 2"),
        ("a,1,2\n", "line 1: expected 2 fields: key, count (got 3)"),
        ("a,1\nb,many\n", "line 2: the count must be a number, at least 0 (got 'many')"),
        ("b,1\na,-1\n", "line 2: the count must be a number, at least 0 (got '-1')"),
        ("b,1\na,nan\n", "line 2: the count must be a number, at least 0 (got 'nan')"),
        ("b,1\na,inf\n", "line 2: the count must be a number, at least 0 (got 'inf')"),
        ("b,1\na,1_000\n", "line 2: the count must be a number, at least 0 (got '1_000')"),
        ("b,1\na,\n", "line 2: the count must be a number, at least 0 (got '')"),
        ('a,1\n"b,1\n', "line 2: a quote is never closed"),
        ("key,count\na,50%\nb,50%\n", "line 2: the count must be a number, at least 0 (got '50%'); give counts, not"),
        ("key,share,count\na,x,50.5\nb,y,49.5\n", "column count sums to 100, as shares do; give counts"),
        ("user,region,n\na,x,1\n", "'user' and 'region' may each be the key; name one with --key"),
        ("key,hits,requests\na,1,1\n", "'hits' and 'requests' may each be the count of a key; name one with --count"),
        ("key,host\na,x\n", "no column is the count of a key"),
        ("key,count,day\na,1,May\n", "line 2: the day cannot be read as a time (got 'May'); write it as 2024-03-01"),
        ("", "has no rows"),
        ("key,count\n", "has no rows"),
        ("a,1e308\nb,1e308\n", "the sum of column count is inf; it must be below 2^63"),
        (b"a,1\n\xff,1\n", "line 2: not UTF-8 text"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(tmp_path, text, told):
    with pytest.raises(BadInput) as refused:
        read_counts(csv(tmp_path, text))
    assert told in str(refused.value)
    assert "counts.csv" in str(refused.value)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    ("text", "key_type", "told"),
    [
        ("1,1\n01,1\n", KeyType.INT64, "line 2: int64 keys must be 64-bit integers in decimal (got '01')"),
        ("key,count\n1,1\nx,1\n", KeyType.INT64, "line 3: int64 keys must be 64-bit integers in decimal (got 'x')"),
        ("abc,1\n", KeyType.BINARY, "line 1: binary keys must be bytes in hex (got 'abc')"),
    ],
)
def test_a_bad_key_of_a_type_is_refused_with_its_line(tmp_path, text, key_type, told):
    with pytest.raises(BadInput) as refused:
        read_counts(csv(tmp_path, text), key_type)
    assert told in str(refused.value)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), st.integers(0, 2**53), min_size=1, max_size=8))
def test_any_text_is_a_key(tmp_path_factory, counts):
    import csv as csv_module

    path = tmp_path_factory.mktemp("csv") / "counts.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv_module.writer(file).writerows([("key", "count"), *counts.items()])
    read = read_counts(path).frequencies
    assert dict(zip(read.keys.to_pylist(), read.count_low.tolist(), strict=True)) == counts


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "host;requests\na;5\nb;3\ntotal;8\n",
            ["key from host, count from requests", "ignored the row 'total', the sum of the other keys"],
        ),
        ("n\tuser_id\n5\ta\n3\tb\n", ["key from user_id, count from n"]),
        ("key,count\na,2\nb,3\na,3\n", ["1 row had the key of an earlier one; their counts are summed"]),
        ("COUNT(*),key,size\n5,a,1\n3,b,1\n", ["count from COUNT(*)"]),
        ("key,count\ntotal,5\nb,3\n", []),
    ],
)
def test_names_are_guessed_and_what_is_summed_or_left_out_is_said(tmp_path, caplog, text, said):
    keys = read_counts(csv(tmp_path, text)).frequencies
    assert keys.count_low.tolist() == [5, 3]
    assert [told for told in said if told not in caplog.text] == []
    assert bool(caplog.text) is bool(said)


def test_every_form_of_the_same_counts_is_read_alike(tmp_path):
    table = pa.table({"key": ["a", "b"], "count": [5, 3], "day": ["2024-01-01", "2024-01-02"]})
    pq.write_table(table, tmp_path / "c.parquet")
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    csv(tmp_path, "day,key,count\n2024-01-01,a,5\n2024-01-02,b,3\n")
    for source in (tmp_path / "c.parquet", tmp_path / "c.jsonl", tmp_path / "counts.csv", table):
        read = read_counts(source)
        assert (read.frequencies.keys.to_pylist(), read.frequencies.count_low.tolist()) == (["a", "b"], [5, 3])
        assert read.panes == ()  # too few rows for windows


def test_keys_of_numbers_keep_their_type():
    table = pa.table({"id": pa.array([7, 8], pa.int32()), "count": [1, 2]})
    assert read_counts(table).frequencies.key_type is KeyType.INT32
    with pytest.raises(BadInput, match="key id has type double; give it as text"):
        read_counts(pa.table({"id": [0.5], "count": [1]}))


def test_rows_are_not_taken_for_counts(tmp_path):
    for text, found in [
        ("user,n\na,1\nb,2\n", True),
        ("hour,user,n\n1,a,1\n1,b,2\n2,a,1\n2,b,1\n", True),
        ("user,amount\na,1\nb,2\n", False),
        ("user,n\na,1\na,2\n", False),
        ("ts,user,n\n1,a,1\n2,b,2\n3,a,2\n", False),  # each row has its own time
    ]:
        assert has_counts(str(csv(tmp_path, text)), Mapping("user")) is found


def test_counts_by_window_are_judged_as_their_rows_are(adapt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(5)
    keys = np.concatenate([random.zipf(1.3 + at / 40, 2500) % 400 for at in range(10)])
    time = (np.datetime64("2024-03-01T00:00:00") + np.arange(len(keys))).astype(str)
    (tmp_path / "rows.csv").write_text("time,key\n" + "".join(f"{t},k{k}\n" for t, k in zip(time, keys, strict=True)))
    window = np.arange(len(keys)) // rows_a_pane(len(keys))
    pairs, counts = np.unique(np.stack([window, keys]), axis=1, return_counts=True)
    lines = (f"{time[np.argmax(window == w)]},k{k},{n}\n" for (w, k), n in zip(pairs.T, counts, strict=True))
    (tmp_path / "counts.csv").write_text("window,user,n\n" + "".join(lines))
    for engine in ("kafka", "flink", "spark"):
        asked = ("--engine", engine, "--channels", 8, "--format", "json", "--force")
        rows = json.loads(adapt.done("verdict", "rows.csv", "--key", "key", *asked).out)
        own = json.loads(adapt.done("verdict", "counts.csv", "--key", "user", "--count", "n", *asked).out)
        for of in (rows["verdict"], own["verdict"]):  # only rows have other columns
            of["remedies"] = [each for each in of["remedies"] if each["way"] != "another key"]
            of["sentence"] = of["sentence"].replace("Of 2 columns judged as keys, none is better. ", "")
        for same in ("status", "verdict", "hot_keys", "channels_before_and_after", "frontier"):
            assert own[same] == rows[same], same


@pytest.mark.parametrize(
    ("texts", "starts"),
    [
        (["3", "4"], ["3", "4"]),
        (["20240301", "20240302"], ["2024-03-01T00:00:00Z", "2024-03-02T00:00:00Z"]),
        (["01.03.2024 10:00", "01.03.2024 11:00"], ["2024-03-01T10:00:00Z", "2024-03-01T11:00:00Z"]),
        (
            ["2024-03-01 10:00:00,5", "2024-03-01 11:00:00,5"],
            ["2024-03-01T10:00:00.500000Z", "2024-03-01T11:00:00.500000Z"],
        ),
        (["1709287200", "1709290800"], ["2024-03-01T10:00:00Z", "2024-03-01T11:00:00Z"]),
    ],
)
def test_windows_have_the_times_of_their_rows_or_their_numbers(tmp_path, texts, starts):
    lines = [f'"{text}";k{key};{1000 // key}\n' for text in texts for key in range(1, 20)]
    read = read_counts(csv(tmp_path, "window;key;count\n" + "".join(lines)))
    shown = HotKeys.from_counts(read.frequencies, read.panes).lines_table()
    column = shown.columns[2]
    assert [human(cell, column) for cell in dict.fromkeys(shown.values("start"))] == starts


LOADS = "key,count,busy,size\na,5,2,10\nb,3,4,30\na,1,1,2\n"


@pytest.mark.parametrize(
    ("mapping", "weight", "keys", "loads"),
    [
        (Mapping(""), Weight.COUNT, ["a", "b"], [6, 3]),
        (Mapping("", cost="busy", cost_unit="ms"), Weight.COST, ["b", "a"], [4000, 3000]),
        (Mapping("key", bytes="size"), Weight.BYTES, ["b", "a"], [30, 12]),
    ],
)
def test_keys_weigh_by_a_named_cost_or_size(tmp_path, mapping, weight, keys, loads):
    found = read_counts(csv(tmp_path, LOADS), mapping=mapping, count="count").frequencies
    assert (found.weight, found.rows, found.keys.to_pylist()) == (weight, 9, keys)
    assert (found.count_low.tolist(), found.total) == (loads, sum(loads))


def test_counts_of_a_sketch_are_within_their_errors(tmp_path, caplog):
    text = "Partition|Count|+/-\na|90|60\nb|80|10\nc|15|14\n"
    found = read_counts(csv(tmp_path, text)).frequencies
    assert found.keys.to_pylist() == ["b", "a", "c"]
    assert (found.count_low.tolist(), found.count_high.tolist()) == ([70, 30, 1], [80, 90, 15])
    assert (found.total, found.complete_above, found.exact) == (185, 15, False)
    assert "each count may be too high by its error" in caplog.text
    with pytest.raises(UsageError, match=r"--bytes: .* has errors of its counts \(\+/-\), not of bytes; omit it"):
        read_counts(tmp_path / "counts.csv", mapping=Mapping("Partition", bytes="Count"), count="Count")
    with pytest.raises(BadInput, match=r"line 3: the \+/- must be a number, at least 0 \(got 'x'\)"):
        read_counts(csv(tmp_path, text.replace("|10", "|x")))


def test_a_file_of_rows_is_read_no_further_than_its_first_ones(tmp_path, monkeypatch):
    path = csv(tmp_path, "user,n\n" + "a,1\n" * 3)
    monkeypatch.setattr(Source, "_survey", lambda _: pytest.fail("hashed"))
    assert not has_counts(str(path), Mapping("user"))


def test_counts_go_wherever_counted_keys_do(adapt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    csv(tmp_path, "user;n\n" + "".join(f"u{at};{1000 // at}\n" for at in range(1, 200)))
    for line in (
        "verdict counts.csv --channels 4",
        "partition compare counts.csv --channels 4",
        "partition build counts.csv --channels 4 -o x.plan",
        "advise salts counts.csv --parallelism 4",
        "check counts.csv --channels 4 --limit imbalance<9",
        "report counts.csv",
    ):
        assert "guessed: key from user, count from n" in adapt.done(*line.split()).err
    judged = verdict(read_counts(tmp_path / "counts.csv").frequencies, channels=4)
    assert judged.as_data() == verdict("counts.csv", channels=4).as_data()
    assert "4 rules checked; the others need rows with times" in adapt.done("lint", "counts.csv").err
    assert "--dedup has no effect" in adapt.refused(2, "verdict", "counts.csv", "--dedup", "x", "--channels", 4)


PRINTED = {
    "nodetool": "WRITES Sampler:\n  Cardinality: ~9 (9 capacity)\n  Top 2 partitions:\n"
    "\tPartition                Count       +/-\n\tuser 1                      60        10\n\tb  40  4\n\n",
    "psql": " tenant | row_count \n--------+-----------\n user 1 |        60 \n b      |        40 \n(2 rows)\n",
}


@pytest.mark.parametrize("text", PRINTED.values(), ids=PRINTED)
def test_tables_are_read_as_programs_print_them(tmp_path, text):
    path = csv(tmp_path, text)
    assert has_counts(str(path), Mapping(""))
    found = read_counts(path).frequencies
    assert (found.keys.to_pylist(), found.count_high.tolist()) == (["user 1", "b"], [60, 40])
    for wrong, told in (
        (text + text, "has several tables; keep one"),
        (text.replace("user 1 ", "user    1"), "fields"),
    ):
        with pytest.raises(BadInput, match=told):
            read_counts(csv(tmp_path, wrong))


def test_keys_of_several_columns_are_those_of_a_trace(adapt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [("de", "x"), ("de", 'y"ü'), ("fr", "x")]
    chosen = [row for row, times in zip(rows, (40, 30, 20), strict=True) for _ in range(times)]
    pq.write_table(
        pa.table({"country": [row[0] for row in chosen], "city": [row[1] for row in chosen]}), "rows.parquet"
    )
    counts = pa.table({"country": [r[0] for r in rows], "city": [r[1] for r in rows], "n": [40, 30, 20]})
    asked = {"key": "country,city", "engine": "spark", "channels": 2}
    assert verdict(counts, **asked).as_data() == verdict("rows.parquet", **asked).as_data()
    pq.write_table(counts, "counts.parquet")
    assert "may each be the key; name one with --key" in adapt.refused(3, "verdict", "counts.parquet", "--channels", 2)
    said = adapt.done("verdict", "counts.parquet", "--key", "country", "--channels", 2)
    assert "if column n holds the count of each row, add --count n" in said.err


def test_logs_with_words_of_counts_are_not_tables(adapt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    csv(tmp_path, "".join(f"2024-03-14T10:05:0{at}Z  web{at}  events  sent{'  5' * at}\n" for at in range(4)))
    assert not has_counts("counts.csv", Mapping("_c1"))
    assert "--key is required" in adapt.refused(2, "verdict", "counts.csv", "--channels", 2)
