"""Input in a folder that is locked: bad input in one sentence from every command, not a bug."""

import os
from pathlib import Path

import pytest


@pytest.fixture
def locked(tmp_path, monkeypatch):
    """A folder whose files cannot even be looked at, whoever runs the test."""
    folder = tmp_path / "locked"
    folder.mkdir()
    looked = os.stat

    def stat(path, *arguments, **options):
        if str(path).startswith(f"{folder}{os.sep}"):
            raise PermissionError(13, "Permission denied", str(path))
        return looked(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", stat)
    return folder


@pytest.mark.parametrize(
    "line",
    [
        "report {}/x.trace",
        "ingest {}/c.csv --key k -o {}.trace",
        "ingest {}/*.csv --key k -o {}.trace",
        "partition count {}/x.trace",
        "partition build {}/c.csv --channels 2",
        "partition compare {}/c.csv --channels 2",
        "partition route {}/p.plan",
        "replay repartition {}/x.trace --channels 2",
    ],
)
def test_a_locked_folder_is_bad_input(adapt, locked, line):
    (locked / "c.csv").touch()
    told = adapt.refused(3, *line.format(locked, locked).split())
    assert "Permission denied" in told
    assert str(locked) in told


def test_a_folder_that_cannot_be_listed_is_bad_input(adapt, tmp_path, monkeypatch):
    folder = tmp_path / "unlisted"
    folder.mkdir()
    listed = Path.iterdir

    def refuse(path):
        if path == folder:
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert f"{folder}: cannot be read: Permission denied" in adapt.refused(
        3, "ingest", folder, "--key", "k", "-o", tmp_path / "x.trace"
    )
