"""`adapt replay ordered`: what it prints and keeps, the report of it, and every way to get it wrong."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.cli.main import run
from adapt.traces.replay import egress
from adapt.traces.store.manifest import read_manifest
from adapt.traces.store.runs import read_run
from adapt.traces.store.trace import open_trace
from tests.traces.small_traces import write_trace

ROWS = 3_000

CHAIN = """
[[operator]]
name = "parse"
kind = "stateless"
cost = 1.0
selectivity = 0.5

[[operator]]
name = "by key"
kind = "partitioned"
key = "key"
partitions = 16
cost = "cost_us"
"""

REPEATS = {"threads": " --repeats 1", "sim": ""}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A trace of three thousand rows and chains over it, in the current folder."""
    monkeypatch.chdir(tmp_path)
    chance = np.random.default_rng(1)
    columns = {
        "ts": np.arange(ROWS),
        "key": pa.array([f"k{key}" for key in chance.zipf(1.5, ROWS) % 97]),
        "cost_us": pa.array(chance.random(ROWS)),
        "bytes": pa.array(chance.integers(0, 50, ROWS)),
    }
    write_trace(tmp_path / "x.trace", columns)
    (tmp_path / "c.toml").write_text(CHAIN)
    (tmp_path / "plan.toml").write_text(CHAIN.replace("partitions = 16", 'by = "plan"'))
    return tmp_path


def test_a_run_is_printed_kept_reported_and_checked(adapt, here):
    line = "x.trace --chain c.toml --workers 4,1 --backend threads -o x.ordered --format json"
    document = json.loads(adapt.done("replay", "ordered", *line.split()).out)
    assert document["mechanism"] == "ordered"
    assert [row["workers"] for row in document["workers"]] == [1, 4]
    assert all(row["ordered"] is True for row in document["workers"])
    assert document["summary"]["rows"] == ROWS
    assert document["parameters"]["chain"] == {"name": "c.toml", "text": CHAIN}
    kept = read_run(here / "x.ordered")
    assert kept.as_data() == document
    said = adapt.done("report", "x.ordered", "--html", "x.html")
    assert "The output equals that of the serial run, tuple for tuple." in " ".join(said.out.split())
    page = (here / "x.html").read_text()
    for title in ("Throughput", "Latency", "Worker time", "Ring buffer occupancy"):
        assert f"<h3>{title}</h3>" in page
    limits = (
        "order_violations == 0",
        "speed_up[workers=1] == 1",
        "processing_p99 < 60s",
        "partition_imbalance >= 1",
        "rows == 3000",
    )
    adapt.done("check", "x.ordered", *(word for limit in limits for word in ("--limit", limit)))
    assert run(["check", "x.ordered", "--limit", "throughput >= 1000000000"]) == 1


def test_the_model_runs_what_the_machine_has_no_cores_for(adapt, here):
    told = adapt.done("replay", "ordered", *"x.trace --chain c.toml --workers 1,200 --all".split())
    assert "200 workers on a machine with" in told.err
    for part in (
        "In the model, use ",
        "contention_us 0.15",
        "lock_handover_us 0.15",
        "jitter 0",
        "the chain",
    ):
        assert part in " ".join(told.out.split())


def test_every_option_is_taken(adapt, here):
    _build_plan(adapt, here)
    line = (
        "x.trace --chain plan.toml --plan five.plan --workers 2 --backend sim --reorder lock --work-queue partitioned"
        " --heuristic qst:limit=20 --runtime slice=50us,ring-buffer=64,queue-capacity=128,chunk=8"
        ",mark-every=7 --rows 1000 --seed 5 --check 0 --format json"
    )
    document = json.loads(adapt.done("replay", "ordered", *line.split()).out)
    told = document["parameters"]
    assert (told["backend"], told["reorder"], told["work_queue"]) == ("sim", "lock", "partitioned")
    assert told["heuristic"] == "qst"
    assert (told["slice_us"], told["ring_buffer"], told["queue_capacity"]) == (50, 64, 128)
    assert (told["qst_limit"], told["chunk"], told["mark_every"], told["rows"], told["seed"]) == (20, 8, 7, 1000, 5)
    assert document["summary"]["rows"] == 1000
    assert document["workers"][0]["ordered"] is None
    assert [row["partitions"] for row in document["operators"]] == [None, 5]
    assert len(document["partitions"]) == 5


