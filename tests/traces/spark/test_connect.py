"""Spark Connect: failures as sentences; and the content of a local run, through a server."""

import os
import shutil
import subprocess
import sys
import zipfile
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import fastavro
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.errors import PythonException
from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql.connect.shell.progress import StageInfo

from adapt.cli.options.spark import RunnerOptions, Spark
from adapt.core.errors import BadInput, EnvironmentFailure, UsageError
from adapt.traces.spark import connect, executors
from adapt.traces.spark.executors import Installed, here
from adapt.traces.spark.progress import watched
from adapt.traces.spark.session import SparkOptions, carry_failures, spark_failures
from adapt.traces.store.manifest import read_manifest
from tests.journeys.processes import bare_python, connect_server, standalone
from tests.tiers import soak

PROGRAM = "from adapt.cli.main import main; main()"
NO_JAVA = """
import sys
STARTS = {"subprocess.Popen", "os.posix_spawn", "os.exec"}
def check(event, given):
    if event in STARTS and any(each in str(given[:2]) for each in ("java", "spark-submit")):
        sys.exit(f"starts Java: {given}")
sys.addaudithook(check)
"""
"""Ends a process that starts Java."""


def test_a_server_is_given_or_in_the_environment_and_a_master_goes_before(monkeypatch):
    assert Spark("sc://here").options().server == "sc://here"
    monkeypatch.setenv("SPARK_REMOTE", "sc://there")
    assert [SparkOptions().server, SparkOptions("local[2]").server] == ["sc://there", None]
    assert [SparkOptions().asked_for, SparkOptions().on_spark(small=True)] == [True, True]


