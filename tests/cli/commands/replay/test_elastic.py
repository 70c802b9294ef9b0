"""`adapt replay elastic`: what it prints and keeps, the report of it, and every way to get it wrong."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.core.elastic.policies.names import ScalingPolicy
from adapt.core.engines.flink.scheme import FlinkPartitioner
from adapt.traces.store.runs import read_run
from tests.traces.small_traces import write_trace

ROWS = 6_000
QUICK = (
    "--speedup 1 --pool 4 --workers 1 --partitions 4 --state 100 --service-time 500us --period 50ms"
    " --scale-out-delay 100ms --cooldown 300ms --window 500ms --scheme construction=scan"
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A trace of six thousand rows in two seconds, most of them in the middle, in the current folder."""
    monkeypatch.chdir(tmp_path)
    chance = np.random.default_rng(1)
    due = np.sort(np.concatenate([chance.uniform(0, 2, ROWS // 3), chance.uniform(0.5, 1.2, ROWS - ROWS // 3)]))
    keys = chance.integers(0, 500, ROWS)
    columns = {
        "ts": (due * 1e6).astype(np.int64),
        "key": pa.array([f"k{key}" for key in keys]),
        "cost_us": pa.array(chance.random(ROWS) * 1000),
        "bytes": pa.array(chance.integers(0, 200, ROWS)),
    }
    write_trace(tmp_path / "x.trace", columns)
    write_trace(tmp_path / "bare.trace", {name: columns[name] for name in ("ts", "key")})
    return tmp_path


def test_a_run_is_printed_kept_and_reported(adapt, here):
    line = f"x.trace {QUICK} --policy thresholds --policy lag:rows=50 -o x.run".split()
    document = adapt.json("replay", "elastic", *line)
    assert document["mechanism"] == "elastic"
    assert [row["case"] for row in document["cases"]] == ["fixed", "thresholds", "lag"]
    assert all(row["processed"] == ROWS for row in document["cases"])
    assert document["cases"][1]["rescales"] > 0
    assert [row["migration"] for row in document["cases"]] == ["all", "all", "kafka-eager"]
    kept = read_run(here / "x.run")
    assert kept.as_data() == document
    assert kept.parameters["pool"] == 4
    assert (kept.parameters["scale_out_delay_s"], kept.parameters["cooldown_s"]) == (0.1, 0.3)
    said = adapt.done("report", "x.run", "--html", "x.html")
    assert " ".join(document["summary"]["verdict"].split()) in " ".join(said.out.split())
    page = (here / "x.html").read_text()
    for title in ("Workers", "Imbalance", "Throughput", "Latency", "Workers, fixed", "Workers, thresholds"):
        assert f"<h3>{title}</h3>" in page
    assert "<h3>Rows shed</h3>" not in page


def test_all_policies_run_with_their_own_times(adapt, here):
    line = "x.trace --pool 4 --workers 1 --partitions 4 --service-time 500us --period 50ms --format json"
    document = json.loads(adapt.done("replay", "elastic", *line.split(), "--policy", "all").out)
    cases = {row["case"]: row for row in document["cases"]}
    assert list(cases) == list(ScalingPolicy)
    assert all(row["processed"] == ROWS for row in cases.values())
    assert "did you mean 'flink'" in adapt.refused(2, "replay", "elastic", "x.trace", "--policy", "flnk")
    assert "above 0" in adapt.refused(2, "replay", "elastic", "x.trace", "--policy", "ds2:times=0")


def test_every_option_is_taken(adapt, here):
    line = (
        f"x.trace {JOINING} --shed 200@200ms:tau=0.1,0.4,0.7,0.9 --rebuild 300ms,1.5 --migrate"
        " hottest:batch=2,startup-time=20ms --state bytes --policy ds2:utilization=0.7,alignment=factors"
    )
    document = adapt.json("replay", "elastic", *line.split())
    assert [row["case"] for row in document["cases"]] == ["fixed", "rebuild", "ds2"]
    told = document["parameters"]
    assert told["rebuild"] == {"every_s": 0.3, "limit": 1.5, "min_interval_s": 0.1}
    assert told["thresholds"]["tau2"] == told["overload"]["factor"]["tau2"] == 0.7
    assert told["state_from"] == "bytes"
    assert sum(row["processed"] + row["rows_dropped"] for row in document["cases"]) == 3 * ROWS


ON_ENGINE = "--pool 4 --workers 3 --service-time 100us --policy fixed --format json"


@pytest.mark.parametrize("chosen", ["--engine flink", "--scheme flink"])
def test_an_engine_moves_its_own_units(adapt, here, chosen):
    """Each of three workers processes the rows that Flink's subtask would."""
    document = json.loads(adapt.done("replay", "elastic", "x.trace", *ON_ENGINE.split(), *chosen.split()).out)
    rows = np.zeros(4, int)
    for one in document["workers"]:
        rows[one["worker"]] += one["processed"]
    keys = pq.read_table(here / "x.trace", columns=["key"])["key"]
    assert rows.tolist() == np.bincount(FlinkPartitioner(3).channels_of(keys), minlength=4).tolist()
    assert (document["parameters"]["scheme"], document["parameters"]["units"]) == ("flink", 128)
    assert document["parameters"]["construction"] is None
    assert "Flink places 128 key groups, not a plan." in document["summary"]["notes"]
    assert document["summary"]["partitions"] == 128


def test_the_speed_is_that_of_the_offered_load(adapt, here):
    """All workers of the pool have 0.2 times their capacity, or what is given; periods then follow the replay."""
    for option, offered in (("", 0.2), ("--workers 2 --offered 1.1", 1.1)):
        line = f"x.trace --pool 4 --service-time 500us --policy ds2 {option} --format json"
        document = json.loads(adapt.done("replay", "elastic", *line.split()).out)
        told, summary = document["parameters"], document["summary"]
        assert summary["offered"] == pytest.approx(offered)
        assert summary["own_work"] * told["speedup"] / 4 == pytest.approx(offered)
        lasts_s = 2 / told["speedup"]
        periods = told["scale_out_delay_s"] / 2, told["cooldown_s"] / 10, told["counting"]["window_s"] / 10
        assert [told["period_s"], *periods] == pytest.approx([lasts_s / 100] * 4, rel=0.01)
        assert f"a pool of 4 workers is offered {offered:.2f} times its capacity" in summary["verdict"]
    line = "x.trace --pool 4 --workers 1 --speedup 3 --period 50ms --format json"
    told = json.loads(adapt.done("replay", "elastic", *line.split()).out)["parameters"]
    assert (told["speedup"], told["period_s"], told["cooldown_s"]) == (3, 0.05, 30)


JOINING = QUICK.replace("--state 100 ", "")


@pytest.fixture
def venues(here):
    """A trace of two streams with the same keys, and one of three."""
    rows = np.arange(2000)
    keys = pa.array([f"k{key}" for key in rows * 7 % 31])
    for name, sides in (("two", ["east", "west"]), ("three", ["east", "north", "west"])):
        streams = pa.array([sides[row % len(sides)] for row in rows])
        write_trace(here / f"{name}.trace", {"ts": rows * 1000, "key": keys, "stream": streams})
    return here


def test_two_streams_are_joined(adapt, venues):
    """A row matches the one of its key 31 rows before it, which is of the other side, within 50 ms."""
    line = f"two.trace {JOINING} --join stream:window=50ms,match-time=20us --policy ds2 -o x.run"
    document = adapt.json("replay", "elastic", *line.split())
    expected = 2000 - 31
    assert [(row["answers"], row["expected"], row["recall"]) for row in document["cases"]] == [
        (expected, expected, 1)
    ] * 2
    assert document["parameters"]["join"] == {
        "column": "stream",
        "sides": ["east", "west"],
        "window_s": 0.05,
        "match_s": 20e-6,
        "split_hot": False,
    }
    adapt.done("report", "x.run", "--html", "x.html")
    assert "<h3>Answers</h3>" in (venues / "x.html").read_text()
    assert "holds" in adapt.done("check", "x.run", "--limit", "recall == 100%").out
    shed = adapt.json("replay", "elastic", *f"{line} --shed 15 --force".split())
    assert shed["parameters"]["overload"]["window_s"] == 0.05
    assert shed["cases"][0]["rows_dropped"] > 0
    assert shed["cases"][0]["recall"] < 1


def test_policies_of_flux_move_the_window_of_a_join_and_keep_its_answers(adapt, venues):
    line = "two.trace --speedup 1 --workers 3 --partitions 9 --service-time 500us --join"
    line += " stream:window=400ms"
    (venues / "f.json").write_text(
        '{"schema": "adapt.faults/1", "faults": [{"kind": "crash", "worker": 2, "at_s": 0.3}], "detection_s": 0.05}'
    )
    policies = "--policy hybrid:min-imbalance=1.01 --min-collection 20ms -o x.run --force"
    answers = set()
    for more in ("--faults f.json --standby", "--memory 10900B --disk seek=0.1ms"):
        said = adapt.done("replay", "flux", *f"{line} {policies} {more} --format json".split())
        document = json.loads(said.out)
        answers.update(row["answers"] for row in document["cases"])
        assert document["parameters"]["join"]["window_s"] == 0.4
        assert 0 < document["cases"][0]["state_max"] < 2000 * 80
        assert more.startswith("--memory") == (document["cases"][0]["on_disk_max"] > 0)
    adapt.done("report", "x.run", "--html", "x.html")
    split = adapt.json("replay", "flux", *f"{line},split-hot --policy load -o split.run".split())
    answers.update(row["answers"] for row in split["cases"])
    assert split["parameters"]["join"]["split_hot"]
    assert len(answers) == 1
    assert "<h3>Memory, hybrid</h3>" in (venues / "x.html").read_text()


@pytest.mark.parametrize(
    ("line", "code", "sentence"),
    [
        ("two.trace --join venue:window=1s", 2, "two.trace has no column 'venue'; available: "),
        ("two.trace --join stream", 2, "--join needs a window, such as stream:window=10s"),
        ("two.trace --join window=1s", 2, "--join window has no effect without --join"),
        ("two.trace --join stream:window=1s --state rows", 2, "--join has no effect with --state; omit one"),
        ("three.trace --join stream:window=1s", 3, "'east', 'north', 'west'"),
    ],
)
def test_what_cannot_be_joined_is_refused(adapt, venues, line, code, sentence):
    before = sorted(venues.iterdir())
    assert sentence in adapt.refused(code, "replay", "elastic", *line.split())
    assert sorted(venues.iterdir()) == before


@pytest.mark.parametrize(
    ("code", "line", "sentence"),
    [
        (2, "x.trace --scheme flink --rebuild 1s", "--rebuild has no effect with --scheme flink"),
        (2, "x.trace --engine flink --partitions 8", "give max-parallelism, or --scheme hybrid"),
        (2, "x.trace --scheme max-parallelism=64", "write flink:max-parallelism=N"),
        (2, "x.trace --shed tau=0.1,0.4,0.8,1.2", "--shed tau: tau3 "),
        (2, "x.trace --pool 3 --workers 5", "the pool of 3 workers is smaller than the 5 workers at the start"),
        (2, "x.trace --pool 2 --speedup 100", "the pool of 2 workers is smaller than the"),
        (2, "x.trace --cooldown 5s --policy flink", "--cooldown has no effect with --policy flink"),
        (2, "x.trace --policy ds2:rows=5", "--policy rows is for lag; write --policy lag:rows=ROWS"),
        (2, "x.trace --rebuild 0.5", "the imbalance limit of rebuilds must be at least 1"),
        (2, "x.trace --load 99@1s", "99"),
        (2, "bare.trace --state bytes", "bare.trace has no "),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(adapt, here, code, line, sentence):
    before = sorted(here.iterdir())
    assert sentence in adapt.refused(code, "replay", "elastic", *line.split())
    assert sorted(here.iterdir()) == before


def test_a_replay_of_too_many_control_periods_is_refused(adapt, here):
    """Periods of a microsecond in ten million seconds take hours on any machine."""
    write_trace(here / "long.trace", {"ts": [0, 10**13], "key": ["a", "b"]})
    said = adapt.refused(2, *"replay elastic long.trace --pool 2 --speedup 1 --period 1us".split())
    assert "2 cases of 10,000,000,000,000 control periods" in said
    assert "increase --period or --speedup, or set --duration" in said
