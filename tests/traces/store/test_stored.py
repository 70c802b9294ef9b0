"""Artefacts in a store are whole or absent, whatever fails, whoever else writes, and wherever a run was killed."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random
from unittest.mock import Mock

import pyarrow as pa
import pytest

from adapt.core.errors import AdaptError, BadInput, EnvironmentFailure
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import KeyType
from adapt.core.units.seals import as_json
from adapt.traces.leftovers import leftovers, table_of
from adapt.traces.locations import failures
from adapt.traces.locations.location import StorePath
from adapt.traces.locations.run_folders import MANIFEST, RUN
from adapt.traces.store.atomic import whole_folder
from adapt.traces.store.manifest import Manifest, Provenance, file_entry, read_manifest, verify, write_manifest
from adapt.traces.store.plans import read_plan, write_plan
from adapt.traces.store.tables import packed
from tests.fault_proxy import Fault, seeded
from tests.tiers import SOAK


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Requests are repeated without a wait."""
    monkeypatch.setattr(failures, "_FIRST_WAIT_S", 0.001)


def make(target, text, *, force=False, local=True, last=lambda: None):
    """A small artefact of two files."""
    with whole_folder(target, force=force, local=local) as folder:
        for name in ("a", "in/b"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(text.encode())
        entries = [file_entry(folder, folder / name) for name in ("a", "in/b")]
        last()
        write_manifest(folder, Manifest("run", text, Provenance("test", {}), entries, {}))


def content(target):
    """The text of an artefact, verified, or None where there is none."""
    if not (target / MANIFEST).is_file():
        return None
    manifest = read_manifest(target)
    verify(target, manifest)
    assert {(target / manifest.run / entry["name"]).read_text() for entry in manifest.files} == {manifest.content_hash}
    return manifest.content_hash


def names(target):
    return sorted(str(each.relative_to(target)) for each in target.rglob("*"))


@pytest.mark.parametrize("local", [True, False])
def test_an_artefact_is_written_and_overwritten(bucket, local):
    target = bucket / "x.run"
    make(target, "1", local=local)
    run = read_manifest(target).run
    assert run.startswith(RUN)
    assert names(target) == sorted([MANIFEST, f"{run}/a", f"{run}/in/b"])
    with pytest.raises(EnvironmentFailure, match=r"x.run exists; add --force"):
        make(target, "2", local=local)
    make(target, "2", force=True, local=local)
    assert content(target) == "2"
    assert len(names(target)) == 3
    assert leftovers(bucket) == []


def test_what_another_run_wrote_in_the_meantime_is_not_overwritten(bucket):
    for force in (False, True):
        target = bucket / f"{force}.run"
        if force:
            make(target, "old")
        with pytest.raises(EnvironmentFailure, match="was written by another run in the meantime"):
            make(target, "1", force=force, last=lambda target=target, force=force: make(target, "2", force=force))
        assert content(target) == "2"
        assert len(names(target)) == 3


def test_parts_that_were_cleaned_away_fail_the_run(bucket):
    def clean():
        for left in leftovers(bucket):
            left.remove()

    with pytest.raises(EnvironmentFailure, match="a was removed during this run"):
        make(bucket / "x", "1", local=False, last=clean)
    assert names(bucket) == []


def test_pinned_keys_that_no_plan_names_are_removed(bucket, monkeypatch):
    """Those of the plan that is overwritten at once, those of runs that ended before by `adapt clean`."""
    monkeypatch.setattr("adapt.traces.store.plans.MOST_KEYS_IN_JSON", 1)
    plan = bucket / "x.plan"

    def write(channels):
        pins = {"a": 0, "b": channels - 1}
        mapping = Plan(Scheme.HYBRID, channels, KeyType.STRING, explicit=pins)
        write_plan(mapping, bucket / "x.plan", Provenance("test", {}), force=True)

    for channels in (2, 3, 3):
        write(channels)
    assert len(names(bucket)) == 2
    assert read_plan(plan).channels == 3
    with monkeypatch.context() as patch:
        patch.setattr("adapt.traces.locations.run_folders.write_over", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            write(4)
    (bucket / "events.0123456789ab.parquet").write_bytes(packed(pa.table({"key": ["mine"]})))
    (bucket / "text.0123456789ab.parquet").write_bytes(b"mine")
    for place in (bucket, plan):
        found = leftovers(place)
        assert [(each.path.name[:7], each.about) for each in found] == [("x.plan.", "pinned keys that no plan names")]
    found[0].remove()
    assert leftovers(bucket) == []
    assert len(names(bucket)) == 4
    assert read_plan(plan).channels == 3
    plan.write_bytes(as_json({"explicit_file": {"name": "events.0123456789ab.parquet"}}))
    write(2)
    assert "events.0123456789ab.parquet" in names(bucket)


def test_of_two_plans_at_once_the_second_fails_and_takes_its_pinned_keys_away(bucket, monkeypatch):
    monkeypatch.setattr("adapt.traces.store.plans.MOST_KEYS_IN_JSON", 1)
    plan = Plan(Scheme.HYBRID, 2, KeyType.STRING, explicit={"a": 0, "b": 1})
    made, of_store = Provenance("test", {}), StorePath.write_bytes

    def write_bytes(path, data):
        monkeypatch.setattr(StorePath, "write_bytes", of_store)
        path.write_bytes(data)
        write_plan(plan, bucket / "x.plan", made, force=True)

    monkeypatch.setattr(StorePath, "write_bytes", write_bytes)
    with pytest.raises(EnvironmentFailure, match="was written by another run in the meantime"):
        write_plan(plan, bucket / "x.plan", made, force=True)
    assert len(names(bucket)) == 2
    assert read_plan(bucket / "x.plan") == plan


@pytest.mark.parametrize("seed", range(300 if SOAK else 4))
def test_faults_leave_an_artefact_whole_or_absent(proxy, bucket, seed, monkeypatch):
    monkeypatch.setattr("tests.fault_proxy.SLOW_S", 0.01)
    target, chance = bucket / "x.run", Random(seed)
    force = bool(seed % 2)
    if force:
        make(target, "old")
    proxy.failing = seeded(seed, chance.choice([0.1, 0.4, 0.8]), tuple(Fault))
    try:
        make(target, "new", force=force)
        done = True
    except AdaptError:
        done = False
    proxy.failing = lambda _: None
    found = content(target)
    assert found == "new" if done else found in ("new", "old" if force else None)
    make(target, "again", force=True)
    assert content(target) == "again"
    for left in leftovers(bucket):
        left.remove()
    assert len(names(target)) == 3
    assert content(target) == "again"


@pytest.mark.parametrize("seed", range(50 if SOAK else 2))
def test_of_two_writers_one_wins(bucket, seed):
    target = bucket / "x.run"
    if seed % 2:
        make(target, "old")
    start, ended = threading.Barrier(2), {}

    def write(text):
        start.wait()
        time.sleep(Random(f"{seed}{text}").random() * 0.05)
        try:
            make(target, text, force=bool(seed % 2))
            ended[text] = "written"
        except EnvironmentFailure as error:
            ended[text] = str(error)

    threads = [threading.Thread(target=write, args=(text,)) for text in ("1", "2")]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    won = [text for text, end in ended.items() if end == "written"]
    assert content(target) in won
    if not seed % 2:
        assert len(won) == 1
    assert all(end == "written" or "another run" in end or "exists" in end for end in ended.values()), ended
    assert leftovers(bucket) == []


KILLED = """
import sys
from adapt.traces.locations.location import location
from tests.traces.store.test_stored import make
print("ready", flush=True)
make(location(sys.argv[1]), "new" * 300_000, force=True, local=False)
"""


@pytest.mark.skipif(not SOAK, reason="starts processes; ADAPT_SOAK=1 runs it")
@pytest.mark.parametrize("seed", range(60))
def test_a_killed_run_leaves_an_artefact_whole_or_absent(bucket, seed):
    target, text = bucket / "x.run", "new" * 300_000
    if seed % 2:
        make(target, "old")
    path = os.pathsep.join([str(Path.cwd()), str(Path.cwd() / "examples")])
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(target)], stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": path}
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(Random(seed).random() * 0.3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert content(target) in (text, "old" if seed % 2 else None)
    make(target, "again", force=True)
    assert content(target) == "again"
    for left in leftovers(target):
        left.remove()
    assert len(names(target)) == 3


def test_leftovers_are_named_with_their_age(bucket, tmp_path):
    make(bucket / "a" / "x.run", "1")
    for name in ("a/x.run/_run-20260101T000000Z-00000000/a", "a/y.run/_run-1/in/b", "a/.z.run.scenarios/s/c"):
        (bucket / name).write_bytes(b"12")
    found = leftovers(bucket)
    assert [(str(each.path.relative_to(bucket)), each.about, each.files, each.size) for each in found] == [
        ("a/.z.run.scenarios", "finished scenarios of a comparison", 1, 2),
        ("a/x.run/_run-20260101T000000Z-00000000", "parts without a manifest", 1, 2),
        ("a/y.run/_run-1", "parts without a manifest", 1, 2),
    ]
    assert all(each.age_s < 60 for each in found)
    assert [each.path for each in leftovers(bucket / "a" / "x.run")] == [found[1].path]
    assert [each.path for each in leftovers(bucket / "a" / "z.run")] == [found[0].path]
    assert len(table_of(found).rows) == 3
    for each in found:
        each.remove()
    assert leftovers(bucket) == []
    assert content(bucket / "a" / "x.run") == "1"
    with pytest.raises(BadInput, match="does not exist; give a folder with artefacts"):
        leftovers(bucket / "none")


def test_leftovers_on_a_disk_are_those_without_a_lock(tmp_path):
    (tmp_path / ".x.run.partial" / "in").mkdir(parents=True)
    (tmp_path / ".x.run.partial" / "in" / "a").write_bytes(b"12")
    (tmp_path / ".y.plan.partial").write_bytes(b"1")
    (tmp_path / ".partial").write_bytes(b"1")
    with whole_folder(tmp_path / "z.run"):
        found = leftovers(tmp_path)
        assert [(each.path.name, each.files, each.size) for each in found] == [
            (".x.run.partial", 1, 2),
            (".y.plan.partial", 1, 1),
        ]
        assert [each.path.name for each in leftovers(tmp_path / "x.run")] == [".x.run.partial"]
    for each in found:
        each.remove()
    assert sorted(os.listdir(tmp_path)) == [".partial", "z.run"]
