"""`adapt replay flux`: what it prints and keeps, the report of it, and every way to get it wrong."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import KeyType
from adapt.traces.store.manifest import Provenance
from adapt.traces.store.plans import write_plan
from adapt.traces.store.runs import read_run
from tests.traces.small_traces import write_trace

ROWS = 6_000
QUICK = ("speedup 1", "workers 4", "partitions 8", "state 100", "min-collection 20ms")
IDLE_WITH = {"speedup": "saturate", "min-collection": "--policy none"}


def quick(more: str) -> str:
    """Options of a short replay: those given, and defaults that can act beside them."""
    names = [each.split()[0] for each in QUICK]
    idle = [name for name in names if f"--{name} " in more or IDLE_WITH.get(name, "-- ") in more]
    return " ".join([more, *(f"--{each}" for name, each in zip(names, QUICK, strict=True) if name not in idle)])


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A trace of six thousand rows in a second, one key in ten of them, and plans, in the current folder."""
    monkeypatch.chdir(tmp_path)
    chance = np.random.default_rng(1)
    keys = np.where(chance.random(ROWS) < 0.1, 0, chance.integers(1, 500, ROWS))
    columns = {
        "ts": np.arange(ROWS) * 1_000_000 // ROWS,
        "key": pa.array([f"k{key}" for key in keys]),
        "cost_us": pa.array(chance.random(ROWS) * 100),
        "stream": pa.array([f"s{key % 3}" for key in keys]),
        "bytes": pa.array(chance.integers(0, 200, ROWS)),
    }
    write_trace(tmp_path / "x.trace", columns)
    write_trace(tmp_path / "bare.trace", {name: columns[name] for name in ("ts", "key")})
    back = write_trace(tmp_path / "back.trace", {"ts": [1, 3, 2], "key": ["a", "b", "c"]})
    assert back.rows == 3
    for name, plan in (
        ("4", Plan(Scheme.HYBRID, 4, KeyType.STRING, explicit={"k0": 2})),
        ("1", Plan(Scheme.UNIFORM, 1, KeyType.STRING)),
        ("int", Plan(Scheme.UNIFORM, 4, KeyType.INT64)),
    ):
        write_plan(plan, tmp_path / f"{name}.plan", Provenance("a test"))
    return tmp_path


def told(adapt, *line):
    return adapt.json("replay", "flux", *line)


def test_disks_and_networks_are_those_of_each_worker(adapt, here):
    line = quick("x.trace --speedup 20 --memory 20KB --policy none --network connection-buffer=2x12,bandwidth=1Gbps")
    more = "--network bandwidth=0,1=10Mbps --disk bandwidth=3=80Mbps"
    parameters = told(adapt, *f"{line} {more}".split())["parameters"]
    assert parameters["memory"]["disk_bytes_per_s"] == [20e6, 20e6, 20e6, 10e6]
    network = parameters["network"]
    assert network["link_bits_per_s"] == [1e7, 1e7, 1e9, 1e9]
    assert (network["connection_tuples"], network["packet_tuples"]) == (24, 12)
    for wrong, said in (
        ("--network bandwidth=4=1Gbps", "workers run from 0 to 3"),
        ("--network bandwidth=x=1Gbps", "workers are a number"),
        ("--network connection-buffer=2x", "such as 2x12"),
    ):
        failed = adapt("replay", "flux", *quick(f"x.trace {wrong}").split())
        assert failed.code == 2
        assert said in failed.err


def test_a_run_is_printed_and_kept_the_same(adapt, here):
    line = quick("x.trace --speedup 20 --load 1@0 --policy load --policy load-several") + " -o x.flux"
    document = told(adapt, *line.split())
    assert document["schema"] == "adapt.run/2"
    assert document["mechanism"] == "flux"
    assert [row["case"] for row in document["cases"]] == ["static", "load", "load-several"]
    assert all(row["processed"] == ROWS for row in document["cases"])
    kept = read_run(here / "x.flux")
    assert kept.as_data() == document
    parameters = kept.manifest.made.parameters
    assert parameters["disturbances"][0]["worker"] == 1
    assert parameters["producers"] == "stream"
    assert kept.manifest.made.inputs[0]["name"] == "x.trace"
    for format in ("table", "csv", "md"):
        assert "load-several" in adapt.done("replay", "flux", *line.split()[:-2], "--format", format).out


