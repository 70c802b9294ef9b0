"""Exports: whole, the same for the same plan, and with a README that says how to use them."""

import pytest

from adapt.core.engines.names import Engine, Target
from adapt.core.errors import BadInput
from adapt.core.keys.names import HashName
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import KeyType
from adapt.traces.deploy.export import PLAN, README, TEXT, export_plan
from adapt.traces.store.manifest import Provenance, read_manifest, verify
from adapt.traces.store.plans import read_plan

MADE = Provenance("a test")
HYBRID = Plan(
    scheme=Scheme.HYBRID,
    channels=4,
    key_type=KeyType.STRING,
    hash=HashName.XXHASH64,
    replicas=10,
    explicit={"hot": 2, "": 1, None: 3, "é\n": 0},
)

REKEYED = Plan(
    Scheme.HYBRID, 4, KeyType.STRING, base=Engine.KAFKA, explicit={"hot": 2, "é\n": 0}, splits={"": (0, 1, 3)}
)


def plan_for(target):
    """A plan that the target follows."""
    return REKEYED if target is Target.REKEY else HYBRID


every_target = pytest.mark.parametrize("target", Target)


def content(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@every_target
def test_an_export_is_whole_and_the_same_again(target, tmp_path):
    exported = export_plan(plan_for(target), target, tmp_path / "one", MADE)
    manifest = read_manifest(tmp_path / "one", "deployment")
    verify(tmp_path / "one", manifest)
    assert {entry["name"] for entry in manifest.files} == {*content(tmp_path / "one")} - {"_manifest.json"}
    (tmp_path / "there").mkdir()
    export_plan(plan_for(target), target, tmp_path / "there" / "one", MADE)
    assert content(tmp_path / "one") == content(tmp_path / "there" / "one")
    assert exported.table().values("file") == [entry["name"] for entry in manifest.files]
    assert exported.as_data()["schema"] == "adapt.deployment/1"
    assert read_plan(tmp_path / "one" / PLAN) == plan_for(target)


@every_target
def test_the_readme_names_every_file_and_leaves_nothing_to_fill_in(target, tmp_path):
    export_plan(plan_for(target), target, tmp_path / "web.out", MADE)
    said = (tmp_path / "web.out" / README).read_text()
    for name in content(tmp_path / "web.out"):
        assert f"`{name}`" in said
    assert "web.out" in said
    assert "{folder}" not in said
    assert plan_for(target).content_hash() in said


def test_keys_of_the_text_are_the_bytes_that_are_hashed(tmp_path):
    export_plan(HYBRID, Target.KAFKA, tmp_path / "one", MADE)
    lines = (tmp_path / "one" / TEXT).read_text().splitlines()
    assert lines[0] == "adapt.plan.text/1"
    assert lines[-1] == "end"
    assert {"scheme hybrid", "channels 4", "key_type string", "hash xxhash64", "replicas 10", "key 3 null"} <= set(
        lines
    )
    keys = {line.split(" ")[2]: int(line.split(" ")[1]) for line in lines if line.startswith("key ")}
    assert keys.pop("null") == 3
    assert keys == {b"hot".hex(): 2, "": 1, "é\n".encode().hex(): 0}
    integers = Plan(scheme=Scheme.HYBRID, channels=4, key_type=KeyType.INT64, explicit={-2: 1})
    export_plan(integers, Target.KAFKA, tmp_path / "two", MADE)
    assert f"key 1 {(-2).to_bytes(8, 'little', signed=True).hex()}" in (tmp_path / "two" / TEXT).read_text()


def test_a_plan_that_splits_keys_is_exported_as_replacement_keys_alone(tmp_path):
    for target in set(Target) - {Target.REKEY}:
        with pytest.raises(BadInput, match="--to rekey"):
            export_plan(REKEYED, target, tmp_path / "one", MADE)
    export_plan(REKEYED, Target.REKEY, tmp_path / "one", MADE)
    assert TEXT not in content(tmp_path / "one")
