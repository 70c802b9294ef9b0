"""The journey of the README with every path in an object store; and where its credentials show."""

import json
import os
import random
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapt.traces.locations.location import is_stored, location
from examples.object_store import ACCESS_KEY, SECRET_KEY
from tests.journeys.processes import bare_python, connect_server, standalone
from tests.tiers import SOAK, soak

ADAPT = Path(sys.executable).with_name("adapt")
CHANNELS = "1:10" if SOAK else "3"
LINES = 200_000 if SOAK else 400

JOURNEY = (
    "ingest {}/access.log --source-format clf --key host --bytes bytes -o {}/web.trace",
    "partition count {}/web.trace -o {}/web.freq",
    "partition compare {}/web.trace --channels CHANNELS -o {}/web.plans",
    "partition build {}/web.trace --channels 3 -o {}/web.plan",
    "partition evaluate {}/web.trace {}/web.plan --format json",
    "replay repartition {}/web.trace --channels 3 --period 6h -o {}/web.run",
    "report {}/web.trace {}/web.plans {}/web.run --html {}/web.html",
)


def lines_at(place: str) -> list[list[str]]:
    return [line.replace("{}", place).replace("CHANNELS", CHANNELS).split() for line in JOURNEY]


def log(lines: int) -> bytes:
    """A web log whose hosts are visited unevenly, with a line that is no request."""
    chance = random.Random(28)
    rows = [
        f"host-{int(chance.paretovariate(0.8))} - - [{10 + at * 2 // lines}/Oct/2000:{at * 24 // lines % 24:02d}:55:36"
        f' +0000] "GET /{at} HTTP/1.0" 200 {at % 5000}\n'
        for at in range(lines)
    ]
    return "".join([*rows, "no request\n"]).encode()


def contents(place: Path) -> dict[str, str]:
    """Content hashes of all artefacts there; plans have one too."""
    found = {}
    for path in sorted(place.rglob("*")):
        name = str(path.relative_to(place))
        if path.name in ("_manifest.json", "web.plan") and "adapt-counts" not in name:
            found[name] = json.loads(path.read_bytes())["content_hash"]
    return found


@pytest.mark.usefixtures("spark")
def test_the_journey_in_a_store_gives_what_it_gives_on_a_disk(adapt, bucket, tmp_path):
    told = {}
    for place in (tmp_path, bucket):
        (place / "access.log").write_bytes(log(LINES))
        said = [adapt.done(*line).out for line in lines_at(str(place).rstrip("/"))]
        told[is_stored(place)] = said[4].replace(str(place).rstrip("/"), "")
    assert contents(bucket) == contents(tmp_path)
    assert len(contents(bucket)) >= 5
    assert told[True] == told[False]
    assert len((bucket / "web.html").read_bytes()) > 10_000


RUN = "import json, sys; from adapt.cli.main import run; sys.exit(sum(map(run, json.loads(sys.argv[1]))))"
"""Runs command lines in one process, with one Spark."""


@contextmanager
def cluster(kind, folder, python):
    """The option for a cluster with a Python."""
    if kind == "connect":
        with connect_server(folder, python) as address:
            yield ["--master", address]
    else:
        with standalone(folder) as master:
            yield ["--master", master]


@soak
@pytest.mark.parametrize("kind", ["standalone", "connect"])
def test_a_cluster_with_pyspark_alone_gives_what_one_machine_gives(s3_server, tmp_path, monkeypatch, kind):
    """Its workers share no disk with the store, have no credentials, and nothing of ours."""
    monkeypatch.setenv("PYSPARK_PYTHON", python := bare_python(tmp_path / "bare"))
    with cluster(kind, tmp_path, python) as there:
        for name, value in s3_server.environment.items():
            monkeypatch.setenv(name, value)
        bucket = f"cluster-{kind}"
        s3_server.create(bucket)
        found = []
        for place, options in (
            (str(tmp_path / "here"), []),
            (str(tmp_path / "there"), there),
            (f"s3://{bucket}", there),
        ):
            if not is_stored(location(place)):
                location(place).mkdir()
            (location(place) / "access.log").write_bytes(log(LINES))
            lines = [[*line, *(options if line[0] in ("ingest", "partition") else ())] for line in lines_at(place)]
            done = subprocess.run([sys.executable, "-c", RUN, json.dumps(lines)], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            found.append(contents(location(place)))
    assert found[1] == found[2] == found[0]
    assert len(found[0]) >= 5
    logged = [path.read_text(errors="replace") for path in tmp_path.glob("*.log")]
    assert not any(text in each for each in logged for text in (ACCESS_KEY, SECRET_KEY))


def secrets_in(folder: Path) -> list[str]:
    """Files that hold a credential's text."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file() and any(text.encode() in path.read_bytes() for text in (ACCESS_KEY, SECRET_KEY)):
            found.append(str(path.relative_to(folder)))
    return found


def command_lines() -> str:
    """The arguments of all processes, as `ps` shows them."""
    shown = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return shown.stdout


@soak
def test_credentials_are_in_no_artefact_log_plan_or_process_list(bucket, tmp_path):
    """A run whose tasks write to the store and log events, and one that fails."""
    (bucket / "access.log").write_bytes(log(20_000))
    events, temporary = tmp_path / "events", tmp_path / "tmp"
    events.mkdir()
    temporary.mkdir()
    conf = ["--spark-conf", "spark.eventLog.enabled=true", "--spark-conf", f"spark.eventLog.dir={events.as_uri()}"]
    conf += ["--spark-conf", "spark.sql.planChangeLog.level=warn", "--spark-conf", "spark.eventLog.compress=false"]
    source, target = f"{bucket}access.log", f"{bucket}web.trace"
    ingest = [ADAPT, "-v", "ingest", source, *"--source-format clf --key host --bytes bytes -o".split()]
    said, shown = [], ""
    for line in (
        [*ingest, target, *conf],
        [ADAPT, "-v", "partition", "compare", target, *"--channels 3 -o".split(), f"{bucket}web.plans", *conf],
        [ADAPT, "-v", "--debug", "ingest", f"{bucket}none.log", "--key", "host", "-o", f"{bucket}x.trace"],
    ):
        with (
            (tmp_path / "out.txt").open("w+") as out,
            subprocess.Popen(
                line, cwd=tmp_path, stdout=out, stderr=out, env={**os.environ, "TMPDIR": str(temporary)}
            ) as run,
        ):
            while run.poll() is None:
                shown += command_lines()
                time.sleep(0.2)
            out.seek(0)
            said.append((run.returncode, out.read()))
    assert [code for code, _ in said] == [0, 0, 3], said
    logged = "".join(path.read_text() for path in events.rglob("*") if path.is_file())
    assert "MapInArrow" in logged
    assert "spark" in shown
    for text in (*(text for _, text in said), logged, shown):
        assert ACCESS_KEY not in text
        assert SECRET_KEY not in text
    kept = tmp_path / "kept"
    for each in bucket.rglob("*"):
        path = kept / each.relative_to(bucket)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(each.read_bytes())
    assert len(list(kept.rglob("_manifest.json"))) >= 2
    assert secrets_in(tmp_path) == []
