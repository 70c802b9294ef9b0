"""Every command that places keys does so by the type that they have in their source.

Spark hashes an int as a binary key of its 4 bytes, little-endian, and unlike a bigint. So the figures of int keys are
those of such binary keys, and not those of the same numbers as bigint.
"""

import json
import re

import mmh3
import numpy as np
import pyarrow as pa
import pytest

from adapt.core.stream import KeyType
from adapt.core.units.seals import as_json, hash_of
from tests.traces.small_traces import write_trace

KEYS = [7919 * (number % 300) for number in np.random.default_rng(1).zipf(1.4, 1000).tolist()]
WAYS = {
    "int": (pa.array(KEYS), KeyType.INT32),
    "bytes": (pa.array([key.to_bytes(4, "little") for key in KEYS], pa.binary()), None),
    "bigint": (pa.array(KEYS), KeyType.INT64),
}
PLANS = (
    "partition count t.trace --channels 8 --engine spark -o t.freq",
    "partition build t.freq --scheme spark --channels 8 -o hashed.plan",
    "partition build t.trace --engine spark --channels 8 -o pinned.plan",
)
COMMANDS = (
    "verdict t.trace --channels 8 --engine spark",
    "partition diff t.freq hashed.plan pinned.plan",
    "partition evaluate t.trace hashed.plan pinned.plan",
    "check t.freq --engine spark --channels 8 --limit imbalance<=9",
    "replay repartition t.trace --channels 8 --period 200s --scheme spark",
    # with two numbers of channels, Flux does not run, whose partitions hash the stored bytes
    "replay repartition t.trace --schedule 0s:8,400s:9 --period 200s --scheme spark --live --speedup 20000",
    # with several partitions per worker, a second hash of the stored bytes spreads the keys over them
    "replay flux t.trace --plan pinned.plan --policy load --partitions 1 --speedup 200",
    "replay elastic t.trace --workers 4 --pool 8 --scheme spark --speedup 200",
)


BY_PLAN = '[[operator]]\nname = "visits"\nkind = "partitioned"\nkey = "key"\nby = "plan"\nfunction = "count"\n'


@pytest.fixture(scope="module")
def ways(tmp_path_factory):
    times = pa.array([at * 1_000_000 for at in range(len(KEYS))], pa.timestamp("us", "UTC"))
    folders = {name: tmp_path_factory.mktemp(name) for name in WAYS}
    for name, folder in folders.items():
        column, key_type = WAYS[name]
        write_trace(folder / "t.trace", {"ts": times, "key": column}, key_type=key_type)
    return folders


def figures(document, path=""):
    """All numbers but times, pins in the order of keys, and those of schemes that hash the stored bytes."""
    if isinstance(document, dict | list):
        pairs = document.items() if isinstance(document, dict) else enumerate(document)
        return [each for name, part in pairs for each in figures(part, f"{path}.{name}")]
    hidden = re.search(r"uniform|consistent|_s$|build_|\.explicit\.", path)
    return [] if hidden or isinstance(document, bool | str | None) else [(path, pytest.approx(document))]


@pytest.fixture(scope="module")
def planned():
    return set()


def _made(adapt, ways, planned, monkeypatch):
    """Plans of all ways, once."""
    for folder in ways.values() if not planned else ():
        monkeypatch.chdir(folder)
        for line in PLANS:
            adapt.done(*line.split())
    planned.update(ways)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.split()[:4]))
def test_figures_are_those_of_the_type(adapt, ways, planned, monkeypatch, command):
    _made(adapt, ways, planned, monkeypatch)
    found = {}
    for name, folder in ways.items():
        monkeypatch.chdir(folder)
        found[name] = figures(adapt.json(*command.split()))
    assert found["int"] == found["bytes"]
    assert found["int"] != found["bigint"]