def test_in_process_keeps_spark_out(monkeypatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://there")
    assert not RunnerOptions("in-process").options().on_spark(small=False)


def test_what_is_no_address_is_a_usage_error():
    with pytest.raises(UsageError, match=r"^--master must be an address such as sc://HOST:15002 \(got 'spark://x'\)"):
        connect.connected("spark://x")


def test_a_server_that_is_not_there_is_one_sentence(monkeypatch):
    monkeypatch.setattr(connect, "ANSWER_S", 0.1)
    with pytest.raises(EnvironmentFailure, match=r"^no Spark Connect server answers at sc://127.0.0.1:1; start one"):
        connect.connected("sc://127.0.0.1:1")


def test_missing_packages_are_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(EnvironmentFailure, match=r"pip install 'adapt-streams\[connect\]'$"):
        connect.connected("sc://127.0.0.1:1")


def test_an_older_server_is_refused_with_the_client_for_it(monkeypatch):
    session = SimpleNamespace(version="3.5.9", stop=lambda: None)
    with pytest.raises(EnvironmentFailure, match=r"runs Spark 3.5.9, older .*; pip install 'pyspark==3.5.\*'$"):
        connect.check_version(session, "sc://here")
    assert connect.check_version(SimpleNamespace(version=pyspark.__version__), "sc://here") is None


def test_a_location_that_the_server_does_not_see_is_an_environment_failure_with_the_remedy(monkeypatch):
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    absent = BadInput("/a.csv: cannot be read: No such file or directory")
    said = r"^/a.csv: .* directory; tasks of the server must see it: use an obj"
    with pytest.raises(EnvironmentFailure, match=said), spark_failures("reading the source"):
        raise PythonException(str(carry_failures(absent)))


def test_a_server_that_ends_is_one_sentence():
    lost = SparkConnectGrpcException("<_MultiThreadedRendezvous of RPC that terminated with:\n\tstatus = UNAVAILABLE>")
    said = "^counting keys: the Spark Connect server no longer answers; start it, and run this again$"
    with pytest.raises(EnvironmentFailure, match=said), spark_failures("counting keys"):
        raise lost


def test_progress_is_that_of_all_stages_of_the_work_alone(monkeypatch):
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    handlers, heard = [], []
    session = SimpleNamespace(registerProgressHandler=handlers.append, removeProgressHandler=handlers.remove)
    with watched(session, "sorting", lambda *told: heard.append(told)):
        for done in (1, 3):
            stages = [StageInfo(0, 4, done, 0, False), StageInfo(1, 2, 0, 0, False)]
            handlers[0](stages=stages, inflight_tasks=1, operation_id="x", done=False)
        handlers[0](stages=[], inflight_tasks=0, operation_id="y", done=True)
    assert heard == [("sorting", 0, 0), ("sorting", 1, 6), ("sorting", 3, 6)]
    assert handlers == []


def test_a_python_of_the_server_starts_with_the_packages_sent(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    monkeypatch.setattr(executors, "packed_once", lambda: tmp_path / "env.tar.gz")
    held, sent = {executors.PYTHON: sys.executable}, []
    conf = SimpleNamespace(get=held.get, set=held.__setitem__)

    def add(path, **kind):
        sent.append(kind)
        if kind == {"file": True}:
            Path(shutil.copy(path, tmp_path)).chmod(0o755)
        else:
            assert path == f"{tmp_path}/env.tar.gz#adapt-packages"

    bare = Installed("far", "/tmp", here().python, here().platform)
    session = SimpleNamespace(addArtifacts=add, conf=conf)
    assert executors.bring_packages(session, [bare])
    assert sent == [{"file": True}, {"archive": True}]
    library = tmp_path / "adapt-packages" / "lib"
    library.mkdir(parents=True)
    (library / "json.py").write_text("print('ours')")
    started = [held[executors.PYTHON], "-c", "import json, sys; print(sys.executable)"]
    done = subprocess.run(started, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == ["ours", sys.executable]
    assert executors.python_program(session) == "${PYSPARK_PYTHON:-python3}"


@pytest.mark.parametrize("said", [{"python": "3.9.1"}, {"python": ""}, {"platform": "linux arm64"}])
def test_another_python_of_the_server_is_one_sentence(monkeypatch, said):
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    other = Installed(**{"host": "far", "folder": "/", "python": here().python, "platform": here().platform} | said)
    session = SimpleNamespace(conf={})
    with pytest.raises(EnvironmentFailure, match=r"^executor far (runs|has no|lacks) .*; (set --spark-conf|install)"):
        executors.bring_packages(session, [other])


@soak
@pytest.mark.parametrize("bare", [False, True])
def test_a_server_gives_the_content_of_a_local_run_without_java_here(tmp_path, bare):
    """Bare: its two executors have a Python with PySpark alone."""
    python = bare_python(tmp_path / "bare") if bare else sys.executable
    (tmp_path / "a.csv").write_text(
        "ts,key\n" + "".join(f"{1_700_000_000 + at},k{at % 7}\n" for at in range(1000)) + "x,k\n"
    )
    (tmp_path / "a.jsonl").write_text(
        "".join(f'{{"ts": {1_700_000_000 + at}, "key": "k{at % 7}"}}\n' for at in range(1000))
    )
    lines = [
        [*"ingest a.csv --key key --time ts -o".split(), "csv.trace"],
        [*"ingest a.jsonl --key key --time ts -o".split(), "json.trace"],
        [*"partition count csv.trace --method lossy -o".split(), "lossy.counts"],
        [*"partition count json.trace --method exact -o".split(), "exact.counts"],
    ]
    verdict = "verdict csv.trace --channels 4".split()
    told: dict[str, list[object]] = {}
    with (
        standalone(tmp_path, python=python) if bare else nullcontext("local[2]") as master,
        connect_server(tmp_path, python, master) as address,
    ):
        remote = {"SPARK_REMOTE": address, "PATH": "", "JAVA_HOME": "/none"}
        for place, program, environment in ("here", PROGRAM, {}), ("there", NO_JAVA + PROGRAM, remote):
            folder = tmp_path / place
            folder.mkdir()
            for name in ("a.csv", "a.jsonl"):
                (folder / name).symlink_to(tmp_path / name)
            for line in (*lines, verdict):
                ran, environment = [sys.executable, "-c", program, *line], os.environ | environment
                done = subprocess.run(ran, cwd=folder, env=environment, capture_output=True, text=True)
                assert done.returncode == 0, done.stderr
            hashes = [read_manifest(folder / line[-1]).content_hash for line in lines]
            told[place] = [*hashes, done.stdout]
    assert told["there"] == told["here"]


ROWS = [(1_700_000_000 + 7 * at % 1000, f"k{at % 7}") for at in range(1000)]
LINES = {
    "csv": ("ts,key", "{},{}", "--key key --time ts"),
    "tsv": ("ts\tkey", "{}\t{}", "--key key --time ts"),
    "jsonl": ("", '{{"ts": {}, "key": "{}"}}', "--key key --time ts"),
    "log": ("", "{} GET /{} x", r"--source-format text --pattern (?P<ts>\d+).GET./(?P<key>\w+) --key key --time ts"),
    "kcat": (
        "",
        '{{"topic": "t", "partition": 0, "offset": 1, "ts": {}000, "key": "{}", "payload": "v"}}',
        "--source-format kcat --key key",
    ),
    "console": ("", "CreateTime:{}000\t{}\tvalue", "--source-format console --key key"),
}
"""A header, a row and options of each format of lines."""


def written_in_every_format(folder):
    """The options of each source, by its name."""
    for name, (header, row, _) in LINES.items():
        rows = "".join(f"{row.format(*each)}\n" for each in ROWS)
        (folder / f"a.{name}").write_text(f"{header}\n{rows}".lstrip("\n") + "broken\n" * (name != "kcat"))
    table = pa.table([*zip(*ROWS, strict=True)], ["ts", "key"])
    pq.write_table(table, folder / "a.parquet")
    pyarrow.orc.write_table(table, folder / "a.orc")
    schema = {
        "type": "record",
        "name": "row",
        "fields": [{"name": "ts", "type": "long"}, {"name": "key", "type": "string"}],
    }
    with (folder / "a.avro").open("wb") as file:
        fastavro.writer(file, schema, table.to_pylist())
    with zipfile.ZipFile(folder / "a.zip", "w") as zipped:
        zipped.write(folder / "a.csv", "a.csv")
    columns = "--key key --time ts"
    return {
        **{f"a.{name}": asked for name, (*_, asked) in LINES.items()},
        **dict.fromkeys(("a.parquet", "a.orc", "a.avro", "a.zip"), columns),
    }


@soak
def test_every_format_has_one_content_in_process_on_spark_and_through_a_server(tmp_path):
    asked = written_in_every_format(tmp_path)
    with connect_server(tmp_path, sys.executable, "local[2]") as address:
        for source, options in asked.items():
            hashes = {}
            for place in ("here", "--master local[2]", f"--master {address}"):
                out = tmp_path / "out.trace"
                more = place.split() if place != "here" else []
                line = ["ingest", str(tmp_path / source), *options.split(), *more, "--force", "-o", str(out)]
                done = subprocess.run([sys.executable, "-c", PROGRAM, *line], capture_output=True, text=True)
                assert done.returncode == 0, (source, place, done.stderr)
                assert ("ran in this process" in done.stderr) == (place == "here"), (source, place, done.stderr)
                hashes[place] = read_manifest(out).content_hash
            assert len({*hashes.values()}) == 1, (source, hashes)
