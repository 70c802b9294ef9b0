"""Names in artefacts of strangers lead to no file outside of the artefact."""

import json
import os
import shutil

import pytest

from adapt.core.errors import BadInput
from adapt.core.units.seals import as_json, sealed
from adapt.traces.locations.run_folders import MANIFEST
from adapt.traces.store.manifest import read_manifest
from tests.traces.small_traces import write_trace

FOLDERS = ("a.trace", "a.freq", "a.plans", "a.run", "a.drops", "a.out", "a.cmp")
NAMES = ("../evil", "x/../../evil", "/{}/evil", "C:\\evil", "C:evil", "..\\evil", "", ".", "a//b", "a\0b", 7)


@pytest.fixture
def copied(artefacts, tmp_path, monkeypatch):
    """A copy of one artefact of each kind, beside a file that nobody may touch."""
    home = shutil.copytree(artefacts, tmp_path / "home" / "made")
    (home.parent / "evil").write_text("mine")
    monkeypatch.chdir(home)
    return home


def resealed(folder, change):
    """The manifest after a change by somebody who knows how it is sealed."""
    data = json.loads((folder / MANIFEST).read_bytes())
    change(data)
    (folder / MANIFEST).write_bytes(as_json(sealed(data)))


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_manifest_lists_files_of_its_artefact_alone(copied, kind):
    listed = json.loads((copied / kind / MANIFEST).read_bytes())["files"]
    for name in NAMES:
        given = name.format(copied.parent) if isinstance(name, str) else name
        resealed(copied / kind, lambda data, given=given: data.update(files=[*listed, {**listed[0], "name": given}]))
        with pytest.raises(BadInput, match="is not the name of a file in it"):
            read_manifest(copied / kind)
    resealed(copied / kind, lambda data: data.update(files=[*listed, listed[0]]))
    with pytest.raises(BadInput, match="lists a file twice"):
        read_manifest(copied / kind)


@pytest.mark.parametrize("kind", FOLDERS)
@pytest.mark.parametrize("through", ["a file", "a folder"])
def test_a_link_that_leads_out_is_not_followed(copied, kind, through):
    (copied.parent / "out").mkdir()
    shutil.move(copied.parent / "evil", copied.parent / "out" / "evil")
    if through == "a file":
        name = "linked"
        os.symlink(copied.parent / "out" / "evil", copied / kind / name)
    else:
        name = "folder/evil"
        os.symlink(copied.parent / "out", copied / kind / "folder")
    resealed(copied / kind, lambda data: data["files"].append({**data["files"][0], "name": name, "bytes": 4}))
    with pytest.raises(BadInput, match="is a link that leads out of it"):
        read_manifest(copied / kind)


@pytest.mark.parametrize(
    ("kind", "field", "line"),
    [
        ("a.run", "tables", "report {}"),
        ("a.plans", "plans", "report {}"),
        ("a.drops", "tables", "report {}"),
        ("a.cmp", "tables", "check {} -l latency_p99<=1ms"),
    ],
)
def test_a_table_or_plan_that_the_manifest_names_is_one_that_it_lists(adapt, copied, kind, field, line):
    def point(data):
        first = next(iter(data["summary"][field]))
        data["summary"][field] = {"../../evil": data["summary"][field][first]}

    resealed(copied / kind, point)
    said = adapt(*line.format(kind).split())
    assert said.code == 3
    assert "it lists no file '../../evil." in said.err


def test_the_side_file_of_a_plan_lies_beside_it(adapt, copied):
    data = json.loads((copied / "a.plan").read_bytes())
    os.symlink(copied.parent / "evil", "linked")
    for name in (*NAMES, "linked", "a.trace/part-00000.parquet"):
        given = name.format(copied.parent) if isinstance(name, str) else name
        (copied / "a.plan").write_bytes(as_json(sealed({**data, "explicit_file": {"name": given, "sha256": "0"}})))
        said = adapt("report", "a.plan")
        assert (said.code, "must name a file in the plan's folder" in said.err) == (3, True)


def test_kept_counts_beside_a_trace_of_a_stranger_write_nothing_outside(adapt, copied, monkeypatch):
    """Counts of too many keys to hold are copied file by file."""
    (copied / "evil").write_text("hers")
    for module in ("count", "survey"):
        monkeypatch.setattr(f"adapt.traces.counting.{module}.too_many_keys", lambda _: True)
    adapt.done("partition", "count", "a.trace", "--method", "exact", "-o", "b.freq", "--force")
    kept = [each for each in (copied / ".adapt-counts").glob("*.freq") if (each / "part-00000.parquet").exists()]
    assert len(kept) == 1
    for name in ("../../evil", str(copied.parent / "evil")):
        resealed(kept[0], lambda data, name=name: data["files"].append({"name": name, "bytes": 4, "sha256": "0"}))
        adapt.done("partition", "count", "a.trace", "--method", "exact", "-o", "b.freq", "--force")
        assert (copied.parent / "evil").read_text() == "mine"
        assert sorted(each.name for each in copied.parent.iterdir()) == ["evil", "made"]


def test_an_overwritten_comparison_gives_its_listed_files_alone_to_the_next(adapt, copied):
    """Further scenarios use the runs that are there; what somebody linked into them is not copied."""
    os.symlink(copied.parent / "evil", copied / "a.cmp" / "static-uniform.run" / "linked")
    line = "replay compare a.trace --channels 3 --scenario static-uniform --jobs 1 --seeds 2 -o a.cmp --force"
    adapt.done(*line.split())
    assert not (copied / "a.cmp" / "static-uniform.run" / "linked").exists()


@pytest.mark.parametrize("kind", ["a link", "linked results", "a pipe"])
def test_a_cache_that_leads_elsewhere_is_not_followed(adapt, copied, kind):
    """Nothing is written, dated or removed there, and a pipe blocks nobody."""
    line = "verdict 0.trace,1.trace --channels 3 --format json".split()
    for day in range(2):
        times = [(day * 3000 + at) * 1_000_000 for at in range(3000)]
        write_trace(copied / f"{day}.trace", {"ts": times, "key": [f"k{at % 7}" for at in range(3000)]})
    expected = adapt.done(*line).out
    cache, out = copied / ".adapt-counts", copied.parent / "out"
    names = [each.name for each in cache.iterdir() if each.is_file()]
    if kind == "a link":
        shutil.move(cache, out)
        os.symlink(out, cache)
    else:
        out.mkdir()
        for name in names:
            shutil.move(cache / name, out / name)
            os.symlink(out / name, cache / name) if kind == "linked results" else os.mkfifo(cache / name)
    for each in out.iterdir():
        os.utime(each, (7, 7))
    assert adapt.done(*line).out == expected
    adapt.done("clean", ".", "--older-than", "0s", "--yes")
    assert sorted(each.name for each in out.iterdir() if each.is_file()) == sorted(names)
    assert all(each.stat().st_mtime == 7 for each in out.iterdir())
