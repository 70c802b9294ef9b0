"""Real traces: verdicts, and every mechanism."""

import gzip
import json
import os
import signal
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pytest

from adapt.core.counting.exact import count_keys, frequencies_of
from adapt.core.engines.names import Engine
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.verdict.stream_verdict import judge
from adapt.core.verdict.verdict_class import VerdictClass
from adapt.traces.store.runs import read_run
from tests.journeys.processes import standalone, started
from tests.tiers import soak
from tests.traces.replay.test_compare import acted

VENUE = "regexp_extract(_path, '(oanda|fxcm)', 1)"
PAIR = f"concat({VENUE}, ':', regexp_extract(_path, 'tick/([a-z]+)/', 1))"
QUOTED = (
    "timestamp_micros(unix_micros(to_timestamp(regexp_extract(_path, '([0-9]{8})_quote', 1), 'yyyyMMdd'))"
    f" + bigint(round((double(_c0) + if({VENUE} = 'fxcm', 5 * 3600000, 0)) * 1000)))"
)
WEBLOG = ("weblog-2015/apache_logs", "--format", "clf", "--key", "host")
STREAMS = {
    "messages": ("messages/CollegeMsg.txt", "--no-header", "--key", "_c0", "--time", "_c2", "--time-format", "epoch_s"),
    "weblog": WEBLOG,
    "reviews": ("reviews/anonreviews.csv.bz2", "--key", "vendorId"),
    "fx-ticks": ("fx-ticks", "--format", "csv", "--no-header", "--key", PAIR, "--time", QUOTED),
}
CHANNELS = {"fx-ticks": 4}


def ingested(adapt, real_traces, tmp_path, name, streams=STREAMS):
    source, *options = streams[name]
    trace = tmp_path / f"{name}.trace"
    separated = real_traces(source)
    if name == "messages":
        separated = tmp_path / "messages.csv"
        separated.write_text(real_traces(source).read_text().replace(" ", ","))
    adapt.done("ingest", separated, *options, "-o", trace)
    return trace


@soak
@pytest.mark.parametrize("name", list(STREAMS))
def test_every_mechanism_acts_on_a_stream_that_saturates_uniform(adapt, spark, real_traces, tmp_path, name):
    trace = ingested(adapt, real_traces, tmp_path, name)
    line = ["--channels", CHANNELS.get(name, 8), "-o", tmp_path / "x.run", "--format", "json"]
    document = json.loads(adapt.done("replay", "compare", trace, *line).out)
    rows = document["scenarios"]
    assert len(rows) >= 8
    assert rows[0]["scenario"] == "static-uniform"
    assert rows[0]["load"] == pytest.approx(1.2, rel=1e-6)
    assert rows[0]["drain"] > 0.1 * document["summary"]["seconds"]
    assert [row["scenario"] for row in rows if not acted(row)] == []
    assert document["summary"]["verdict"]


EIGHT = ("static-consistent", "static-hybrid", "split-pkg", "flux-load", "rebuild", "elastic", "flux-shed")


@soak
def test_a_standalone_cluster_of_two_workers_gives_what_one_machine_gives(adapt, spark, real_traces, tmp_path):
    trace = ingested(adapt, real_traces, tmp_path, "weblog")
    named = [f"--scenario={name}" for name in EIGHT]

    def told_by(master, out):
        line = ["replay", "compare", trace, *named, "--master", master, "-o", tmp_path / out, "--format", "json"]
        with started(line) as child:
            said, err = child.communicate()
        assert child.returncode == 0, err
        return json.loads(said)

    here = told_by("local[2]", "here.run")
    assert len(here["scenarios"]) == 8
    with standalone(tmp_path) as master:
        there = told_by(master, "there.run")
    assert there == here
    for name in ("static-uniform", *EIGHT):
        first, second = (read_run(tmp_path / run / f"{name}.run") for run in ("here.run", "there.run"))
        assert first.manifest.content_hash == second.manifest.content_hash


