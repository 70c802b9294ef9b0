"""Every JSON that the program gives is as docs/schemas says, with no field that is not named there."""

import copy
import json
import re
import tomllib
from dataclasses import fields

import numpy as np
import pyarrow as pa
import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from adapt.cli.main import run
from adapt.cli.terminal.formats import json_text
from adapt.core.check.metrics import metrics_tables
from adapt.core.costs.profile_file import write_profile
from adapt.core.fit.network.names import DropPlanner
from adapt.core.fit.network.network_file import FIELDS, read_network
from adapt.core.fit.network.settings import SheddingSettings
from adapt.core.stage.dag.settings import FIELDS as STAGE_FIELDS
from adapt.core.stage.dag.settings import read_stages
from tests.any_trace import VISITS, two_halves
from tests.core.costs.test_profile import BARE, WHOLE
from tests.docs.pages import ROOT, blocks, text_of
from tests.traces.small_traces import write_trace
from tools.schemas import compact

FOLDER = ROOT / "docs" / "schemas"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
VERSIONS = dict.fromkeys(("comparison", "difference", "evaluation", "frequencies", "report", "run", "verdict"), "2")
VERSIONS |= {"plan": "123", "verdict": "3"}
JSON = "--format json"
MOST = 20
STAGE = "--speedup 10 -o"
SHARED = [Resource.from_contents(json.loads((FOLDER / f"{name}.json").read_text())) for name in ("reading", "verdict")]
REGISTRY = SHARED @ Registry()
COMMANDS = {
    "ingest": "generate zipf --rows 3000 --keys 200 --streams 2 --bytes uniform(1B,9B) -o g.trace --json",
    "verdict": f"verdict g.trace --channels 4 {JSON}",
    "verdict on a topic": f"verdict topic.trace --channels 4 {JSON}",
    "verdict on metrics": f"verdict offsets.txt --channels 2 {JSON}",
    "verdict on a join": f"verdict g.trace --join-with g.trace --channels 4 {JSON}",
    "lint": f"lint g.trace {JSON}",
    "advise": f"advise salts --parallelism 12 --partitions 60 --operator a=x,y {JSON}",
    "advise on keys": f"advise salts keys.csv --parallelism 4 {JSON}",
    "advise which-key": f"advise which-key g.trace --needs key --channels 4 {JSON}",
    "advise workers": f"advise workers --rate 1000 --shed 10000@60s {JSON}",
    "count": f"partition count g.trace --over time --all --measure bytes --key k1 -o g.freq {JSON}",
    "count streams": f"partition count g.trace --over stream {JSON}",
    "build": f"partition build keys.csv --channels 3 -o 3.plan {JSON}",
    "build by measure": f"partition build g.freq --channels 3 --measure state=bytes --capacity 1,1,2 --pin k1=2 {JSON}",
    "build an engine's": f"partition build keys.csv --channels 3 --scheme kafka -o kafka.plan {JSON}",
    "build on": f"partition build keys.csv --channels 4 --from 3.plan -o 4.plan {JSON}",
    "compare": f"partition compare keys.csv --channels 1:4 -o keys.plans {JSON}",
    "compare split keys": "partition compare keys.csv --channels 4 --scheme split-hot --engine kafka -o split.plans"
    f" {JSON}",
    "evaluate split keys": f"partition evaluate keys.csv split.plans/split-hot.plan {JSON}",
    "export replacements": f"partition export split.plans/split-hot.plan --to rekey -o rekeyed {JSON}",
    "tolerance": f"partition tolerance --channels 4 --total 10 --capacity 3 {JSON}",
    "diff": f"partition diff keys.csv 3.plan 4.plan {JSON}",
    "evaluate": f"partition evaluate keys.csv 3.plan 4.plan {JSON}",
    "export": f"partition export kafka.plan --to kafka -o kafka {JSON}",
    "repartition": f"replay repartition t.trace --channels 3 --period 2s -o t.run {JSON}",
    "repartition live": f"replay repartition t.trace --channels 3 --period 2s --trigger worth --live -o t.live {JSON}",
    "flux": f"replay flux t.trace --workers 4 --policy load {STAGE} t.flux {JSON}",
    "flux of stages": f"replay flux t.trace --workers 4 --stages stages.toml {STAGE} t.dag {JSON}",
    "elastic": f"replay elastic t.trace --pool 4 --workers 2 --join stream:window=50ms {STAGE} t.elastic {JSON}",
    "fit": "replay fit t.trace --network net.toml --planner none,c-fit,d-fit --plans net.plans --true drift:0.5@1"
    f" --observe 3 -o t.fit {JSON}",
    "ordered": f"replay ordered t.trace --chain chain.toml --workers 1,2 --backend sim -o t.ordered {JSON}",
    "compare mechanisms": f"replay compare t.trace --channels 4 --scenario shed --jobs 1 -o t.compared {JSON}",
    "report": "report g.trace g.freq 3.plan keys.plans t.run t.live t.flux t.dag t.elastic t.fit"
    f" net.plans t.ordered t.compared net.toml {JSON}",
    "report on a topic": f"report topic.recommended.plan {JSON}",
    "cluster": f"cluster check . --master local[2] {JSON}",
    "check": f"check 3.plan --limit imbalance<=9 --limit times_best_possible --baseline 4.plan {JSON}",
}


