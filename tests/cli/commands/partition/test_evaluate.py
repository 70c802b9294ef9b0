"""Plans measured, exported, and over every engine."""

import json

import pyarrow as pa
import pytest

from tests.traces.small_traces import trace_of_source


@pytest.fixture
def here(tmp_path, monkeypatch, adapt):
    """Counts, and two plans that follow each other."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text("key,count\n" + "".join(f"k{n},{3000 // n}\n" for n in range(1, 300)))
    adapt.done("partition", "build", "counts.csv", "--channels", 2, "--resources", "LCL", "-o", "two.plan")
    adapt.done(*"partition build counts.csv --channels 3 --resources LCL --from two.plan -o three.plan".split())
    return tmp_path


def test_plans_stand_beside_what_they_foresaw(adapt, here):
    line = "partition evaluate counts.csv two.plan three.plan --format json"
    told = json.loads(adapt.done(*line.split()).out)
    assert (told["schema"], told["keys"], told["resources"]) == ("adapt.evaluation/2", 299, "LCL")
    nothing, two, three = told["plans"]
    assert [each["plan"] for each in (nothing, two, three)] == ["today (spark)", "two.plan", "three.plan"]
    assert (nothing["measured"]["m"], nothing["predicted"]) == (None, {})
    assert two["measured"]["m"] > 0
    assert three["measured"]["keys_moved"] > 0
    assert "m" not in two["predicted"]
    assert three["measured"].pop("pinned_keys") > 0
    assert three["predicted"] == pytest.approx(three["measured"])
    assert {name: len(loads) for name, loads in three["loads"].items()} == {"state": 3, "computation": 3, "network": 3}


def test_the_resources_are_those_of_the_first_plan_unless_they_are_given(adapt, here):
    line = "partition evaluate counts.csv two.plan --resources QQQ --tolerance 1.5 --format json"
    told = json.loads(adapt.done(*line.split()).out)
    assert (told["resources"], told["tolerance"]) == ("QQQ", [1.5] * 3)
    assert told["plans"][1]["predicted"] == {}


@pytest.mark.parametrize("engine", ["kafka", "consistent"])
def test_doing_nothing_is_the_engine_s_own_plan_unless_it_is_left_out(adapt, here, engine):
    line = ("partition", "evaluate", "counts.csv", "two.plan", "--engine", engine, "--format", "json")
    nothing, two = json.loads(adapt.done(*line).out)["plans"]
    (alone,) = json.loads(adapt.done(*line, "--no-baseline").out)["plans"]
    build = ("partition", "build", "counts.csv", "--channels", 2, "--resources", "LCL", "--scheme", engine)
    adapt.done(*build, "-o", "own.plan")
    chain = ("partition", "evaluate", "counts.csv", "own.plan", "two.plan", "--engine", engine, "--format", "json")
    own, after = json.loads(adapt.done(*chain).out)["plans"]
    assert (nothing["measured"], nothing["loads"]) == (own["measured"], own["loads"])
    assert two["measured"] == after["measured"]
    migration = {"m": None, "b(1+m)": None, "keys_moved": None, "state_moved": None}
    assert alone["measured"] == two["measured"] | migration


def test_what_cannot_be_evaluated_is_refused_with_the_remedy(adapt, here):
    assert "missing argument 'PLAN'" in adapt.refused(2, "partition", "evaluate", "counts.csv")
    assert "nowhere does not exist; give a trace" in adapt.refused(3, "partition", "evaluate", "nowhere", "two.plan")
    (here / "numbers.csv").write_text("1,2\n2,3\n")
    assert "two.plan is for string keys, but numbers.csv has int64 keys; build a plan for those" in adapt.refused(
        3, "partition", "evaluate", "numbers.csv", "two.plan", "--key-type", "int64"
    )
    assert "--weight needs a trace" in adapt.refused(
        2, "partition", "evaluate", "counts.csv", "two.plan", "--weight", "count"
    )


def test_measured_loads_are_those_of_the_first_plan_unless_resources_are_given(adapt, here):
    (here / "sizes.csv").write_text("key,count,size\n" + "".join(f"k{n},{3000 // n},{n % 7}\n" for n in range(1, 300)))
    adapt.done(*"partition build sizes.csv --channels 3 --measure state=size -o sizes.plan".split())
    line = "partition evaluate sizes.csv sizes.plan --format json"
    told = json.loads(adapt.done(*line.split()).out)
    assert told["measured"] == {"state": "size"}
    [_, plan] = told["plans"]
    assert sum(plan["loads"]["state"]) == sum(n % 7 for n in range(1, 300))
    assert plan["predicted"]["r_s"] == pytest.approx(plan["measured"]["r_s"])
    by_letters = json.loads(adapt.done(*line.split(), "--resources", "LLL").out)
    assert "measured" not in by_letters
    assert by_letters["plans"][0]["predicted"] == {}
    assert "no column 'size'" in adapt.refused(2, "partition", "evaluate", "counts.csv", "sizes.plan")


@pytest.fixture
def plan(adapt, tmp_path):
    (tmp_path / "counts.csv").write_text("hot,50\nwarm,20\ncold,10\nzebra,5\n")
    path = tmp_path / "web.plan"
    adapt.done(
        "partition",
        "build",
        tmp_path / "counts.csv",
        "--channels",
        4,
        "--engine",
        "consistent:hash=xxhash64",
        "-o",
        path,
    )
    return path


def test_a_plan_is_exported(adapt, tmp_path, plan):
    said = adapt.done("partition", "export", plan, "--to", "kafka", "-o", tmp_path / "out", "--format", "json")
    told = json.loads(said.out)
    assert told["target"] == "kafka"
    assert {entry["file"] for entry in told["files"]} >= {"plan.json", "plan.txt", "README.md"}
    assert f"see {tmp_path / 'out' / 'README.md'}" in said.err
    assert "exists; add --force" in adapt.refused(
        4, "partition", "export", plan, "--to", "kafka", "-o", tmp_path / "out"
    )
    adapt.done("partition", "export", plan, "--to", "kafka", "-o", tmp_path / "out", "--force")


def test_a_compared_plan_with_split_keys_is_exported_and_evaluated(adapt, tmp_path):
    (tmp_path / "counts.csv").write_text("hot,500\nwarm,90\n" + "".join(f"user{at},10\n" for at in range(40)))
    counts, made = tmp_path / "counts.csv", tmp_path / "compared"
    adapt.done("partition", "compare", counts, "--channels", 4, "--engine", "kafka", "-o", made)
    plan, out = made / "split-hot.plan", tmp_path / "out"
    said = adapt.done("partition", "export", plan, "--to", "rekey", "--engine", "kafka", "-o", out, "--format", "json")
    files = {entry["file"] for entry in json.loads(said.out)["files"]}
    assert files >= {"rekey.json", "rekey.csv", "rekey.py", "Rekey.java", "ksqldb.sql", "duckdb.sql", "README.md"}
    assert len(json.loads((out / "rekey.json").read_text())["keys"]["hot"]) > 1
    assert "Merging split keys" in adapt.done("partition", "evaluate", counts, plan).out
    measured = adapt.json("partition", "evaluate", counts, plan)["plans"][1]
    assert measured["measured"]["imbalance"] < 1.2
    assert measured["merging"]["merge_messages"] > 1
    wrong = ("partition", "export", plan, "-o", tmp_path / "no")
    assert "other keys on kafka" in adapt.refused(3, *wrong, "--to", "rekey", "--engine", "spark")
    assert "--engine has no effect with --to kafka" in adapt.refused(2, *wrong, "--to", "kafka", "--engine", "kafka")
    assert "export it --to rekey" in adapt.refused(3, *wrong, "--to", "kafka")
    assert "measure it with" in adapt.refused(3, "partition", "diff", counts, plan, made / "uniform.plan")


def test_no_replacement_is_a_key_of_the_trace(adapt, tmp_path):
    keys = ["hot"] * 50 + ["a~b", "c#d", "e"] * 5
    trace, plan, out = tmp_path / "log.trace", tmp_path / "web.plan", tmp_path / "out"
    trace_of_source(trace, pa.table({"ts": range(len(keys)), "key": keys}))
    pins = ("--pin", "hot=0", "--pin", "e=1")
    adapt.done("partition", "build", trace, "--channels", 4, "--engine", "kafka", *pins, "-o", plan)
    adapt.done("partition", "export", plan, "--to", "rekey", "--trace", trace, "-o", out)
    assert "No key of the trace has `^`" in (out / "README.md").read_text()
    table = json.loads((out / "rekey.json").read_text())
    assert (table["separator"], table["trace"] is not None) == ("^", True)
    taken = ("--trace", trace, "--separator", "~", "-o", tmp_path / "no")
    assert "occurs in key 'a~b'" in adapt.refused(2, "partition", "export", plan, "--to", "rekey", *taken)
