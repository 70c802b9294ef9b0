"""Outcomes of an unfinished comparison are written through no link and into no pipe."""

import os

import pytest

from adapt.traces.replay.comparing.sweeping import FILE, FOLDER, Outcomes


@pytest.mark.parametrize("name", [FOLDER, f"{FOLDER}/{FILE}"])
@pytest.mark.parametrize("kind", ["file", "folder", "nothing", "pipe"])
def test_outcomes_are_written_through_no_link(tmp_path, name, kind):
    aside, place = tmp_path / "aside", tmp_path / "scenarios" / name
    (aside / "folder").mkdir(parents=True)
    (aside / "file").write_text("mine")
    place.parent.mkdir(parents=True)
    os.mkfifo(place) if kind == "pipe" else place.symlink_to(aside / kind)
    Outcomes(tmp_path / "scenarios", None).add("a", {"p99": 1.0})
    assert Outcomes(tmp_path / "scenarios", None).get("a") == {"p99": 1.0}
    assert sorted(path.name for path in aside.rglob("*")) == ["file", "folder"]
    assert (aside / "file").read_text() == "mine"