def test_rows_arrive_at_a_rate_or_at_the_times_of_the_trace(adapt, here):
    def workers(line):
        done = adapt.done("replay", "ordered", *f"x.trace --chain c.toml --workers 1,2 {line} --format json".split())
        return json.loads(done.out)["workers"]

    for one in workers("--backend sim --rate 20000 --spacing even"):
        assert one["rate"] == pytest.approx(20_000, rel=0.001)
        assert one["capacity"] is None
        assert 0 < one["end_to_end_p50"] - one["processing_p50"] < 0.2e-6  # a query
    for one in workers("--backend sim --speedup 0.01"):  # of a row each microsecond
        assert one["rate"] == pytest.approx(10_000, rel=0.001)
        assert one["keeps_up"] is True
    for one in workers("--backend sim --offered 2 --spacing trace"):
        assert one["rate"] == pytest.approx(2 * one["capacity"], rel=0.001)
        assert one["keeps_up"] is False
        assert one["drain"] == pytest.approx(one["elapsed"] / 2, rel=0.1)
    for one in workers("--backend threads --repeats 1 --speedup 0.05"):
        assert one["ordered"] is True
        assert one["rate"] == pytest.approx(50_000, rel=0.001)
        assert one["end_to_end_p99"] >= one["processing_p99"]
        assert one["feeder_lag_max"] >= one["feeder_lag_p99"] >= 0
    for one in workers("--backend sim --sustainable --target-latency 20x --spacing even --offered 0.8"):
        assert one["rate"] == pytest.approx(0.8 * one["sustainable"], rel=0.01)
        assert one["sustainable"] < one["sustainable_below"] <= one["sustainable"] + 0.02 * one["capacity"]
        assert one["end_to_end_p99"] <= one["target_latency"]
    line = "x.trace --chain c.toml --workers 1 --backend sim --offered 0.5 --spacing even"
    shown = adapt.done("replay", "ordered", *line.split())
    assert "1 worker keeps up at" in " ".join(shown.out.split())
    assert "of capacity)" in " ".join(shown.out.split())


def _build_plan(adapt, folder):
    (folder / "counts.csv").write_text("key,count\n" + "".join(f"k{key},{100 - key}\n" for key in range(97)))
    adapt.done("partition", "build", *"counts.csv --channels 5 --scheme uniform -o five.plan".split())


def test_output_rows_are_written_in_order_under_their_columns(adapt, here):
    (here / "own_visits.py").write_text("def large(key, bytes: int, cost_us) -> bool:\n    return bytes > 40\n")
    (here / "own.toml").write_text('[[operator]]\nname = "l"\nkind = "stateless"\nfunction = "own_visits:large"\n')
    chain = "x.trace --chain own.toml --workers 1,2"
    line = f"{chain} --backend threads --output"
    adapt.done("replay", "ordered", *f"{line} o.parquet".split())
    table = pa.Table.from_batches(list(open_trace(here / "x.trace").batches(["key", "bytes", "cost_us"])))
    expected = [row for row in table.to_pylist() if row["bytes"] > 40]
    assert pq.read_table("o.parquet").to_pylist() == expected
    printed = adapt.done("replay", "ordered", *f"{line} -".split()).out
    assert [json.loads(line) for line in printed.splitlines()] == expected
    printed = adapt.done("replay", "ordered", *f"{line} - --format csv".split()).out
    assert printed.splitlines()[0] == '"key","bytes","cost_us"'
    assert len(printed.splitlines()) == 1 + len(expected)
    for code, name, sentence in (
        (4, "o.parquet", "o.parquet exists; add --force"),
        (2, "o.txt", "--output must end in .parquet, .csv or .jsonl, or be - for stdout (got o.txt)"),
        (2, "r.csv -o r.csv", "--output and --out both name r.csv; give the rows and the run a name each"),
    ):
        assert sentence in adapt.refused(code, "replay", "ordered", *f"{line} {name}".split())
    sentence = "--output has no effect with --backend sim; give --backend threads"
    assert sentence in adapt.refused(2, "replay", "ordered", *f"{chain} --backend sim --output n.csv".split())


