"""Real traces through `adapt replay compare`: every mechanism acts; a cluster gives what one machine gives; Ctrl-C."""

import json
import os
import signal
import time

import pytest

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