def schema(name):
    return json.loads((FOLDER / f"{name}.json").read_text())


def closed(part):
    """A schema that allows rows of tables no column that it does not name."""
    part = copy.deepcopy(part)
    for each in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        if isinstance(each, dict) and each.get("properties") and each.get("additionalProperties"):
            each["additionalProperties"] = False
    if isinstance(part, dict):
        return {name: closed(each) for name, each in part.items()}
    return [closed(each) for each in part] if isinstance(part, list) else part


def check(document, name=None):
    named, number = re.fullmatch(r"adapt\.([a-z-]+)/(\d+)", document["schema"]).groups()
    assert named == (name or named)
    assert number in VERSIONS.get(named, "1")
    found = schema(named)
    if "mechanism" in document:  # one branch says more of what is wrong than all together
        found = {**found["$defs"][document["mechanism"]], "$schema": found["$schema"]}
    Draft202012Validator(closed(found), registry=REGISTRY).validate(cut(document))


def cut(part):
    """A document whose lists end after `MOST` items: rows of a table are alike, and to look at each takes long."""
    if isinstance(part, dict):
        return {name: cut(each) for name, each in part.items()}
    return [cut(each) for each in part[:MOST]] if isinstance(part, list) else part


@pytest.fixture(scope="module")
def made(spark, tmp_path_factory):
    """What each command printed, and the folder in which they ran."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "net.toml").write_text(two_halves("1s", 0.002))
    (folder / "chain.toml").write_text(VISITS)
    (folder / "stages.toml").write_text(
        '[[stage]]\nname = "a"\n[[stage]]\nname = "b"\ninputs = ["a"]\nkey = "stream"\n'
    )
    (folder / "keys.csv").write_text("a,30\nb,20\nc,10\nd,5\ne,5\nf,4\n")
    (folder / "offsets.txt").write_text("t:0:10\nt:1:20\nt:2:10\nt:3:900\n")
    rows = np.arange(1000)
    stream = pa.array(["east" if row % 2 else "west" for row in rows])
    columns = {"ts": rows * 5000, "key": pa.array([f"k{min(row % 13, row % 7)}" for row in rows])}
    write_trace(folder / "t.trace", {**columns, "stream": stream, "bytes": rows % 900})
    write_trace(folder / "topic.trace", {**columns, "partition": pa.array(rows % 4, pa.int32())})
    printed = {}
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        for name, line in COMMANDS.items():
            out = folder / "printed.json"
            with out.open("w") as file:
                patched.setattr("sys.stdout", file)
                code = run(line.split())
            assert code in (0, 1), name
            printed[name] = json.loads(out.read_text())
    return printed, folder


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_is_one(name):
    Draft202012Validator.check_schema(schema(name))
    assert f"[{name}]({name}.json)" in text_of("docs/schemas/README.md")


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_command_prints_is_as_its_schema_says(made, name):
    check(made[0][name])


def test_every_schema_has_an_output(made):
    seen = {document["schema"] for document in made[0].values()}
    assert {f"adapt.{name}/{VERSIONS.get(name, '1')[0]}" for name in NAMES} - seen == {
        "adapt.reading/1",  # within others
        *("adapt.manifest/1", "adapt.faults/1", "adapt.tables/1", "adapt.network/1", "adapt.stages/1"),
        *("adapt.reality/1", "adapt.rekeyed/1"),  # tests/reality
        "adapt.costs/1",
        "adapt.rekey/1",
    }
    assert "adapt.plan/2" in seen


def test_manifests_and_plans_are_as_their_schemas_say(made):
    kinds = set()
    for path in made[1].rglob("_manifest.json"):
        document = json.loads(path.read_text())
        check(document, "manifest")
        kinds.add(document["kind"])
    assert kinds == set(schema("manifest")["properties"]["kind"]["enum"])
    check(json.loads((made[1] / "rekeyed" / "rekey.json").read_text()), "rekey")
    plans = [path for path in made[1].rglob("*.plan") if path.is_file()]
    assert len(plans) > 5
    for path in plans:
        check(json.loads(path.read_text()), "plan")


def test_network_files_are_as_their_schema_says():
    known = schema("network")["properties"]
    assert {kind: tuple(known[kind]["items"]["properties"]) for kind in FIELDS} == FIELDS
    assert list(known["settings"]["properties"]) == [
        field.name.removesuffix("_us") for field in fields(SheddingSettings)
    ]
    assert known["settings"]["properties"]["planner"]["enum"] == list(DropPlanner)
    validator = Draft202012Validator(schema("network"))
    for path in sorted((ROOT / "examples").glob("*.toml")):
        document = tomllib.loads(path.read_text())
        if "node" in document:
            read_network(path.read_text())
            validator.validate(document)
    document["operator"][0]["cots"] = document["operator"][0].pop("cost")
    document["settings"]["tick"] = 60
    assert len(list(validator.iter_errors(document))) == 3


def test_files_of_stages_are_as_their_schema_says():
    known = schema("stages")["properties"]
    assert {kind: tuple(each["items"]["properties"]) for kind, each in known.items()} == STAGE_FIELDS
    (stages,) = [block.text for block in blocks("docs/flux.md") if block.file == "clicks.toml"]
    read_stages(stages)
    document, validator = tomllib.loads(stages), Draft202012Validator(schema("stages"))
    validator.validate(document)
    document["stage"][0]["imputs"] = ["a"]
    document["query"][0]["arrive"] = 60
    assert len(list(validator.iter_errors(document))) == 2


def test_faults_and_tables_are_as_their_schemas_say():
    (faults,) = [block.text for block in blocks("docs/flux.md") if block.file == "faults.json"]
    check(json.loads(faults), "faults")
    check(json.loads(json_text(metrics_tables())), "tables")


def test_cost_profiles_are_as_their_schema_says():
    validator = Draft202012Validator(schema("costs"))
    for profile in (BARE, WHOLE):
        assert not list(validator.iter_errors(tomllib.loads(write_profile(profile))))
    for name, part in WHOLE.parts():
        assert set(schema("costs")["properties"][name]["properties"]) == {each.name for each in fields(part)}
    assert list(validator.iter_errors(tomllib.loads(write_profile(WHOLE)) | {"new": 1}))


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_laid_out_as_the_tool_does(name):
    text = (FOLDER / f"{name}.json").read_text()
    assert text == compact(json.loads(text)) + "\n", "run python -m tools.schemas"
