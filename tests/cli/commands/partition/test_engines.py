"""The names of engines, wherever one is asked for."""

import json

import pytest

from adapt.core.engines.names import Engine
from tests.sealed import resealed

LAST = 2**128 - 1


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with counts, and a list of three shards of which one is closed."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"user{number},{1000 // (number + 1) + 1}\n" for number in range(200))
    (tmp_path / "counts.csv").write_text(f"key,count\n{rows}")
    ranges = [(0, LAST, {"EndingSequenceNumber": "9"}), (2**126, LAST, {}), (0, 2**126 - 1, {})]
    shards = [
        {"ShardId": f"s{at}", "HashKeyRange": {"StartingHashKey": str(start), "EndingHashKey": str(end)}}
        | {"SequenceNumberRange": {"StartingSequenceNumber": "1", **more}}
        for at, (start, end, more) in enumerate(ranges)
    ]
    (tmp_path / "shards.json").write_text(json.dumps({"Shards": shards}))
    (tmp_path / "gap.json").write_text(json.dumps({"Shards": shards[1:2]}))
    return tmp_path


def plan_of(adapt, *line):
    return adapt.json("partition", "build", "counts.csv", *line)


@pytest.mark.parametrize("engine", Engine)
def test_every_engine_is_a_scheme_and_a_base_and_judges(here, adapt, engine):
    assert plan_of(adapt, "--channels", 4, "--scheme", engine)["scheme"] == engine
    based = plan_of(adapt, "--channels", 4, "--engine", engine)
    assert (based["base"], based["verdict"]["engine"]) == (engine, engine)
    adapt.done("check", "counts.csv", "--engine", engine, "--channels", 4, "--limit", "imbalance<=4")
    adapt.done("advise", "salts", "counts.csv", "-p", 4, "--engine", engine)


def test_librdkafka_alone_is_its_default(here, adapt):
    assert plan_of(adapt, "--channels", 4, "--engine", "librdkafka")["base"] == "librdkafka:consistent_random"
    adapt.done("partition", "compare", "counts.csv", "--channels", 4, "--scheme", "librdkafka", "--scheme", "pulsar")
    adapt.done("check", "counts.csv", "--engine", "librdkafka", "--limit", "imbalance<=9")


def test_a_list_of_shards_is_kept_in_the_plan(here, adapt):
    line = ["partition", "build", "counts.csv", "--channels", 2, "-o", "k.plan", "--engine", "kinesis:shards.json"]
    adapt.done(*line)
    plan = json.loads((here / "k.plan").read_text())
    assert (plan["base"], plan["shards"]) == ("kinesis", ["0", str(2**126)])
    adapt.done("check", "k.plan", "--limit", "imbalance<=9")
    adapt.done("partition", "export", "k.plan", "--to", "plan", "-o", "out")
    assert f"shards 0 {2**126}\n" in (here / "out" / "plan.txt").read_text()
    plan["shards"] = ["0"]
    (here / "bad.plan").write_text(resealed(plan))
    said = adapt.refused(3, "partition", "export", "bad.plan", "--to", "plan", "-o", "bad")
    assert "plan field 'shards': must be 2 ascending numbers from 0" in said


@pytest.mark.parametrize(
    ("code", "channels", "engine", "said"),
    [
        (2, 4, "librdkafka:murmur3", "--engine has no choice 'librdkafka:murmur3'; did you mean 'librdkafka:murmur2'?"),
        (2, 4, "saram", "--engine has no choice 'saram'; did you mean 'sarama'?"),
        (2, 4, "hybrid", "--engine has no choice 'hybrid'"),
        (2, 3, "kinesis:shards.json", "the shard list has 2 open shards, so --channels must be 2 (got 3)"),
        (3, 1, "kinesis:gap.json", f"gap.json: a gap before shard s1, which starts at {2**126} instead of 0"),
        (3, 2, "kinesis:none.json", "none.json: cannot be read: No such file"),
        (3, 2, "kinesis:counts.csv", "counts.csv: not a list of shards"),
    ],
)
def test_a_bad_engine_is_refused_in_a_sentence(here, adapt, code, channels, engine, said):
    assert said in adapt.refused(code, "partition", "build", "counts.csv", "--channels", channels, "--engine", engine)