@soak
def test_after_ctrl_c_what_is_done_is_not_run_again(adapt, spark, real_traces, tmp_path):
    trace = ingested(adapt, real_traces, tmp_path, "weblog")
    line = ["replay", "compare", trace, "--jobs", 2, "-o", tmp_path / "x.run"]
    kept = tmp_path / ".x.run.scenarios"
    with started(line, start_new_session=True) as child:
        while len(list(kept.glob("*.run"))) < 3:
            assert child.poll() is None, child.stderr.read()
            time.sleep(0.05)
        os.killpg(child.pid, signal.SIGINT)
        _, err = child.communicate()
    assert child.returncode == 130
    assert "Traceback" not in err
    assert not (tmp_path / "x.run").exists()
    done = {path.name: (path / "_manifest.json").stat().st_mtime_ns for path in kept.glob("*.run")}
    assert 3 <= len(done) < 16
    adapt.done(*line)
    for name, written in done.items():
        assert (tmp_path / "x.run" / name / "_manifest.json").stat().st_mtime_ns == written
    assert not kept.exists()


def edits(path: Path, column: str) -> pa.ChunkedArray:
    with gzip.open(path) as source:
        return pyarrow.json.read_json(source).column(column)


def lines(path: Path, column: int, delimiter: str = ",") -> pa.ChunkedArray:
    kind = path.suffix.lstrip(".")
    opened = pa.input_stream(str(path), compression={"bz2": "bz2", "gz": "gzip"}.get(kind))
    read = pyarrow.csv.ReadOptions(autogenerate_column_names=True)
    return pyarrow.csv.read_csv(opened, read, pyarrow.csv.ParseOptions(delimiter=delimiter)).column(column)


def hosts(path: Path, part: int) -> pa.Array:
    text = pa.array(path.read_text(errors="replace").splitlines())
    return pc.list_element(pc.split_pattern(text, " "), part)


NONE, PLACED, OTHER = {VerdictClass.BALANCED}, {VerdictClass.PINNING}, {VerdictClass.ANOTHER_KEY}
WHOLE = NONE | PLACED
"""Whole keys can be even; whether they are, the hash of the engine decides."""

WIKI, REVIEWS = "wiki-edits/wikiticker-2015-09-12-sampled.json.gz", "reviews/anonreviews.csv.bz2"
FLIGHTS, WEBLOG_FILE, TAXI = "flights/flights.csv.gz", "weblog-2015/apache_logs", "taxi/taxi-traces.csv"


def words(path: Path, column: int) -> pa.ChunkedArray:
    return lines(path, column, " ")


@pytest.mark.parametrize(
    ("file", "read", "column", "at_8", "at_10"),
    [
        (WIKI, edits, "channel", OTHER, OTHER),
        (WIKI, edits, "user", PLACED, PLACED),
        (WIKI, edits, "page", NONE, NONE),
        (REVIEWS, lines, 1, PLACED, PLACED),
        (REVIEWS, lines, 0, NONE, NONE),
        (FLIGHTS, lines, 11, PLACED, PLACED),
        (FLIGHTS, lines, 10, OTHER, OTHER),
        (FLIGHTS, lines, 8, NONE, NONE),
        (WEBLOG_FILE, hosts, 0, WHOLE, WHOLE),
        (WEBLOG_FILE, hosts, 6, PLACED, PLACED),
        ("messages/CollegeMsg.txt", words, 0, WHOLE, WHOLE),
        ("messages/CollegeMsg.txt", words, 1, WHOLE, WHOLE),
        (TAXI, lines, 1, PLACED, PLACED),
    ],
)
def test_the_action_is_named(real_traces, file, read, column, at_8, at_10):
    keys = pc.cast(read(real_traces(file), column), pa.string())
    frequencies = frequencies_of(count_keys(keys))
    for channels, classes in ((8, at_8), (10, at_10)):
        found = judge(frequencies, make_partitioner(Engine.SPARK, channels), "spark")
        assert found.verdict_class in classes, found.sentences
        if found.verdict_class is VerdictClass.PINNING:
            assert found.imbalance_after <= found.max_imbalance
