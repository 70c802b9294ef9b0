"""Damage and hostile names in artefacts."""

import json
import os
import re
import shutil
from functools import partial

import pyarrow as pa
import pytest

from adapt.core.engines.names import Engine
from adapt.core.engines.rekey.build import rekey_table
from adapt.core.engines.rekey.table import RekeyTable
from adapt.core.errors import BadInput
from adapt.core.partitioning.loop.splitter import Splitter
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import KeyType
from adapt.core.units.seals import as_json, sealed
from adapt.traces.block_cache import CACHE, keep_bytes, read_kept_bytes
from adapt.traces.deploy.rekeys import read_rekey, write_rekey
from adapt.traces.deploy.splitters import read_splitter, write_splitter
from adapt.traces.locations.run_folders import MANIFEST
from adapt.traces.reports.reporting import reported
from adapt.traces.store.manifest import read_manifest
from tests.traces.small_traces import write_trace

PLACES = 7


def changed(data: bytes):
    """The file with one bit flipped at several places, and with one digit changed."""
    for at in sorted({min(len(data) - 1, place * len(data) // (PLACES - 1)) for place in range(PLACES)}):
        yield data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
    digit = re.search(rb"\d", data[len(data) // 2 :]) or re.search(rb"\d", data)
    if digit:
        at = data.index(digit[0], len(data) // 2 if digit.string != data else 0)
        yield data[:at] + bytes([ord("0") + (data[at] - ord("0") + 1) % 10]) + data[at + 1 :]


def test_a_changed_byte_of_any_file_of_an_artefact_is_noticed(artefacts, tmp_path):
    home = shutil.copytree(artefacts, tmp_path / "made")
    seen = set()
    for artefact in sorted(home.glob("a.*")):
        reader = artefact / "plan.json" if artefact.name == "a.out" else artefact
        reported(reader, check_all=True)
        files = [reader] if reader.is_file() else [each for each in sorted(artefact.rglob("*")) if each.is_file()]
        for file in files:
            whole = file.read_bytes()
            for damaged in changed(whole):
                file.write_bytes(damaged)
                with pytest.raises(BadInput):
                    reported(reader, check_all=True)
            file.write_bytes(whole)
            seen.add(file.name)
    assert {"_manifest.json", "outcomes.jsonl", "recommended.plan", "frequencies.parquet", "a.plan"} <= seen


def _splitter() -> Splitter:
    splitter = Splitter(4, window="4000rows", epsilon=1e-2)
    splitter.observe(pa.array([f"k{at % (1 + at % 23)}" for at in range(600)]))
    splitter.adopt(splitter.propose())
    return splitter


def _table() -> RekeyTable:
    pins = {f"pinned{at}": at % 8 for at in range(20)}
    return rekey_table(Plan(Scheme.HYBRID, 8, KeyType.STRING, base=Engine.KAFKA, explicit=pins, splits={"a": (0, 7)}))


@pytest.mark.parametrize(
    ("write", "read", "seal"),
    [
        (partial(write_splitter, _splitter()), read_splitter, rb"\nseal [0-9a-f]{64}"),
        (partial(write_rekey, _table()), read_rekey, rb',\n "seal": "[0-9a-f]{64}"'),
    ],
    ids=["splitter", "rekey table"],
)
def test_any_changed_digit_of_a_saved_text_is_refused(write, read, seal, tmp_path, caplog):
    """Without its seal, the text of earlier versions is read, with a line that says so."""
    file = tmp_path / "saved"
    write(file)
    whole = file.read_bytes()
    read(file)
    assert not caplog.messages
    for digit in re.finditer(rb"\d", whole):
        file.write_bytes(whole[: digit.start()] + b"%d" % ((int(digit[0]) + 1) % 10) + whole[digit.end() :])
        with pytest.raises(BadInput, match=str(file)):
            read(file)
    older, found = re.subn(seal, b"", whole)
    assert found == 1
    file.write_bytes(older)
    read(file)
    assert [message[: len(f"{file} has no seal")] for message in caplog.messages] == [f"{file} has no seal"]


def test_a_kept_result_is_read_as_it_was_or_not_at_all(tmp_path):
    place = tmp_path / CACHE / "x.profile"
    keep_bytes(place, b'{"rows": 17}')
    whole = place.read_bytes()
    assert read_kept_bytes(place) == b'{"rows": 17}'
    for at in range(len(whole)):
        place.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert read_kept_bytes(place) is None
    for garbage in (b"", b"[1", whole[:-1], whole + b" "):
        place.write_bytes(garbage)
        assert read_kept_bytes(place) is None


def test_changed_kept_results_of_a_series_are_made_anew(adapt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for day in range(2):
        times = [(day * 3000 + at) * 1_000_000 for at in range(3000)]
        write_trace(tmp_path / f"{day}.trace", {"ts": times, "key": [f"k{at % (1 + at % 23)}" for at in range(3000)]})
    line = ("verdict", "0.trace,1.trace", "--channels", "4", "--engine", "kafka", "--format", "json")
    expected = adapt.done(*line).out
    kept = {path: path.read_bytes() for path in (tmp_path / CACHE).iterdir() if path.is_file()}
    assert {path.suffix for path in kept} >= {".panes", ".profile"}
    for number in range(PLACES + 2):
        for path, whole in kept.items():
            path.write_bytes([b"garbage\xff", *changed(whole)][number])
        assert adapt.done(*line).out == expected
        assert {path: path.read_bytes() for path in kept} == kept


LINE = "replay compare a.trace --channels 3 --scenario static-uniform --jobs 1 --seeds 2 -o a.cmp --force --format json"


@pytest.mark.parametrize("unfinished", [False, True])
def test_a_changed_outcome_of_a_comparison_is_made_anew(adapt, artefacts, tmp_path, monkeypatch, unfinished):
    """Of one that is overwritten, and of one that was interrupted."""
    monkeypatch.chdir(shutil.copytree(artefacts, tmp_path / "made"))
    expected = adapt.done(*LINE.split()).out
    file = tmp_path / "made" / "a.cmp" / "outcomes" / "outcomes.jsonl"
    whole = file.read_text()
    assert json.loads(whole.splitlines()[-1].partition(" ")[2])[1]["scenario"] == "static-uniform"
    if unfinished:
        file = tmp_path / "made" / ".a.cmp.scenarios" / "outcomes" / "outcomes.jsonl"
        file.parent.mkdir(parents=True)
        shutil.rmtree("a.cmp")
    for damaged in (whole.replace('"latency_p99": 0.', '"latency_p99": 1.'), "garbage\xff\n[1]\n{}", "\x00"):
        assert damaged != whole
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(damaged, encoding="latin-1")
        assert adapt.done(*LINE.split()).out == expected


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