def test_rows_cost_what_the_trace_says_unless_a_service_time_is_given(adapt, here):
    line = quick("x.trace --arrivals saturate --policy none")
    by_rows, by_bytes = (
        told(adapt, *quick(f"x.trace --arrivals saturate --policy none --state {state}").split())
        for state in ("rows", "bytes")
    )
    assert by_rows["parameters"]["state_from"] == "rows"
    assert by_bytes["parameters"]["state_tuples"] is None
    assert by_rows["parameters"]["costs"]["service_from"] == "trace"
    assert by_rows["summary"]["capacity"] == pytest.approx(4 / 50e-6, rel=0.05)
    drawn = told(adapt, *line.split(), "--service-time", "500us")
    assert drawn["parameters"]["costs"]["service_from"] == "drawn"
    assert drawn["summary"]["capacity"] == pytest.approx(4 / 500e-6, rel=0.05)
    bare = told(adapt, *quick("bare.trace --arrivals saturate --policy none").split())
    assert bare["parameters"]["costs"]["service_s"] == 1e-3
    assert bare["parameters"]["costs"]["spread"]["assumed"]


def test_service_times_come_from_measurements_or_by_key(adapt, here):
    line = quick("x.trace --arrivals saturate --policy none")
    Path("measured.csv").write_text("service_us\n100\n100\n400\n")
    pq.write_table(pa.table({"service_us": [100.0, 100.0, 400.0]}), "measured.parquet")
    by_text, by_table = (
        told(adapt, *line.split(), "--service-time", f"empirical:measured.{kind}") for kind in ("csv", "parquet")
    )
    assert by_text["parameters"]["costs"]["service_s"] == pytest.approx(200e-6)
    assert by_text["cases"] == by_table["cases"]
    key = ds.dataset("x.trace").to_table(columns=["key"])["key"][0].as_py()
    Path("keys.csv").write_text(f"key,service_time\n{key},1ms\n")
    by_key = told(adapt, *line.split(), "--service-time", "keys:keys.csv")
    assert by_key["parameters"]["costs"]["service_from"] == "keys"
    assert by_key["summary"]["capacity"] == pytest.approx(4 / 1e-3, rel=0.05)
    spread = told(adapt, *line.split(), "--service-time", "lognormal(keys:keys.csv, 1)")
    assert spread["parameters"]["costs"]["spread"]["kind"] == "lognormal"
    for text, message in (("a\n", "line 1: expected 2 fields"), ("a,soon\n", "line 1: 'soon' is not a duration")):
        Path("keys.csv").write_text(text)
        assert message in adapt.refused(3, "replay", "flux", *line.split(), "--service-time", "keys:keys.csv")


def test_waits_of_independent_arrivals_are_those_of_pollaczek_and_khinchine(adapt, here):
    """One queue with a load of 70 %: the mean time in it is 1 + 0.7 (1 + CV^2) / (2 * 0.3) service times."""
    chance = np.random.default_rng(5)
    times = (np.cumsum(chance.exponential(1e3 / 0.7, 100_000))).astype(np.int64)
    write_trace(Path("one.trace"), {"ts": times, "key": pa.array(["k"] * len(times))}, row_group=50_000)
    for service, variation in (("constant(1ms)", 0.0), ("exponential(1ms)", 1.0), ("lognormal(1ms, 2)", 2.0)):
        line = "one.trace --speedup 1 --workers 2 --partitions 1 --policy none --producers buffer=100000 --state 0"
        run = told(adapt, *line.split(), "--network", "latency=0s", "--service-time", service)
        wanted = 1e-3 * (1 + 0.7 * (1 + variation**2) / (2 * 0.3))
        assert run["cases"][0]["latency_mean"] == pytest.approx(wanted, rel=0.1), service


def test_memory_that_shrinks_sends_partitions_to_disk_and_a_crash_loses_rows(adapt, here):
    line = quick("x.trace --state 10000 --policy memory --memory 10MB --memory 0@100ms:2MB")
    assert told(adapt, *line.split())["cases"][0]["on_disk_max"] > 0
    faults = {"schema": "adapt.faults/1", "faults": [{"kind": "crash", "worker": 3, "at_s": 0.2}], "detection_s": 0.05}
    (here / "faults.json").write_text(json.dumps(faults))
    line = quick("x.trace --service-time 600us --faults faults.json")
    assert told(adapt, *line.split())["cases"][0]["lost"] > 0
    safe = told(adapt, *line.split(), "--standby")
    assert [row["lost"] for row in safe["cases"]] == [0, 0]
    assert safe["parameters"]["faults"]["faults"][0]["worker"] == 3