def test_a_function_that_cannot_be_compiled_runs_serially_and_is_not_modeled(adapt, here):
    (here / "own_seen.py").write_text(
        "from typing import NamedTuple\n\nclass Row(NamedTuple):\n    distinct: int\n\nclass Seen:\n    sizes: set\n\n"
        "    def step(self, bytes) -> Row:\n        self.sizes.add(bytes)\n        return Row(len(self.sizes))\n"
    )
    (here / "own.toml").write_text('[[operator]]\nname = "s"\nkind = "stateful"\nfunction = "own_seen:Seen"\n')
    line = "x.trace --chain own.toml --workers 1,2"
    done = adapt.done("replay", "ordered", *f"{line} --backend threads --output o.jsonl --format json".split())
    assert "operator 's': own_seen:Seen: field 'sizes' is a set; compiled states have int, float" in done.err
    assert [row["workers"] for row in json.loads(done.out)["workers"]] == [1]
    last = json.loads((here / "o.jsonl").read_text().splitlines()[-1])
    assert last == {"distinct": 50}
    assert "the model has no speed-up to show" in adapt.refused(
        2, "replay", "ordered", *f"{line} --backend sim".split()
    )


def test_floats_that_json_does_not_have_are_texts(adapt, here):
    (here / "own_odd.py").write_text(
        "from typing import NamedTuple\n\nclass Row(NamedTuple):\n    odd: float\n\n"
        "def odd(bytes: int) -> Row:\n    far = 1e300 * 1e10\n"
        "    return Row(far if bytes % 4 == 0 else -far if bytes % 4 == 1 else far - far if bytes % 4 == 2 else 0.5)\n"
    )
    (here / "odd.toml").write_text('[[operator]]\nname = "o"\nkind = "stateless"\nfunction = "own_odd:odd"\n')
    line = "x.trace --chain odd.toml --workers 1 --backend threads --output o.jsonl"
    adapt.done("replay", "ordered", *line.split())
    table = pa.Table.from_batches(list(open_trace(here / "x.trace").batches(["bytes"])))
    read = [json.loads(line, parse_constant=pytest.fail) for line in (here / "o.jsonl").read_text().splitlines()]
    kinds = ["Infinity", "-Infinity", "NaN", 0.5]
    assert [row["odd"] for row in read] == [kinds[size % 4] for size in table["bytes"].to_pylist()]


@pytest.mark.parametrize("backend", ["threads", "sim"])
@pytest.mark.parametrize("how", ["replicated:degree=2", "micro-batch:batch=50", "pipeline"])
def test_every_scheme_of_parallelism_gives_the_output_of_the_serial_run(adapt, here, how, backend):
    line = (
        f"x.trace --chain c.toml --workers 1,3 --backend {backend} --parallelism {how}{REPEATS[backend]} --format json"
    )
    document = json.loads(adapt.done("replay", "ordered", *line.split()).out)
    plain = json.loads(adapt.done("replay", "ordered", *line.replace(how, "dynamic").split()).out)
    assert document["summary"]["parallelism"] == how.split(":")[0]
    assert document["summary"]["egress"] == plain["summary"]["egress"]
    assert document["summary"]["order_violations"] == 0
    assert [row["used"] for row in document["workers"]] == [None, 2 if how == "pipeline" else None]
    assert ("served" in document) == ("micro-batch" not in how)


