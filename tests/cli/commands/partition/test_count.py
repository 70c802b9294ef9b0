"""`adapt partition count`: what it shows, what it refuses, and what is built from its counts."""

import json

import duckdb
import pyarrow as pa
import pytest

from tests.traces.small_traces import trace_of_source

ROWS = 300_000


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """A folder with a trace long enough to be purged, one of streams, and none but whole numbers as keys."""
    from adapt.core.stream import KeyType
    from adapt.traces.generators.keyed import zipf_stream
    from adapt.traces.generators.write import generate

    folder = tmp_path_factory.mktemp("counted")
    generate(zipf_stream(rows=ROWS, domain=100_000, rate_per_s=1000), folder / "zipf.trace")
    generate(zipf_stream(rows=1000, domain=100, key_type=KeyType.INT64), folder / "whole.trace")
    rows = {
        "ts": range(1000),
        "key": [f"k{at % 7 if at % 2 else 0}" for at in range(1000)],
        "stream": ["ab"[at % 2] for at in range(1000)],
    }
    trace_of_source(folder / "streams.trace", pa.table(rows))
    return folder


@pytest.fixture
def here(traces, monkeypatch):
    """The folder of traces as the current one."""
    monkeypatch.chdir(traces)
    return traces


@pytest.fixture(scope="module")
def true(traces):
    """The exact counts, by another program."""
    query = f"select key, count(*) from '{traces}/zipf.trace/part-*.parquet' group by key"
    return dict(duckdb.sql(query).fetchall())


def counted(adapt, *options):
    """The JSON document of a count."""
    return adapt.json("partition", "count", *options)


def test_lossy_counts_hold_every_key_in_its_interval_and_miss_none_above_the_threshold(adapt, here, true):
    told = counted(adapt, "zipf.trace", "--epsilon", "1.7647e-4")
    assert (told["schema"], told["counts"], told["rows"]) == ("adapt.frequencies/2", "lossy", ROWS)
    assert told["epsilon"] == pytest.approx(1.7647e-4, rel=1e-3)
    assert 0 < told["complete_above"] <= told["epsilon"] * ROWS
    listed = {row["key"]: (row["count_low"], row["count_high"]) for row in told["top_keys"]}
    assert len(listed) == told["listed"] < len(true)
    assert all(low <= true[key] <= high for key, (low, high) in listed.items())
    assert {key for key, rows in true.items() if rows > told["complete_above"]} <= listed.keys()
    assert told["keys"] == pytest.approx(len(true), rel=0.08)


def test_a_key_that_was_asked_for_is_told_listed_or_not(adapt, here, true):
    told = counted(adapt, "zipf.trace", "--key", "k1", "--key", "no such key")
    asked = {row["key"]: row for row in told["requested_keys"]}
    assert asked["k1"]["count_low"] <= true["k1"] <= asked["k1"]["count_high"]
    assert (asked["no such key"]["count_low"], asked["no such key"]["count_high"]) == (0, told["complete_above"])


def test_the_skew_is_judged_for_the_channels_asked_for(adapt, here):
    few, many = (
        counted(adapt, "zipf.trace", "--channels", channels, "--engine", "uniform") for channels in ("2", "100")
    )
    assert (few["verdict"]["class"], many["verdict"]["class"]) == ("balanced", "needs splitting")
    assert few["verdict"]["engine"] == "uniform"
    assert many["verdict"]["best_possible"] > 5
    assert sum(many["verdict"]["over_time"]["classes"].values()) == 12
    law = few["zipf"]
    assert law["zipf_exponent"] == pytest.approx(1, abs=0.05)
    assert (law["zipf_first_rank"], "rank^-" in law["in_words"]) == (1, True)


