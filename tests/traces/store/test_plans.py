"""Plans on disk: readable, whole, and the same partitioner when they are read."""

import hashlib
import json
import os
from itertools import count

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import count_keys, frequencies_of
from adapt.core.errors import BadInput, EnvironmentFailure
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.names import Construction, Scheme
from adapt.core.stream import COLUMN_TYPES, KeyType
from adapt.traces.store import disk
from adapt.traces.store.manifest import Provenance
from adapt.traces.store.plans import _clear_old_sides, read_plan, read_plan_made, write_plan

MADE = Provenance("adapt partition build a.trace", {"resources": "LLL"}, [{"name": "a.trace"}])
STREAM = frequencies_of(count_keys(pa.array([f"k{at % (1 + at % 97)}" for at in range(5000)])))
BUILT = build_plan(STREAM, Recipe(Scheme.HYBRID, max_pins=20), 4)


LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz0123456789", np.uint8)


def large(channels=7, keys=10_001):
    explicit = {f"key {at} \u2028'\"": at % channels for at in range(keys - 1)} | {None: channels - 1}
    return Plan(Scheme.HYBRID, channels, KeyType.STRING, Construction.SCAN, replicas=10, explicit=explicit)


KEYS = {
    KeyType.STRING: st.text(st.characters(codec="utf-8"), max_size=5),
    KeyType.INT64: st.integers(-(2**63), 2**63 - 1),
    KeyType.BINARY: st.binary(max_size=5),
}
plans = st.sampled_from(COLUMN_TYPES).flatmap(
    lambda kind: st.dictionaries(st.none() | KEYS[kind], st.integers(0, 8), max_size=6).map(
        lambda explicit: Plan(Scheme.HYBRID, 9, kind, Construction.SCAN, replicas=3, explicit=explicit)
    )
)


@given(plans, st.sampled_from([0, 10_000]))
def test_a_plan_comes_back_equal_with_any_keys_in_one_file_or_two(tmp_path_factory, plan, most):
    path = tmp_path_factory.mktemp("plans") / "a.plan"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adapt.traces.store.plans.MOST_KEYS_IN_JSON", most)
        content = write_plan(plan, path, MADE)
    assert read_plan(path) == plan
    assert content == plan.content_hash()


def test_a_large_explicit_map_lies_in_a_file_beside_the_plan(tmp_path):
    plan = large()
    content = write_plan(plan, tmp_path / "a.plan", MADE)
    side = f"a.plan.{content[:12]}.parquet"
    assert sorted(os.listdir(tmp_path)) == ["a.plan", side]
    data = json.loads((tmp_path / "a.plan").read_text())
    assert (data["explicit"], data["explicit_file"]["name"]) == (None, side)
    assert read_plan(tmp_path / "a.plan") == plan
    assert read_plan(tmp_path / "a.plan").explicit[None] == 6


def drawn_keys(kind, number):
    """Distinct keys as long as they are to be, 16 bytes, that nothing can compress."""
    random = np.random.default_rng(number)
    if kind is KeyType.INT64:
        return pa.array(np.unique(random.integers(-(2**63), 2**63 - 1, number)))
    letters = np.arange(256, dtype=np.uint8) if kind is KeyType.BINARY else LETTERS
    keys = pa.array([key.tobytes() for key in random.choice(letters, (number, 16))], pa.binary())
    return keys if kind is KeyType.BINARY else keys.cast(pa.string())


@pytest.mark.parametrize("kind", COLUMN_TYPES)
def test_a_plan_takes_at_most_64_bytes_a_tracked_key_and_what_its_channels_take(tmp_path, kind):
    """Keys of up to 16 bytes, text of which JSON escapes nothing; both files together."""
    channels, sizes = 100, {}
    for number in (0, 1_000, 100_000):
        keys = drawn_keys(kind, number)
        folder = tmp_path / str(number)
        folder.mkdir()
        loads = {name: [1 / 3] * channels for name in ("state", "computation", "network")}
        plan = Plan(
            Scheme.HYBRID,
            channels,
            kind,
            Construction.LEVEL,
            explicit=ExplicitMap(keys, np.arange(len(keys)) % channels),
            predicted_loads=loads,
        )
        write_plan(plan, folder / "a.plan", MADE)
        sizes[number] = sum(file.stat().st_size for file in folder.iterdir())
    assert sizes[0] < 2_000 + 100 * channels
    for number in (1_000, 100_000):
        assert sizes[number] <= sizes[0] + 64 * number


def test_a_damaged_or_missing_side_file_is_named(tmp_path):
    content = write_plan(large(), tmp_path / "a.plan", MADE)
    side = tmp_path / f"a.plan.{content[:12]}.parquet"
    whole = side.read_bytes()
    side.write_bytes(whole[:50] + bytes([whole[50] ^ 1]) + whole[51:])
    with pytest.raises(BadInput, match=f"{side.name} is damaged"):
        read_plan(tmp_path / "a.plan")
    side.unlink()
    with pytest.raises(BadInput, match=f"{side.name} cannot be read"):
        read_plan(tmp_path / "a.plan")


