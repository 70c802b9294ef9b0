"""Comparisons on disk: their rows, and the plans they left."""

import json

import pyarrow as pa
import pytest

from adapt.core.counting.exact import count_keys, frequencies_of
from adapt.core.errors import BadInput
from adapt.core.partitioning.compare import compare_schemes
from adapt.traces.store import plans as plan_files
from adapt.traces.store.comparisons import plan_name, read_comparison, write_comparison
from adapt.traces.store.manifest import Provenance

STREAM = frequencies_of(count_keys(pa.array([f"k{at % (1 + at % 97)}" for at in range(5000)])))
MADE = Provenance("adapt partition compare")


def compared(channels=(1, 3, 2), clock=None):
    return compare_schemes(STREAM, list(channels), clock=clock)


def test_a_comparison_comes_back_with_its_rows_and_plans(tmp_path):
    comparison = compared(clock=iter(range(1000)).__next__)
    write_comparison(comparison, STREAM, tmp_path / "a.plans", MADE)
    back = read_comparison(tmp_path / "a.plans")
    assert back.table == comparison.table()
    assert back.as_data() == comparison.as_data()
    assert [back.plan(name) for name in back.plan_files] == list(comparison.plans)
    assert list(back.plan_files) == [plan_name(plan) for plan in comparison.plans]
    assert back.frequencies["distinct"] == STREAM.distinct


def test_the_content_hash_leaves_out_the_time_that_building_took(tmp_path):
    timed = compared(clock=iter(range(1000)).__next__)
    made = {"timed": timed, "untimed": compared(), "other": compared((1, 2, 3))}
    hashes = {name: write_comparison(each, STREAM, tmp_path / name, MADE).content_hash for name, each in made.items()}
    assert hashes["timed"] == hashes["untimed"] != hashes["other"]


def test_large_explicit_maps_lie_beside_their_plans_inside(tmp_path, monkeypatch):
    monkeypatch.setattr(plan_files, "MOST_KEYS_IN_JSON", 1)
    comparison = compared()
    manifest = write_comparison(comparison, STREAM, tmp_path / "a.plans", MADE)
    back = read_comparison(tmp_path / "a.plans")
    assert [back.plan(name) for name in back.plan_files] == list(comparison.plans)
    assert any(".plan." in entry["name"] for entry in manifest.files)
    on_disk = {path.name for path in (tmp_path / "a.plans").iterdir()}
    assert on_disk == {entry["name"] for entry in manifest.files} | {"_manifest.json"}


def test_a_folder_is_no_plan_but_its_plans_are_named(tmp_path):
    write_comparison(compared(), STREAM, tmp_path / "a.plans", MADE)
    with pytest.raises(BadInput, match=r"is an artefact, but a plan is a single file.*uniform\.plan"):
        plan_files.read_plan(tmp_path / "a.plans")
    assert json.loads((tmp_path / "a.plans" / "uniform.plan").read_text())["made"]["command"] == MADE.command