def test_hot_keys_over_time(adapt, here, true):
    told = counted(adapt, "zipf.trace", "--over", "time", "--step", "30s")
    lines = told["over_time"]
    assert lines[0]["key"] == "k1"
    assert lines[0]["share"] == pytest.approx(true["k1"] / ROWS, abs=1e-3)
    assert (lines[0]["left"], len(lines[0]["life_line"])) == (None, 10)
    assert lines[0]["hot_steps"] == 10
    assert told["rows"] == ROWS
    shown = adapt.done("partition", "count", "zipf.trace", "--over", "time", "--step", "100000rows").out
    assert "Hot keys over time" in shown
    listed = adapt.done("partition", "count", "zipf.trace", "--all").out
    assert ("Top keys" in listed, "Hot keys" in listed) == (True, False)
    assert "3 steps of 100000rows" in shown


def test_a_sliding_window_holds_the_last_rows(adapt, here):
    told = counted(adapt, "zipf.trace", "--method", "sliding", "--window", "100000rows")
    assert 100_000 <= told["rows"] <= 150_000
    over_time = counted(adapt, "zipf.trace", "--method", "sliding", "--window", "100000rows", "--over", "time")
    assert over_time["rows"] == told["rows"]
    assert counted(adapt, "zipf.trace", "--method", "sliding", "--window", f"{ROWS}rows")["rows"] == ROWS


def test_streams_are_counted_one_by_one(adapt, here):
    told = counted(adapt, "streams.trace", "--over", "stream")
    assert [(row["stream"], row["rows"], row["keys"], row["top_key"]) for row in told["streams"]] == [
        ("a", 500, 1, "k0"),
        ("b", 500, 7, "k1"),
    ]


def test_counts_that_were_kept_say_how_they_were_made(adapt, here, tmp_path):
    line = ("partition", "count", "zipf.trace", "--method", "sliding", "--window", "60s")
    adapt.done(*line, "-o", tmp_path / "last.freq")
    made = json.loads((tmp_path / "last.freq/_manifest.json").read_text())["made"]
    assert made["parameters"] == {
        "method": "sliding",
        "weight": "count",
        "epsilon": pytest.approx(1.7647e-4, rel=1e-3),
        "window": "1m",
        "counters": 3,
        "of_trace": {"columns": ["ts", "key"], "key_columns": ["key"]},
    }
    assert "lossily" in adapt.done("partition", "build", tmp_path / "last.freq", "--channels", 4).err


def test_plans_come_from_lossy_counts_unless_exact_ones_are_asked_for(adapt, here):
    adapt.done("partition", "count", "zipf.trace", "--epsilon", "1.7647e-4", "-o", "lossy.freq")
    build = ("--channels", "10", "--format", "json")
    said = adapt.done("partition", "build", "lossy.freq", *build)
    lossy, exact = json.loads(said.out), json.loads(adapt.done("partition", "build", "zipf.trace", *build).out)
    assert "counted lossily" in said.err
    assert (lossy["parameters"]["counts"], "counts" in exact["parameters"]) == ("lossy", False)
    assert len(lossy["explicit"].keys() & exact["explicit"].keys()) > len(exact["explicit"]) / 2


@pytest.mark.parametrize(
    ("code", "options", "told"),
    [
        (2, "zipf.trace --epsilon 0", "must be between 0 and 1 (got 0)"),
        (2, "zipf.trace --method sliding", "--window need each other"),
        (2, "zipf.trace --method sliding --window 100rows", "must have at least 5,667 rows"),
        (2, "zipf.trace --method sliding --window 1s", "(about 1,000 rows at this stream's rate) must have"),
        (2, "zipf.trace --method sliding --window 2d", "--window 2d is longer than the trace, which has 299"),
        (2, "zipf.trace --over stream", "has no stream column"),
        (2, "zipf.trace --over time --step 1ms", "the limit is 10,000"),
        (2, "zipf.trace --step 1h", "--step needs --over time"),
        (2, "zipf.trace --over time --method exact", "--over needs lossy counting"),
        (2, "zipf.trace --weight cost", "has no cost"),
        (3, "whole.trace --key abc", "int64 keys must be 64-bit integers in decimal (got 'abc')"),
    ],
)
def test_what_cannot_be_counted_is_refused_with_the_remedy(adapt, here, code, options, told):
    assert told in adapt.refused(code, "partition", "count", *options.split())