def test_a_replaced_plan_takes_its_side_file_along(tmp_path):
    write_plan(large(), tmp_path / "a.plan", MADE)
    write_plan(large(), tmp_path / "b.plan", MADE)
    content = write_plan(large(8), tmp_path / "a.plan", MADE, force=True)
    assert len([name for name in os.listdir(tmp_path) if name.startswith("a.plan.")]) == 1
    assert read_plan(tmp_path / "a.plan").content_hash() == content
    write_plan(BUILT, tmp_path / "a.plan", MADE, force=True)
    assert sorted(name for name in os.listdir(tmp_path) if not name.startswith("b.")) == ["a.plan"]
    assert read_plan(tmp_path / "b.plan") == large()


TOUCHES = ("write_bytes", "rename", "sync", "make_file", "remove_tree")


@pytest.mark.parametrize(
    "other", [None, large(7, 20), large(5, 20), large(5, 3)], ids=["clears", "=", "other", "small"]
)
def test_of_two_writers_at_once_neither_takes_a_side_file_of_the_other(tmp_path, monkeypatch, other):
    """While one writes, before each touch of the disk a second one writes, or clears up after it has written."""
    first = large(7, 20)
    monkeypatch.setattr("adapt.traces.store.plans.MOST_KEYS_IN_JSON", 10)
    for at in range(1, 100):
        out = tmp_path / str(at) / "a.plan"
        out.parent.mkdir()
        write_plan(large(3, 20), out, MADE)
        calls, refused = count(1), False

        def meanwhile(out=out, calls=calls, at=at):
            nonlocal refused
            if next(calls) == at:
                try:
                    _clear_old_sides(out) if other is None else write_plan(other, out, MADE, force=True)
                except EnvironmentFailure as error:
                    refused = "is being written by another run" in str(error)
                    assert refused

        with monkeypatch.context() as patched:
            for name in TOUCHES:
                real = getattr(disk, name)
                patched.setattr(disk, name, lambda *given, real=real: (meanwhile(), real(*given))[1])
            write_plan(first, out, MADE, force=True)
        left = read_plan(out)
        assert left in (first, other)
        assert left == first or not refused
        assert len(os.listdir(out.parent)) == (1 if len(left.explicit) < 10 else 2)
        if next(calls) <= at:
            break
    assert 5 < at < 99


@pytest.mark.parametrize("text", ["", "{", "[]", "\xff\xfe", "key,count\na,1\n", "[" * 100_000])
def test_what_is_no_plan_is_refused_by_name(tmp_path, text):
    (tmp_path / "a.plan").write_text(text, encoding="latin-1")
    with pytest.raises(BadInput, match=r"a\.plan is not a plan"):
        read_plan(tmp_path / "a.plan")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"schema": "adapt.plan/4"}, "schema"),
        ({"channels": 0}, "channels"),
        ({"channels": 2}, "explicit"),
        ({"scheme": "hybird"}, "did you mean 'hybrid'"),
        ({"explicit_file": {"name": "../other", "sha256": "0"}}, "explicit_file"),
        ({"explicit_file": "other"}, "explicit_file"),
        ({"replicas": 999}, "content_hash"),
    ],
)
def test_a_changed_plan_is_refused_by_file_and_field(tmp_path, change, told):
    path = tmp_path / "a.plan"
    write_plan(BUILT, path, MADE)
    changed = json.loads(path.read_text()) | change
    for seal, why in ((changed["seal"], "does not match its seal"), (None, told)):
        path.write_text(json.dumps(changed if seal else {k: v for k, v in changed.items() if k != "seal"}))
        with pytest.raises(BadInput) as refused:
            read_plan(path)
        assert str(path) in str(refused.value)
        assert why in str(refused.value)


def test_a_plan_without_a_seal_is_read_with_a_warning(adapt, tmp_path):
    path = tmp_path / "a.plan"
    write_plan(BUILT, path, MADE)
    data = json.loads(path.read_text())
    assert data.pop("seal") == hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps(data))
    said = adapt.done("check", path, "-l", "channels<=9")
    assert said.err.count("a.plan has no seal, as files of earlier versions") == 1


def test_a_plan_changed_on_purpose_is_read_without_its_content_hash(tmp_path):
    path = tmp_path / "a.plan"
    write_plan(BUILT, path, MADE)
    data = json.loads(path.read_text()) | {"replicas": 999}
    del data["content_hash"], data["made"], data["seal"]
    path.write_text(json.dumps(data))
    assert read_plan(path).replicas == 999
    assert read_plan_made(path) == {}


def test_what_was_foreseen_of_a_plan_is_sealed(tmp_path):
    """What decides a check or a report is as it was measured, and not part of the identity of the mapping."""
    content = write_plan(BUILT, tmp_path / "a.plan", MADE)
    data = json.loads((tmp_path / "a.plan").read_text())
    assert data["content_hash"] == content == BUILT.content_hash()
    for field in ("metrics", "predicted_loads", "answer", "made", "parent"):
        (tmp_path / "b.plan").write_text(json.dumps(data | {field: {"imbalance": 1.0}}))
        with pytest.raises(BadInput, match="does not match its seal"):
            read_plan(tmp_path / "b.plan")
