"""Every command gives the same on Spark and in this process, and says where it ran."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.cli.main import command_tree, run
from adapt.traces.block_cache import CACHE
from adapt.traces.spark.names import RunnerName
from adapt.traces.store.manifest import read_manifest
from adapt.traces.store.plans import read_plan, read_plan_made
from tests.cli.commands.replay.test_fit import NETWORK
from tests.cli.commands.replay.test_ordered import CHAIN
from tests.journeys.test_real import STREAMS, ingested
from tests.tiers import SOAK, soak

MASTER = {RunnerName.SPARK: "local[*]", RunnerName.IN_PROCESS: "in-process"}
RAN = {RunnerName.SPARK: "ran on Spark", RunnerName.IN_PROCESS: "ran in this process"}

OF_TRACE = {
    "verdict": ("--channels 4", "--channels 4 --engine kafka --force --format json"),
    "partition count": ("--channels 4 -o OUT", "--over time --format json", "--method exact --format csv"),
    "partition build": ("--channels 4 -o OUT", "--channels 4 --exact --all"),
    "partition compare": ("--channels 2,4 -o OUT",),
    "partition diff": ("a.plan b.plan",),
    "partition evaluate": ("a.plan b.plan", "a.plan --format json"),
    "check": ("--limit imbalance<=900",),
    "replay compare": ("--scenario static-uniform --scenario split-pkg --channels 3 --partitions 4 -o OUT",),
}
"""Options of commands that work on the rows of a trace, on Spark or in this process."""

WITHOUT_TRACE = {
    "partition evaluate": "counts.parquet a.plan b.plan --format json",
    "generate": "zipf --rows 3000 --cost exponential(2ms) --bytes constant(100B) -o OUT",
}
"""Command lines of commands that make rows, or work on those of Parquet files, at either place."""

IN_PROCESS = {
    "lint": "x.trace",
    "clean": ".",
    "calibrate spark": "progress.json --workers 2 -o OUT",
    "cluster pack": "-o OUT",
    "report": "x.trace a.plan --html page.html",
    "advise salts": "x.trace --parallelism 3",
    "advise which-key": "x.trace --channels 3",
    "advise workers": "--rate 1000 --shed 10000@60s",
    "partition tolerance": "--channels 4 --total 10 --capacity 3",
    "partition route": "a.plan keys",
    "partition export": "a.plan --to plan -o OUT",
    "replay repartition": "x.trace --channels 3 --period 1000rows -o OUT",
    "replay flux": "x.trace --workers 3 --partitions 4 --speedup 1000 -o OUT",
    "replay elastic": "x.trace --pool 8 -o OUT",
    "replay fit": "x.trace --network net.toml -o OUT",
    "replay ordered": "x.trace --chain chain.toml --workers 1 --repeats 1 -o OUT",
}
"""Command lines of commands that never work on Spark."""

ON_SPARK = {"ingest", "demo", "cluster check"}
"""Commands that read columns as Spark SQL, or ask executors."""

OF_A_JOB = {"calibrate flink"}
"""Commands that ask a running job; tests/traces/calibrate has one."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a small trace, two plans for it, and what else the commands read."""
    tmp_path = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(tmp_path)
        make_inputs(tmp_path)
    return tmp_path


@pytest.fixture
def here(made, monkeypatch):
    """That folder as the current one, without output."""
    monkeypatch.chdir(made)
    monkeypatch.delenv("ADAPT_MASTER", raising=False)
    monkeypatch.setattr("adapt.traces.spark.packages.IN_TASKS", ("mmh3",))  # a small archive
    yield made
    remove(made / "OUT")


def make_inputs(tmp_path):
    done(
        "generate", "zipf", *"--rows 3000 --keys 200 --cost exponential(2ms) --bytes constant(100B) -o x.trace".split()
    )
    plans("x.trace")
    (tmp_path / "keys").write_text("k1\nk2\n")
    progress = {"timestamp": "2026-01-01T00:00:00Z", "numInputRows": 10, "durationMs": {"addBatch": 100}}
    (tmp_path / "progress.json").write_text(json.dumps(progress))
    by_bucket = NETWORK.replace('{ column = "stream", equals = "s0" }', "{ bucket = 0, of = 3 }")
    (tmp_path / "net.toml").write_text(by_bucket)
    (tmp_path / "chain.toml").write_text(CHAIN)
    rows = {"key": [f"k{at % 97}" for at in range(1000)] + [None], "count": [0.1 * (at % 13) for at in range(1001)]}
    (tmp_path / "counts.parquet").mkdir()
    for part in range(2):
        pq.write_table(pa.table(rows)[part * 600 : part * 600 + 600], tmp_path / "counts.parquet" / f"{part}.parquet")


