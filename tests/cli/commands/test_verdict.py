"""`adapt verdict`: from a raw file to what to do, with the plan it speaks of, in one command."""

import json
import os
import shlex
import shutil
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import adapt as adapt_package
from adapt import verdict as judge
from adapt.cli.main import run
from adapt.core.engines.names import Engine
from adapt.core.engines.registry import definition_of
from adapt.traces.spark import session
from tests.traces.small_traces import write_trace


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A current folder with a source of skewed keys."""
    monkeypatch.chdir(tmp_path)
    chance = np.random.default_rng(5)
    keys = (1000 ** chance.random(6_000)).astype(int)
    rows = [f"{1_700_000_000 + at},k{key}" for at, key in enumerate(keys)]
    (tmp_path / "clicks.csv").write_text("\n".join(["time,user", *rows]) + "\n")
    return tmp_path


LOG = [f"{1_700_000_000 + at} {'b' if at < 2 else 'a'} is {'up' if at < 2 else 'down by 2'}" for at in range(10)]
"""Lines of which the first has four words, so that longer ones are rejected: a has all but two of ten rows."""


@pytest.fixture
def log(here):
    (here / "some.log").write_text("\n".join(LOG) + "\n")
    return "some.log"


@pytest.fixture(scope="module")
def lossy_trace(spark, tmp_path_factory):
    """The trace of that log."""
    folder = tmp_path_factory.mktemp("lossy")
    (folder / "some.log").write_text("\n".join(LOG) + "\n")
    assert run(["ingest", str(folder / "some.log"), "--key", "_c1", "-o", str(folder / "some.trace"), "-q"]) == 0
    return folder / "some.trace"


HALF = {
    "rows": 10,
    "rejected": 8,
    "reasons": {"6 fields instead of 4": 8},
    "first_rejected": {"file": "some.log", "line": 3, "text": "1700000002 a is down by 2"},
    "guesses": [
        "format csv",
        "delimiter space",
        "no header line",
        "time from _c0",
        'time format epoch_s (times of 2023; for GPS seconds, of 2033: --time "timestamp_seconds(_c0 + 315964782)")',
    ],
}


@pytest.mark.usefixtures("spark")
def test_a_source_of_which_rows_are_lost_is_not_judged_unless_asked_to(adapt, here, log):
    line = ("verdict", log, "--key", "_c1", "--channels", "2")
    lost = "80 % of all rows were rejected: 6 fields instead of 4 (8); first: some.log line 3: '1700000002 a"
    sentence = adapt.refused(3, *line)
    assert "8 of 10 rows were rejected, more than --max-rejects allows (1%): 6 fields instead of 4 (8)" in sentence
    assert "accept the loss by --max-rejects 80%" in sentence
    assert not (here / "some.trace").exists()

    said = adapt.done(*line, "--max-rejects", "80%")
    assert f"warning: some.trace: {lost}" in said.err
    assert f"{lost.partition(';')[0]}." in " ".join(said.out.split())
    assert judge(log, key="_c1", channels=2, max_rejects="8").reading.as_data() == HALF
    assert adapt(*line).code == 3  # with the trace that was kept
    assert "8 of 10 rows" in adapt.refused(3, "verdict", "some.trace", "--channels", 2)

    (here / "m.toml").write_text('key = "_c1"\nmax-rejects = "9"\n')
    document = adapt.json("verdict", log, "--mapping", "m.toml", "--channels", 2, "--force")
    assert document["readings"] == [{"trace": "some.trace", **HALF}]


@pytest.mark.parametrize(
    "line",
    [
        *("lint some.trace", "report some.trace", "check some.trace --limit rows>0", "partition count some.trace"),
        *("partition compare some.trace --channels 2 -o 2.plans", "partition build some.trace --channels 2 -o 2.plan"),
        *("advise salts some.trace --parallelism 2", "replay flux some.trace --workers 2"),
    ],
)
def test_each_command_on_a_trace_says_what_its_source_lost(adapt, here, lossy_trace, line):
    shutil.copytree(lossy_trace, "some.trace")
    said = adapt.done(*line.split(), "--format", "json")
    assert json.loads(said.out)["readings"] == [{"trace": "some.trace", **HALF}]
    assert said.err.count("80 % of all rows were rejected: 6 fields instead of 4 (8); first: some.log line 3") == 1


def test_what_is_made_from_a_trace_carries_on_what_its_source_lost(adapt, here, lossy_trace):
    shutil.copytree(lossy_trace, "some.trace")
    for line in (
        "partition count some.trace --method exact -o 2.freq",
        "partition build 2.freq --channels 2 -o 2.plan",
        "partition build 2.freq --channels 2 --from 2.plan -o 3.plan",
        "partition compare 2.freq --channels 2 -o 2.plans",
        "replay repartition some.trace --channels 2 --period 1s -o 2.run",
        "replay compare some.trace --channels 2 --scenario static-hybrid --seeds 1 -o 3.run",
    ):
        adapt.done(*line.split())
    (here / "some.trace").rename(here / "elsewhere")
    for line in (
        *("check 3.plan --limit imbalance>0", "check 2.plans --limit imbalance>0", "check 2.run --limit imbalance>0"),
        *("report 2.plan --html 2.html", "report 3.run", "partition export 2.plan --to kafka -o 2.kafka"),
        *("partition diff 2.freq 2.plan 3.plan", "partition evaluate 2.freq 2.plan"),
    ):
        said = adapt.done(*line.split(), "--format", "json")
        assert json.loads(said.out)["readings"] == [{"trace": "some.trace", **HALF}], line
        assert said.err.count("warning: some.trace: 80 % of all rows were rejected: 6 fields") == 1, line
    assert "80\u00a0% of all rows were rejected" in (here / "2.html").read_text()


ASK = ("verdict", "clicks.csv", "--key", "user", "--engine", "kafka", "--channels", "6")


@pytest.mark.usefixtures("spark")
def test_a_raw_file_is_answered_in_one_command(adapt, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    said = adapt.done(*ASK)
    assert len(said.out.rstrip("\n").splitlines()) <= 24
    assert max(map(len, said.out.splitlines())) <= 80
    assert said.out.startswith("Verdict: Pin ")
    following = said.out.rstrip("\n").splitlines()[-1].removeprefix("Next: adapt ")
    adapt.done(*following.split())
    assert (here / "clicks.kafka" / "README.md").exists()

    document = adapt.json(*ASK)
    verdict = document["verdict"]
    assert (document["status"], document["plan"]) == ("act", "clicks.recommended.plan")
    assert verdict["out_of_sample"]["past"] == 6
    diff = adapt.json("partition", "evaluate", "clicks.trace", document["plan"])
    assert diff["plans"][-1]["measured"]["imbalance"] == pytest.approx(verdict["imbalance_after"])
    assert adapt.done(*ASK, "--format", "md").out.count("Verdict: Pin") == 1


def write_topic(path, seed, keys, share, engines):
    """Write a topic of 6 partitions, a share of whose records one engine placed and another the rest.

    Returns:
        The partition of each record, and by each engine.
    """
    chance = np.random.default_rng(seed)
    names = pa.array([f"k{key}" for key in (keys ** chance.random(4_000)).astype(int)])
    homes = [definition_of(engine).placement(6, None).channels_of(names) for engine in engines]
    partition = np.where(chance.random(len(names)) < share, *homes).astype(np.int32)
    write_trace(path, {"ts": np.arange(len(names)) * 1000, "key": names, "partition": partition})
    return partition, homes


def test_a_topic_is_judged_by_the_partitions_of_its_records(adapt, here):
    partition, homes = write_topic(here / "topic.trace", 1, 500, 0.8, (Engine.LIBRDKAFKA, Engine.KAFKA))
    ask = ("verdict", "topic.trace", "--channels", "6")
    document = adapt.json(*ask)
    true = np.bincount(partition, minlength=6)
    assert document["verdict"]["engine"] == "the topic"
    assert document["verdict"]["imbalance"] == pytest.approx(true.max() / true.mean())
    assert document["audit"]["loads"] == pytest.approx(list(true / true.sum()))
    producers = {each["name"]: each for each in document["audit"]["producers"]}
    assert producers["librdkafka's CRC32"]["share"] == pytest.approx(0.8, abs=0.02)
    assert producers.keys() == {"librdkafka's CRC32", "Java's murmur2"}
    said = adapt.done(*ask).out
    assert "joins and order by key are broken" in " ".join(said.split())
    assert "Audit of 6 partitions" in adapt.done("report", "topic.recommended.plan").out
    assert document["audit"]["judged"] == "Judged: the topic's partitions."
    alone = [each for each in document["verdict"]["remedies"] if each["way"] == "one partitioner for all producers"]
    assert [each["partitioner"] for each in alone] == ["librdkafka's CRC32", "Java's murmur2"]
    for each, home in zip(alone, homes, strict=True):
        windows = [np.bincount(home[at : at + 500], minlength=6).max() * 6 / 500 for at in range(2_500, 4_000, 500)]
        assert each["imbalance"] == pytest.approx(np.bincount(home).max() * 6 / 4_000)
        assert (each["later"], each["worst"]) == (pytest.approx(np.median(windows)), pytest.approx(max(windows)))
    lines = said.splitlines()
    assert [line.startswith("Audit of 6") for line in lines].index(True) <= 3  # the cause is told first
    assert "With one partitioner in all producers, the imbalance is" in " ".join(said.split())


@pytest.mark.parametrize("given", ["kafka", "librdkafka"])
def test_a_given_engine_is_judged_instead_of_the_topics_mixture(adapt, here, given):
    """Of a topic that Java wrote but for an eighth, `--engine kafka` judges what all of Java would do."""
    _, homes = write_topic(here / "topic.trace", 4, 60, 0.87, (Engine.KAFKA, Engine.LIBRDKAFKA))
    ask = ("verdict", "topic.trace", "--channels", "6")
    own, stated = (adapt.json(*ask, *more) for more in ([], ["--engine", given, "--force"]))
    model = np.bincount(homes[0 if given == "kafka" else 1], minlength=6)
    engine = stated["verdict"]["engine"]
    assert engine.startswith(given)
    assert stated["verdict"]["imbalance"] == pytest.approx(model.max() / model.mean())
    assert stated["verdict"]["imbalance"] != pytest.approx(own["verdict"]["imbalance"])
    assert f"Judged: the placement of {engine}, as given, not the topic's" in stated["audit"]["sentence"]
    compared = adapt.json("partition", "compare", "topic.trace", "--channels", "6", "--engine", engine)
    assert compared["verdict"]["imbalance"] == pytest.approx(stated["verdict"]["imbalance"])


def test_windows_of_a_topic_have_its_true_partitions(adapt, here):
    """A sticky producer: 40 % null keys, that stay on one partition for a while."""
    chance = np.random.default_rng(2)
    keys = np.array([f"k{key}" for key in chance.integers(0, 400, 4_000)], object)
    partition = definition_of(Engine.KAFKA).placement(6, None).channels_of(pa.array(keys))
    nulls = chance.random(4_000) < 0.4
    partition[nulls] = (np.arange(4_000) // 1_300 * 5 % 6)[nulls]
    keys[nulls] = None
    columns = {"ts": np.arange(4_000) * 1000, "key": pa.array(keys.tolist()), "partition": partition.astype(np.int32)}
    write_trace(here / "topic.trace", columns)
    found = adapt.json("verdict", "topic.trace", "--channels", "6")
    true = [np.bincount(partition[first : first + 500], minlength=6).max() * 6 / 500 for first in range(0, 4_000, 500)]
    windows = found["verdict"]["over_time"]["windows"]
    assert [each["imbalance"] for each in windows] == pytest.approx(true)
    tested = found["verdict"]["out_of_sample"]
    assert tested["tracks"]["today"]["imbalances"] == pytest.approx(true[tested["past"] :])
    assert found["verdict"]["class"] != "balanced"


@pytest.mark.usefixtures("spark")
def test_the_trace_is_used_again_until_the_source_changes(adapt, here):
    first = adapt.done(*ASK)
    assert "wrote clicks.trace" in first.err
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(session, "spark_session", lambda *_, **__: pytest.fail("Spark was started"))
        again = adapt.done(*ASK)
        assert adapt.done("verdict", "clicks.trace", "--engine", "kafka", "--channels", 6).out == again.out
    assert again.out == first.out
    assert "using clicks.trace" in again.err
    assert "made from another source" in adapt.refused(4, *ASK, "--time-zone", "CET")
    with (here / "clicks.csv").open("a") as source:
        source.write("1700009000,k1\n")
    assert "use --force or -o TRACE" in adapt.refused(4, *ASK)
    assert "wrote clicks.trace" in adapt.done(*ASK, "--force").err
    assert "wrote other.trace" in adapt.done(*ASK, "-o", "other.trace").err


def test_a_trace_of_another_mapping_content_or_salt_is_not_used_again(adapt, here, monkeypatch):
    """Whatever of what made it changed: a stream of the mapping file, a source of the same size and time, the salt."""

    def ingested(_sources, path, *_, **__):
        write_trace(path, {"ts": np.arange(300) * 1_000_000, "key": pa.array([f"k{at % 7}" for at in range(300)])})
        return SimpleNamespace(guesses=())

    monkeypatch.setattr("adapt.traces.ingest.ingest.ingest", ingested)
    mapping = 'hash-keys = true\n[[stream]]\nname = "a"\npaths = ["*.csv"]\nkey = "user"\n'
    (here / "m.toml").write_text(mapping)
    ask = ("verdict", "clicks.csv", "--mapping", "m.toml", "--channels", "6")
    monkeypatch.setenv("ADAPT_SALT", "one")
    adapt.done(*ask)
    (here / "m.toml").write_text(f"# a remark\n{mapping}")
    assert "using clicks.trace" in adapt.done(*ask).err
    (here / "m.toml").write_text(mapping.replace('"user"', "\"concat(user, 'x')\""))
    assert "with other options; use --force" in adapt.refused(4, *ask)
    (here / "m.toml").write_text(mapping)
    monkeypatch.setenv("ADAPT_SALT", "two")
    assert "with other options; use --force" in adapt.refused(4, *ask)
    monkeypatch.setenv("ADAPT_SALT", "one")
    source = here / "clicks.csv"
    facts, text = source.stat(), source.read_text()
    source.write_text(text[:-2] + ("1" if text[-2] != "1" else "2") + "\n")
    os.utime(source, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert source.stat().st_size == facts.st_size
    assert "made from another source" in adapt.refused(4, *ask)


def test_a_recommended_plan_of_another_question_is_not_overwritten(adapt, here):
    chance = np.random.default_rng(5)
    keys = pa.array([f"k{key}" for key in (1000 ** chance.random(6_000)).astype(int)])
    write_trace(here / "clicks.trace", {"ts": np.arange(6_000) * 1_000_000, "key": keys})
    ask = ("verdict", "clicks.trace", "--channels")
    adapt.done(*ask, 6)
    adapt.done(*ask, 6, "--max-pins", 2)
    before = (here / "clicks.recommended.plan").read_bytes()
    for line, told in (((*ask, 7), "7 workers over spark"), ((*ask, 6, "--engine", "kafka"), "6 workers over kafka")):
        said = adapt.refused(4, *line)
        assert f"is a plan for 6 workers over spark, not {told}; use --force" in said
        assert (here / "clicks.recommended.plan").read_bytes() == before
    adapt.done(*ask, 7, "--force")
    assert (here / "clicks.recommended.plan").read_bytes() != before


@pytest.mark.usefixtures("spark")
def test_limits_choose_the_plan_and_the_frontier_shows_the_others(adapt, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    free = adapt.json(*ASK)
    said = adapt.done("verdict", "clicks.trace", *ASK[4:], "--max-pins", 2)
    assert "max pins 2" in " ".join(said.out.splitlines()[:2])
    assert len(said.out.rstrip("\n").splitlines()) <= 24
    for limit in (["--max-pins", 2], ["--max-migration", "4%"], ["--max-pins", 3, "--max-migration", 0.5]):
        document = adapt.json("verdict", "clicks.trace", *ASK[4:], *limit)
        verdict, points = document["verdict"], document["frontier"]["points"]
        most = verdict["limits"]["max_migration"], verdict["limits"]["max_pins"]
        (chosen,) = (point for point in points if point["recommended"])
        assert (chosen["pins"], chosen["imbalance"]) == (verdict["keys_to_pin"], verdict["imbalance_after"])
        (told,) = (each for each in verdict["remedies"] if each["recommended"])
        assert (chosen["out_of_sample"], chosen["state_moved"]) == (told["later"], pytest.approx(told["state_moved"]))
        assert all(point["pins"] <= (most[1] or 1e9) for point in points)
        assert all(point["state_moved"] <= (most[0] or 1) * (1 + 1e-9) for point in points)
        plan = json.loads((here / document["plan"]).read_text())
        assert len(plan["explicit"]) == verdict["keys_to_pin"]
    (marked,) = (point for point in free["frontier"]["points"] if point["recommended"])
    assert marked["pins"] == free["verdict"]["keys_to_pin"]
    said = adapt.done("verdict", "clicks.trace", *ASK[4:], "--all").out
    assert "Imbalance against state moved" in said
    assert max(map(len, said.splitlines())) <= 80
    adapt.done("report", "clicks.recommended.plan", "--html", "page.html")
    page = (here / "page.html").read_text()
    assert all(word in page for word in ("state moved (share of all state)", "lower bound", "today", "knee"))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--max-pins 2 --max-migration 0%", "--max-migration 0% and --max-pins 2 exclude each other"),
        ("--max-migration 101%", "(got 101%)"),
    ],
)
def test_limits_that_allow_nothing_are_refused(adapt, here, line, told):
    assert told in adapt.refused(2, *ASK, *line.split())


@pytest.mark.usefixtures("spark")
def test_what_no_verdict_can_be_given_on_is_said_in_one_sentence(adapt, here):
    rows = "\n".join(f"{1_700_000_000 + at},c{at % 3}" for at in range(6_000))
    (here / "cities.csv").write_text(f"time,city\n{rows}\n")
    few = adapt.done("verdict", "cities.csv", "--key", "city", "--channels", 8).out
    assert "Only 3 keys have any load, fewer than workers." in few
    assert "Only 3 keys" in adapt.done("partition", "compare", "cities.trace", "--channels", 8).out


@pytest.mark.usefixtures("spark")
def test_a_current_plan_of_another_engine_or_key_type_is_refused(adapt, here):
    adapt.done(*ASK)
    adapt.done("partition", "build", "clicks.trace", "--channels", 6, "--engine", "kafka", "-o", "kafka.plan")
    other = adapt.refused(2, "verdict", "clicks.trace", "--engine", "flink", "--channels", 6, "--from", "kafka.plan")
    assert other == "adapt: kafka.plan is a plan over kafka, not flink; leave out --engine or --from"
    adapt.done("verdict", "clicks.trace", "--channels", 6, "--from", "kafka.plan")
    adapt.done("generate", "zipf", "--rows", 2000, "--keys", 100, "--key-type", "int64", "-o", "numbers.trace")
    adapt.done("partition", "build", "numbers.trace", "--channels", 6, "-o", "numbers.plan")
    for command in ("verdict", "partition build"):
        out = ["-o", "new.plan"] if command == "partition build" else []
        said = adapt(*command.split(), "clicks.trace", "--channels", 6, "--from", "numbers.plan", *out)
        assert said.code == 3
        *_, told = said.err.splitlines()
        assert told.startswith("adapt: the current plan is for int64 keys, but the count has string keys; ")
    assert (here / "clicks.trace").exists()


def test_every_command_has_the_same_best_possible_imbalance(adapt, here):
    """Of 7 equal keys on 4 workers two share one: 8 / 7."""
    keys = pa.array([f"k{at % 7}" for at in range(7_000)])
    write_trace(here / "even.trace", {"ts": np.arange(7_000) * 1_000_000, "key": keys})
    best = pytest.approx(8 / 7)

    def said(*words):
        return adapt.json(*words)

    verdict = said("verdict", "even.trace", "--channels", "4", "--all")
    judged = verdict["verdict"]
    assert judged["best_possible"] == best
    assert judged["confidence"]["best_possible_low"] <= 8 / 7 <= judged["confidence"]["best_possible_high"]
    assert [each["best_possible"] for each in judged["over_time"]["windows"]] == pytest.approx([8 / 7] * 12, abs=0.01)
    assert judged["out_of_sample"]["floors"] == pytest.approx([8 / 7] * 6, abs=0.01)
    assert verdict["frontier"]["points"][-1]["bound"] == best
    compared = said("partition", "compare", "even.trace", "--channels", "4")
    assert [row["best_possible"] for row in compared["rows"]] == pytest.approx([8 / 7] * len(compared["rows"]))
    built = said("partition", "build", "even.trace", "--channels", "4", "-o", "even.plan")
    assert built["metrics"]["best_possible"] == best
    periods = said("replay", "repartition", "even.trace", "--channels", "4", "--period", "1000rows")
    assert [row["best_possible"] for row in periods["periods"]] == pytest.approx(
        [8 / 7] * len(periods["periods"]), abs=0.01
    )
    (here / "even.csv").write_text("key,count\n" + "".join(f"k{at},10\n" for at in range(7)))
    useful = said("advise", "salts", "even.csv", "--parallelism", "4")
    assert useful["useful"][0]["best_possible"] == best
    assert adapt("check", "even.plan", "--limit", "best_possible <= 1.14").code == 1


def test_where_another_key_is_needed_its_row_names_the_command_that_finds_one(adapt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text("key,count\n" + "".join(f"k{at},{1000 - at}\n" for at in range(3)))
    shown = adapt.done("verdict", "counts.csv", "--channels", 8).out
    assert [line for line in shown.splitlines() if line.startswith("another key") and "adapt advise which-key" in line]


def test_another_key_is_named_with_its_imbalance_where_columns_are_at_hand(adapt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chance = np.random.default_rng(3)
    users, ranks = chance.integers(0, 500, 6_000), chance.random(6_000)
    rows = [f"{1_700_000_000 + at},{'a' if ranks[at] < 0.7 else 'd'},u{users[at]}" for at in range(6_000)]
    (tmp_path / "one two.csv").write_text("\n".join(["time,shop,user", *rows]) + "\n")
    asked = ("--key", "shop", "--engine", "kafka", "--channels", "2")
    found = json.loads(adapt.done("verdict", "one two.csv", *asked, "--format", "json").out)
    other = found["verdict"]["remedies"][-1]
    truth = adapt_package.advise.which_key("one two.csv", engine="kafka", channels=2)
    best = next(each for each in truth.candidates if each.key == "user")
    assert truth.recommended is best
    assert (other["key"], other["later"], other["worst"], other["candidates"]) == ("user", best.later, best.worst, 3)
    command = "adapt advise which-key 'one two.csv' --engine kafka --channels 2"
    assert other["command"] == found["next"] == command
    assert f"3 columns; state what must stay together: {command} --needs COLUMN." in found["verdict"]["sentence"]
    adapt.done(*shlex.split(found["next"])[1:])

    adapt.done("ingest", "one two.csv", "--key", "shop", "--keep", "user", "-o", "kept.trace")
    kept = json.loads(adapt.done("verdict", "kept.trace", *asked[2:], "--format", "json").out)
    assert kept["verdict"]["remedies"][-1] == {**other, "candidates": 2, "command": kept["next"]}
    assert kept["next"] == "adapt advise which-key kept.trace --engine kafka --channels 2"
    adapt.done("report", "kept.recommended.plan", "kept.trace", "--html", "kept.html")
    assert "Candidate keys (2 workers, kafka; * recommended)" in (tmp_path / "kept.html").read_text()
    adapt.done("report", "kept.trace", "--html", "alone.html")
    assert "Candidate keys (8 workers, spark; * recommended)" in (tmp_path / "alone.html").read_text()
    assert "another key" not in adapt.done("verdict", "one two.csv", *asked, "--max-imbalance", 1.9).out