@pytest.mark.parametrize(
    "command",
    [
        "partition build t.trace --engine spark --channels 8 --from int.plan",
        "partition diff t.freq pinned.plan int.plan",
        "partition evaluate t.trace int.plan",
        "partition evaluate t.freq int.plan",
        "partition export int.plan --to rekey --trace t.trace -o int.rekey",
        "check t.freq --engine int.plan --limit imbalance<=9",
        "verdict t.trace --channels 8 --from int.plan",
        "replay flux t.trace --plan int.plan --policy none --speedup 200",
        "replay ordered t.trace --chain by_plan.toml --plan int.plan --backend sim",
    ],
    ids=lambda command: " ".join(command.split()[:4]),
)
def test_a_plan_for_other_integers_is_refused(adapt, ways, planned, monkeypatch, command):
    """The engine tells types apart that columns hold alike."""
    _made(adapt, ways, planned, monkeypatch)
    monkeypatch.chdir(ways["bigint"])
    (ways["bigint"] / "int.plan").write_bytes((ways["int"] / "pinned.plan").read_bytes())
    (ways["bigint"] / "by_plan.toml").write_text(BY_PLAN)
    said = adapt(*command.split())
    assert (said.code, said.out) == (3, "")
    assert re.search("is for int32 keys, but .* has int64 keys; build a plan for those", said.err.splitlines()[-1])


def test_spark_s_own_hash_says_so(adapt, ways, monkeypatch):
    monkeypatch.chdir(ways["int"])
    for channels in (8, 12):
        places = [mmh3.hash(key.to_bytes(4, "little"), 42) % channels for key in KEYS]
        line = f"partition compare t.trace --channels {channels} --scheme spark --format json"
        (row,) = json.loads(adapt.done(*line.split()).out)["rows"]
        assert row["imbalance"] == pytest.approx(max(map(places.count, places)) / len(KEYS) * channels)


def test_what_is_assumed_is_part_of_the_document(adapt, tmp_path, monkeypatch):
    """Also for a trace of the first format, which did not keep the type."""
    monkeypatch.chdir(tmp_path)
    rows = {"ts": list(range(9)), "key": ["2024-01-01", "2024-01-02", "2024-01-03"] * 3}
    write_trace(tmp_path / "new.trace", rows, key_type=KeyType.DATE)
    old = write_trace(tmp_path / "old.trace", rows).path / "_manifest.json"
    data = json.loads(old.read_bytes()) | {"format": 1}
    del data["summary"]["key_columns"], data["seal"]
    old.write_bytes(as_json({**data, "seal": hash_of(data)}))
    sentences = {
        "new.trace": "kafka clients have no serializer for date keys; they are placed by their text",
        "old.trace": "old.trace is of the first format, which did not keep the type of keys: kafka places them as"
        " string; if the source has dates, times and decimals, ingest it again",
    }
    for trace, sentence in sentences.items():
        for command in (f"verdict {trace} --engine", f"partition compare {trace} --scheme kafka --engine"):
            said = adapt.done(*command.split(), "kafka", "--channels", 2, "--format", "json")
            assert json.loads(said.out)["assumptions"] == [sentence]
            assert said.err.count(sentence) == 1
            said = adapt.done(
                *command.replace("--scheme kafka", "").split(),
                "spark",
                "--channels",
                2,
                *(["--force"] * command.startswith("verdict")),
            )
            assert (sentence in said.out) is False
    rows |= {"partition": pa.array([0, 1, 0] * 3, pa.int32())}
    write_trace(tmp_path / "topic.trace", rows)
    for name in ("new", "old", "topic"):
        adapt.done(*f"partition count {name}.trace -o {name}.freq".split())
    sentences["old.freq"] = sentences["old.trace"].replace("old.trace is", "old.freq counts a trace")
    sentences["topic.freq"] = (
        "judged: the placement of kafka, not the partitions that topic.freq does not hold; for those of the topic,"
        " give its trace to `adapt verdict`"
    )
    for counts in ("old.freq", "topic.freq"):
        said = adapt.done(
            *f"partition compare {counts} --scheme kafka --engine kafka --channels 2 --format json".split()
        )
        assert json.loads(said.out)["assumptions"] == [sentences[counts]]
    (tmp_path / "by_plan.toml").write_text(BY_PLAN)
    for command in (
        "partition build new.trace --channels 2 --engine kafka -o kafka.plan",
        "check new.freq --channels 2 --engine kafka --limit imbalance<=9",
        "check new.freq --engine kafka.plan --limit imbalance<=9",
        "replay flux new.trace --plan kafka.plan --policy none --speedup 1",
        "replay ordered new.trace --chain by_plan.toml --plan kafka.plan --backend sim -o new.run",
    ):
        said = adapt.done(*command.split(), "--format", "json")
        assert json.loads(said.out)["assumptions"] == [sentences["new.trace"]]