@pytest.mark.parametrize(
    ("code", "line", "sentence"),
    [
        (2, "--workers two", "--workers takes auto or a list of integers such as 1,2,4,8 (got 'two')"),
        (2, "--workers auto --backend threads", "--workers auto is searched in the model; use --backend sim"),
        (2, "--workers auto --backend sim --rate 9", "omit the rate of arrivals"),
        (2, "--parallelism pipeline:batch=5", "batch is for micro-batch; write --parallelism micro-batch:batch=ROWS"),
        (2, "--parallelism replicated:degree=1,2,3", "or one for each of 2 (got 3: 1,2,3)"),
        (2, "--runtime ring-buffer=100", "must be a power of two, at most 4194304 (got 100); try 128"),
        (2, "--runtime chunk=1025", "--runtime chunk must be from 1 to 1,024 (got 1,025)"),
        (2, "--heuristic et:window=5ms", "--heuristic window is for ct or ct-literal; write --heuristic ct:window="),
        (2, "--rate 5 --offered 0.5", "--rate and --offered both set the rate of arrivals; omit one"),
        (2, "--spacing even", "--spacing has no effect without --rate or --offered or --sustainable"),
        (2, "--sustainable --speedup 2", "--speedup sets the rate of arrivals, which --sustainable searches; omit one"),
        (2, "--sustainable --target-latency 0.5x", "must be above 1 times that at low load (got 0.5)"),
        (2, "--target-latency 5ms", "--target-latency has no effect without --sustainable"),
        (2, "--chain plan.toml", "plan.toml: operator 'by key' is partitioned by a plan; give one with --plan"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(adapt, here, code, line, sentence):
    before = sorted(here.iterdir())
    chain = "" if "--chain" in line else "--chain c.toml "
    code = 3 if "none.plan" in line else code
    assert sentence in adapt.refused(code, "replay", "ordered", *f"x.trace {chain}{line}".split())
    assert sorted(here.iterdir()) == before


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (('kind = "stateless"', 'kind = "statless"'), "c.toml: line 2: operator 'parse': there is no kind 'statless'"),
        (
            ('key = "key"', 'key = "kye"'),
            "c.toml, line 8: operator 'by key': column 'kye' does not exist; did you mean 'key'? "
            "Available: bytes, cost_us, key, ts",
        ),
        (
            ('cost = "cost_us"', 'function = "none_such:f"'),
            "the module 'none_such' cannot be imported (ModuleNotFoundEr",
        ),
        (('cost = "cost_us"', 'function = "json:lods"'), "json has no function 'lods'; did you mean 'loads'?"),
        (
            ('key = "key"', 'key = "cost_us"'),
            "c.toml: operator 'by key': key column 'cost_us' must be string, int",
        ),
        (("[[operator]]", "[[operator"), "c.toml: the chain is not valid TOML"),
    ],
)
def test_a_chain_that_cannot_be_is_refused_with_its_line(adapt, here, change, sentence):
    (here / "c.toml").write_text(CHAIN.replace(*change))
    assert sentence in adapt.refused(3, "replay", "ordered", *"x.trace --chain c.toml --workers 1".split())


def test_a_plan_that_no_operator_takes_or_for_other_keys_is_refused(adapt, here):
    _build_plan(adapt, here)
    line = "x.trace --chain c.toml --workers 1 --plan five.plan"
    assert "no operator uses the plan five.plan" in adapt.refused(2, "replay", "ordered", *line.split())
    (here / "plan.toml").write_text((here / "plan.toml").read_text().replace('"key"\n', '"bytes"\n'))
    refused = adapt.refused(3, "replay", "ordered", *line.replace("c.toml", "plan.toml").split())
    assert "five.plan is for string keys, but column 'bytes' of operator 'by key' has int64 keys" in refused


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device to write to")
@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_full_stdout_of_output_rows_is_said_in_one_line(adapt, here, monkeypatch, form):
    line = f"x.trace --chain c.toml --workers 1 --backend threads --repeats 1 --output - --format {form}"
    with open("/dev/full", "wb", buffering=0) as full:
        monkeypatch.setattr(egress.sys, "stdout", SimpleNamespace(buffer=full, flush=full.flush, fileno=full.fileno))
        told = adapt.refused(4, "replay", "ordered", *line.split())
    assert told == "adapt: cannot write to stdout: No space left on device; free space or redirect it elsewhere"


TWO = """
inputs = ["left", "right"]
outputs = ["all", "half"]

[[operator]]
name = "all"
kind = "partitioned"
key = "key"
partitions = 4
from = ["left", "right"]

[[operator]]
name = "half"
kind = "stateless"
selectivity = 0.5
from = "right"
"""


@pytest.fixture
def two(here):
    """A second trace, whose rows lie between those of the first, and a graph over both."""
    write_trace(here / "y.trace", {"ts": np.arange(1_000) * 2 + 1, "key": pa.array([f"y{n}" for n in range(1_000)])})
    (here / "two.toml").write_text(TWO)
    return here


def test_rows_of_two_inputs_leave_merged_by_two_outputs(adapt, two):
    line = "x.trace --chain two.toml --workers 1,2 --backend threads --repeats 1 --output out.parquet --format json"
    done = adapt.done(
        "replay", "ordered", *line.split(), "--input", "right=y.trace", "--rows", "1500", "-o", "x.ordered"
    )
    document = json.loads(done.out)
    assert document["summary"]["rows"] == 1_500
    assert [row["reads"] for row in document["operators"][:2]] == ["left, right", "right"]
    assert [each["name"] for each in read_manifest(two / "x.ordered").made.inputs] == ["x.trace", "y.trace"]
    table = pq.read_table("out.parquet").to_pydict()
    left, both = (pq.read_table(name)["key"].to_pylist() for name in ("x.trace", "y.trace"))
    expected = []
    for time in range(1_500):  # x.trace has a row at each time, and y.trace one at each uneven time
        expected += [left[time], *([both[time // 2]] if time % 2 else [])]
    assert [key for key, name in zip(table["key"], table["output"], strict=True) if name == "all"] == expected[:1_500]
    assert 150 < table["output"].count("half") < 350


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("", "two.toml: input 'right' has no trace; add --input right=TRACE"),
        ("--input rihgt=y.trace", "--input rihgt: two.toml has no further input 'rihgt' (further inputs: right)"),
        (
            "--input left=y.trace",
            "two.toml has no further input 'left' (its first input, 'left', is TRACE)",
        ),
        ("--input right=y.trace --input right=x.trace", "--input right is given twice"),
    ],
)
def test_inputs_that_the_chain_does_not_have_are_refused(adapt, two, more, told):
    assert told in adapt.refused(2, *f"replay ordered x.trace --chain two.toml --workers 1 {more}".split())


@pytest.fixture
def one(two):
    """Both traces in one, whose rows of one time stand in the other order, with some rows of no input."""
    tables = [pq.read_table(name).append_column("kind", pa.array([kind] * 3_000)[:count]) for name, kind, count in OF]
    mixed = pa.concat_tables([tables[1], tables[0], tables[2].slice(0, 7)], promote_options="default")
    mixed = mixed.take(np.argsort(mixed["ts"].cast(pa.int64()).to_numpy(), kind="stable"))
    write_trace(two / "mixed.trace", mixed)
    (two / "one.toml").write_text('input_column = "kind"\n' + TWO)
    return two


OF = (("x.trace", "left", 3_000), ("y.trace", "right", 1_000), ("y.trace", "up", 1_000))


@pytest.mark.parametrize("backend", ["threads", "sim"])
def test_one_trace_of_two_inputs_gives_what_two_traces_give(adapt, one, backend):
    line = f"--workers 1,2 --backend {backend}{REPEATS[backend]} --speedup 1e6 --format json".split()
    several, single = (
        json.loads(adapt.done("replay", "ordered", *trace.split(), *line, *output_to(name, backend)).out)
        for name, trace in (
            ("two", "x.trace --chain two.toml --input right=y.trace"),
            ("one", "mixed.trace --chain one.toml"),
        )
    )
    assert single["summary"]["notes"].endswith(
        "Skipped 7 of 4,007 rows, whose 'kind' is not an input of the chain: 'up' (7 rows)."
    )
    for name in ("egress", "rows", "tuples_out", "order_violations"):
        assert single["summary"][name] == several["summary"][name]
    if backend == "threads":
        assert (one / "one.parquet").read_bytes() == (one / "two.parquet").read_bytes()


def output_to(name, backend):
    return ["--output", f"{name}.parquet"] if backend == "threads" else []


@pytest.mark.parametrize(
    ("code", "head", "more", "told"),
    [
        (3, 'input_column = "knid"', "", "one.toml: input_column: column 'knid' does not exist; did you mean 'kind'?"),
        (3, "input_column = 3", "", "the chain: input_column must be a text in quotes (got 3)"),
        (3, 'input_column = "ts"', "", "input_column: column 'ts' must hold texts or integers (its type is timestamp"),
        (3, 'input_column = "key"', "", "one.toml: no row of input 'left'; column 'key' has "),
        (
            *(2, 'input_column = "kind"', "--input right=y.trace"),
            "--input right: one.toml takes all inputs from TRACE, whose column 'kind' (input_column) names them",
        ),
    ],
)
def test_an_input_column_that_will_not_do_is_refused(adapt, one, code, head, more, told):
    (one / "one.toml").write_text(f"{head}\n{TWO}")
    line = f"replay ordered mixed.trace --chain one.toml --workers 1 --backend threads {more}"
    assert told in adapt.refused(code, *line.split())