def done(*line):
    assert run(list(line)) == 0


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def plans(trace):
    """Two plans for a trace, one after the other."""
    build = ("partition", "build", trace, "--channels")
    done(*build, "2", "-o", "a.plan")
    done(*build, "3", "--from", "a.plan", "-o", "b.plan")


def ran(adapt, line, runner, folder):
    """What a command printed and wrote, and whether it said where it ran; nothing is counted beforehand."""
    shutil.rmtree(folder / CACHE, ignore_errors=True)
    said = adapt.done(*line, "--master", MASTER[runner])
    assert [each for each in said.err.splitlines() if each in RAN.values()] == [RAN[runner]], said.err
    out = folder / "OUT"
    if not out.exists():
        return said.out, None
    if out.is_dir():
        manifest = read_manifest(out)
        content, where = manifest.content_hash, manifest.made.runner
    else:
        content, where = read_plan(out).content_hash(), read_plan_made(out)["runner"]
    remove(out)
    assert where == runner
    return said.out, content


def alike(adapt, line, folder):
    """Whether a command gives the same at both places."""
    on_spark, here = (ran(adapt, line, runner, folder) for runner in RAN)
    assert on_spark == here
    assert ("OUT" in line) == (here[1] is not None)


def lines_on(trace, most=None):
    return [(*name.split(), trace, *options.split()) for name, each in OF_TRACE.items() for options in each[:most]]


@pytest.mark.parametrize("line", lines_on("x.trace", None if SOAK else 1), ids=" ".join)
def test_a_command_on_a_trace_gives_the_same_at_both_places(adapt, spark, here, line):
    alike(adapt, line, here)


@pytest.mark.parametrize("name", WITHOUT_TRACE)
def test_another_command_gives_the_same_at_both_places(adapt, spark, here, name):
    alike(adapt, (*name.split(), *WITHOUT_TRACE[name].split()), here)


@pytest.mark.parametrize("name", IN_PROCESS)
def test_other_commands_do_without_spark(adapt, here, name):
    said = adapt.done(*name.split(), *IN_PROCESS[name].split())
    assert not set(said.err.splitlines()) & set(RAN.values())


def test_few_rows_do_without_spark(adapt, here):
    for line in [*lines_on("x.trace", 1), *((*name.split(), *each.split()) for name, each in WITHOUT_TRACE.items())]:
        shutil.rmtree(here / CACHE, ignore_errors=True)
        assert RAN[RunnerName.IN_PROCESS] in adapt.done(*line).err
        remove(here / "OUT")


def test_every_command_is_in_one_of_the_lists():
    found = leaves(command_tree())
    both = {*OF_TRACE, *WITHOUT_TRACE}
    assert found.keys() == {*both, *IN_PROCESS, *ON_SPARK, *OF_A_JOB}
    for name, command in found.items():
        options = {option for parameter in command.params for option in parameter.opts}
        assert ("--master" in options) == (name in both or name in ON_SPARK - {"demo"}), name


def leaves(command, path=()):
    """All commands below this one, by name."""
    if not hasattr(command, "commands"):
        return {" ".join(path): command}
    below = (leaves(each, (*path, name)) for name, each in command.commands.items())
    return {name: each for found in below for name, each in found.items()}


FLOWN = ("--key", "dest", "--time", "make_date(year, month, day)", "--cost", "distance", "--cost-unit", "us")
REAL = STREAMS | {
    "wiki": ("wiki-edits/wikiticker-2015-09-12-sampled.json.gz", "--key", "channel", "--time", "time"),
    "flights": ("flights/flights.csv.gz", *FLOWN),
    "taxi": ("taxi/taxi-traces.csv", "--no-header", "--key", "_c1", "--time", "_c2"),
}
"""Every real stream, as `ingest` takes it."""


@soak
@pytest.mark.parametrize("name", REAL)
def test_commands_on_a_real_trace_give_the_same_at_both_places(adapt, spark, real_traces, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    ingested(adapt, real_traces, tmp_path, name, REAL)
    plans(f"{name}.trace")
    for line in lines_on(f"{name}.trace"):
        alike(adapt, line, tmp_path)