def test_workers_that_fill_up_drop_what_they_cannot_do_and_latency_stays_short(adapt, here):
    line = quick("x.trace --speedup 20 --policy none")
    (plain,) = told(adapt, *line.split())["cases"]
    shedding = told(adapt, *line.split(), *"--shed 50@10ms:tau=0.5,min-drop=0.1".split())
    (shed,) = shedding["cases"]
    assert plain["rows_dropped"] == 0 < shed["rows_dropped"]
    assert shed["processed"] + shed["rows_dropped"] == ROWS
    assert shed["latency_p99"] < plain["latency_p99"]
    assert f"Rows dropped: {shed['rows_dropped']:,} today." in shedding["summary"]["verdict"]
    factor = {"tau2": 0.5, "min_drop": 0.1, "drop_curve": "linear"}
    assert shedding["parameters"]["overload"] == {"factor": factor, "capacity_tuples": 50, "window_s": 0.01}


def test_a_report_says_the_verdict_and_draws_the_cases(adapt, here):
    adapt.done("replay", "flux", *quick("x.trace --speedup 20 --producers buffer=12 --load 1@0 -o x.flux").split())
    verdict = read_run(here / "x.flux").summary.records()[0]["verdict"]
    said = adapt.done("report", "x.flux", "--html", "x.html")
    assert " ".join(verdict.split()) in " ".join(said.out.split())
    page = (here / "x.html").read_text()
    for title in ("Throughput", "Latency", "Workers, static", "Workers, load", "Rows waiting at the source"):
        assert f"<h3>{title}</h3>" in page
    read = adapt.json("report", "x.flux")
    assert {table["title"] for table in read["artefacts"][0]["tables"]} >= {"Cases", "The run", "Intervals", "Workers"}


def test_a_replay_of_years_is_refused(adapt, here):
    write_trace(here / "long.trace", {"ts": [0, 10**15], "key": ["a", "b"]})
    line = "replay flux long.trace --workers 2 --speedup 1 --min-collection 1ms".split()
    failed = adapt(*line)
    assert failed.code == 2
    assert "1,000,000,000,000 control periods" in failed.err
    assert "increase --min-collection or --speedup, or set --duration" in failed.err
    adapt.done(*line, "--duration", "1s")


def test_the_speed_is_that_of_the_offered_load(adapt, here):
    """The busiest worker has 1.2 times its capacity, or what is given; its rounds then fit into the replay."""
    for option, offered in (((), 1.2), (("--offered", "0.8"), 0.8)):
        document = told(adapt, "x.trace", "--workers", 4, "--service-time", "constant(45us)", *option)
        assert document["summary"]["offered"] == pytest.approx(offered)
        assert document["summary"]["static_full_at"] == pytest.approx(document["parameters"]["speedup"] / offered)
        lasts_s = (ROWS - 1) / ROWS / document["parameters"]["speedup"]
        assert document["parameters"]["min_collection_s"] == pytest.approx(lasts_s / 100, rel=0.01)
        assert f"the busiest worker is offered {offered:.2f} times its capacity" in document["summary"]["verdict"]
    twice = told(adapt, "x.trace", "--workers", 4, "--speedup", "2", "--policy", "none")
    assert twice["parameters"]["speedup"] == 2
    assert twice["parameters"]["min_collection_s"] == 0.15


@pytest.mark.parametrize(
    ("code", "line", "sentence"),
    [
        (2, "x.trace", "give --workers N, or --plan PLAN"),
        (2, "x.trace --workers 1", "a stage needs 2 to 4,096 workers (got 1)"),
        (2, "x.trace --plan 4.plan --workers 8", "4.plan has 4 workers, but --workers is 8; omit --workers"),
        (3, "x.trace --plan int.plan", "int.plan is for int64 keys"),
        (
            2,
            "x.trace --workers 4 --producers buffer=11",
            "--producers buffer must hold at least one packet of 12 rows (got 11)",
        ),
        (2, "x.trace --workers 4 --router river --policy load", "router river sends a tuple to any worker"),
        (2, "x.trace --workers 4 --load 4@1s", "--load '4@1s': workers run from 0 to 3 (got 4)"),
        (2, "x.trace --workers 4 --load 1@5s-2s", "ends before it begins"),
        (
            3,
            "x.trace --workers 4 --load 1@0-2s --slow 1@1s-3s:50%",
            "two disturbances of worker 1 overlap from 1 to 2 s",
        ),
        (2, "x.trace --workers 4 --shed 50", "--shed takes rows@retention, such as 5000@100ms (got '50')"),
        (
            2,
            "x.trace --workers 4 --shed 5@1s:tau=0.1,0.8,0.4,0.9",
            "--shed tau: T1 has no effect here; give T2 alone",
        ),
        (2, "x.trace --workers 4 --split-hot 50% --standby", "splitting hot partitions excludes memory limits"),
        (
            2,
            "x.trace --workers 4 --split-hot 50% --state rows",
            "only distributive aggregates of all rows can",
        ),
        (2, "x.trace --workers 4 --slow 1@1s:fast", "--slow needs the remaining speed"),
        (3, "x.trace --workers 4 --state 10000 --memory 1kB", "the largest partition, 800,000 bytes (got 1,000)"),
        (3, "x.trace --workers 4 --state 10000 --memory 1GB --memory 0@1s:1kB", "the largest partition, 800,000 bytes"),
        (2, "x.trace --workers 4 --memory 0@1s:1GB", "--memory needs an initial limit"),
        (3, "x.trace --workers 4 --faults late.json", "sort faults by time"),
        (3, "x.trace --workers 4 --faults far.json", "far.json: faults[0].worker must be from 0 to 3 (got 9)"),
        (2, "x.trace --workers 4 --offered 0.8,1.2", "--offered"),
        (2, "x.trace --workers 4 --offered 2 --speedup 2", "--offered and --speedup both set the speed"),
        (2, "x.trace --workers 4 --offered 2 --arrivals saturate", "--offered has no effect with --arrivals saturate"),
        (2, "x.trace --workers 4 --duration 5", "--duration 5 needs a unit: 5s or 5h?"),
        (2, "x.trace --workers 4 --service-time cost", "has no column 'cost'"),
        (
            2,
            "x.trace --workers 4 --state some",
            "--state takes a number of tuples, or rows, bytes or keys, as in",
        ),
        (2, "x.trace --workers 4 --join key:window=1s --state rows", "--join has no effect with --state; omit one"),
        (3, "x.trace --workers 4 --state rows --memory 4KB", "the most that any worker has; give workers more memory"),
        (2, "x.trace --workers 4 --arrivals rotate --state rows@1s", "omit --join, or the window of --state"),
        (
            2,
            "x.trace --workers 4 --policy load:min-imbalance=0.5",
            "--policy min-imbalance must be at least 1 (got 0.5)",
        ),
        (2, "bare.trace --workers 4 --state bytes", "bare.trace has no column 'bytes'; ingest it with --bytes COLUMN"),
        (2, "bare.trace --workers 4 --producers stream", "bare.trace has no column 'stream'"),
        (3, "back.trace --workers 4", "is before its predecessor; sort the trace by 'ts'"),
        (4, "x.trace --workers 4 -o x.trace", "exists; add --force"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(adapt, here, code, line, sentence):
    crash = {"kind": "crash", "worker": 1, "at_s": 5}
    for name, faults in (("late", [crash, {**crash, "worker": 2, "at_s": 4}]), ("far", [{**crash, "worker": 9}])):
        (here / f"{name}.json").write_text(json.dumps({"schema": "adapt.faults/1", "faults": faults}))
    before = sorted(here.iterdir())
    assert sentence in adapt.refused(code, "replay", "flux", *line.split())
    assert sorted(here.iterdir()) == before


STAGES = '[[stage]]\nname = "a"\n[[stage]]\nname = "b"\ninputs = ["a"]\nkey = "stream"\nstate = "keys"\n'


def test_stages_are_replayed_kept_and_reported(adapt, here):
    (here / "s.toml").write_text(STAGES)
    line = quick("x.trace --stages s.toml --speedup 20 --load 1@0")
    document = told(adapt, *f"{line} --memory 60KB -o s.flux".split())
    assert document["mechanism"] == "flux-dag"
    assert [row["processed"] for row in document["cases"]] == [2 * ROWS] * 2
    assert document["cases"][0]["on_disk_max"] > 0
    assert read_run(here / "s.flux").as_data() == document
    page = adapt.done("report", "s.flux", "--html", "s.html").out
    assert "load" in page
    assert "Throughput of b" in (here / "s.html").read_text()
    shown = adapt.done("replay", "flux", *line.split(), "--all").out
    assert "Queries" in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ("--stages s.toml --standby", 2, "--standby has no effect with --stages"),
        ("--stages s.toml --router river --policy none", 2, "routing by content"),
        ("--stages circle.toml", 3, "circle.toml: line 3: stage 'a' reads its own output"),
    ],
)
def test_stages_that_cannot_be_replayed_are_refused_in_a_line(adapt, here, more, code, said):
    (here / "s.toml").write_text(STAGES)
    (here / "circle.toml").write_text('[[stage]]\nname = "a"\ninputs = ["a"]\n')
    failed = adapt("replay", "flux", *quick(f"x.trace --speedup 20 {more}").split())
    assert failed.code == code
    assert said in failed.err
    assert len(failed.err.strip().splitlines()) == 1
