"""Artefacts are whole or absent, whatever fails, whoever else writes, and wherever a run was killed."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adapt.core.errors import EnvironmentFailure
from adapt.traces.leftovers import leftovers
from adapt.traces.locations.run_folders import MANIFEST
from adapt.traces.store import disk
from adapt.traces.store.atomic import check_free, whole_folder, write_whole

STEPS = ("make_folder", "make_file", "write_bytes", "sync", "rename", "exchange", "remove_tree")


def make(target: Path, text: str, *, force: bool = False) -> None:
    """A small artefact of a few files."""
    with whole_folder(target, force=force) as folder:
        disk.make_folder(folder / "inner")
        disk.write_bytes(folder / "inner" / "data", text.encode())
        disk.write_bytes(folder / MANIFEST, text.encode())


def content(folder: Path) -> dict[str, bytes] | None:
    """Every file of an artefact by name, or None where there is none."""
    if not folder.exists():
        return None
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def of(text: str) -> dict[str, bytes]:
    return {"inner/data": text.encode(), MANIFEST: text.encode()}


def fail_at(monkeypatch: pytest.MonkeyPatch, at: int, error: OSError) -> SimpleNamespace:
    """Make the n-th touch of the disk fail, once."""
    seen = SimpleNamespace(calls=0, failed="")

    def failing(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            seen.calls += 1
            if seen.calls == at:
                seen.failed = name
                raise error
            return real(*args)

        return call

    for name in STEPS:
        monkeypatch.setattr(disk, name, failing(name, getattr(disk, name)))
    return seen


def test_a_folder_appears_whole(tmp_path):
    make(tmp_path / "new", "1")
    assert content(tmp_path / "new") == of("1")
    assert os.listdir(tmp_path) == ["new"]


def test_a_body_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="bug"), whole_folder(tmp_path / "new") as folder:
        int((folder / MANIFEST).write_bytes(b"half") and "bug")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_of_others_is_never_replaced(tmp_path, force):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(EnvironmentFailure):
        make(tmp_path / "mine", "1", force=force)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


def test_a_link_is_replaced_and_not_what_it_names(tmp_path):
    make(tmp_path / "real", "1")
    (tmp_path / "link").symlink_to("real")
    make(tmp_path / "link", "2", force=True)
    assert content(tmp_path / "real") == of("1")
    assert content(tmp_path / "link") == of("2")
    assert not (tmp_path / "link").is_symlink()


def test_a_missing_parent_is_named(tmp_path):
    with pytest.raises(EnvironmentFailure, match=r"the folder .*/absent does not exist; create it"):
        make(tmp_path / "absent" / "new", "1")


def test_an_unwritable_parent_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(EnvironmentFailure, match="is not writable; choose another -o"):
        check_free(tmp_path / "new", force=False)


def test_what_a_killed_run_left_is_cleared(tmp_path):
    left = tmp_path / ".new.partial"
    (left / "deep").mkdir(parents=True)
    (left / "deep" / "half").write_text("half")
    (left / "_owner").write_text("1")
    make(tmp_path / "new", "1")
    assert content(tmp_path / "new") == of("1")
    assert os.listdir(tmp_path) == ["new"]


@pytest.mark.parametrize("leave", [os.mkdir, lambda partial: os.link(partial.with_name("mine"), partial)])
@pytest.mark.parametrize("write", [make, lambda out, text: write_whole(out, text.encode())], ids=["folder", "file"])
def test_nothing_is_written_into_what_was_left(tmp_path, leave, write):
    """It may be another user's, or have a second name."""
    (tmp_path / "mine").write_text("mine")
    leave(tmp_path / ".new.partial")
    left = os.open(tmp_path / ".new.partial", os.O_RDONLY)
    write(tmp_path / "new", "1")
    assert not os.path.samestat(os.fstat(left), os.stat(tmp_path / "new"))
    assert (tmp_path / "mine").read_text() == "mine"
    os.close(left)


def test_nothing_is_written_into_what_is_being_cleaned_up(tmp_path, monkeypatch):
    def remove(path: Path) -> None:
        with pytest.raises(EnvironmentFailure, match="new is being written by another run"):
            make(tmp_path / "new", "1")
        disk.remove_tree(path)

    (tmp_path / ".new.partial").mkdir()
    monkeypatch.setattr("adapt.traces.leftovers.remove_tree", remove)
    leftovers(tmp_path)[0].remove()
    assert os.listdir(tmp_path) == []


def test_an_artefact_set_aside_by_a_killed_run_comes_back(tmp_path):
    make(tmp_path / "old", "1")
    (tmp_path / "old").rename(tmp_path / ".old.replaced")
    with pytest.raises(EnvironmentFailure, match="old exists"):
        make(tmp_path / "old", "2")
    assert content(tmp_path / "old") == of("1")
    assert os.listdir(tmp_path) == ["old"]


HOLDER = """
import sys
from pathlib import Path
from adapt.traces.store.atomic import whole_folder
with whole_folder(Path(sys.argv[1])) as folder:
    (folder / "data").write_text("theirs")
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_run_is_refused_and_told_whom_it_waits_for(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "new")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(EnvironmentFailure, match=rf"written by another run \(process {holder.pid}\)") as refused:
            make(tmp_path / "new", "ours")
        assert refused.value.exit_code == 4
        holder.stdin.close()
        assert holder.wait(timeout=60) == 0
    assert content(tmp_path / "new") == {"data": b"theirs"}


def test_a_killed_run_holds_no_claim(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "new")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        holder.kill()
    assert os.listdir(tmp_path) == [".new.partial"]
    make(tmp_path / "new", "ours")
    assert content(tmp_path / "new") == of("ours")


@pytest.mark.parametrize("swaps", [True, False], ids=["names can be swapped", "names cannot be swapped"])
@pytest.mark.parametrize("old", [None, "old"])
@pytest.mark.parametrize("litter", [False, True])
def test_every_touch_of_the_disk_may_fail(tmp_path, monkeypatch, swaps, old, litter):
    """Fail the first, the second, ... touch: the old state or the new one stands, and the next run succeeds."""
    if not swaps:
        monkeypatch.setattr(disk, "exchange", lambda *_: False)
    before = None if old is None else of(old)
    for at in range(1, 200):
        target = tmp_path / str(at) / "thing"
        target.parent.mkdir()
        if old is not None:
            make(target, old)
        if litter:
            (target.parent / ".thing.partial" / "deep").mkdir(parents=True)
        number = (errno.EIO, errno.ENOSPC)[at % 2]
        with monkeypatch.context() as patched:
            seen = fail_at(patched, at, OSError(number, os.strerror(number)))
            try:
                make(target, "new", force=True)
            except EnvironmentFailure:
                if not seen.failed:
                    raise
            else:
                if seen.calls < at:
                    break
        assert content(target) in (before, of("new")), f"failing call {at}, {seen.failed}"
        make(target, "newer", force=True)
        assert content(target) == of("newer")
        assert os.listdir(target.parent) == ["thing"]
    assert 10 < at < 100


@pytest.mark.parametrize("old", [None, b"old"])
def test_every_touch_of_the_disk_may_fail_for_one_file(tmp_path, monkeypatch, old):
    for at in range(1, 50):
        target = tmp_path / str(at) / "plan"
        target.parent.mkdir()
        if old is not None:
            write_whole(target, old)
        with monkeypatch.context() as patched:
            seen = fail_at(patched, at, OSError(errno.EIO, "bad disk"))
            try:
                write_whole(target, b"new", force=True)
            except EnvironmentFailure:
                assert seen.failed
            else:
                break
        assert (target.read_bytes() if target.exists() else None) in (old, b"new")
        write_whole(target, b"newer", force=True)
        assert target.read_bytes() == b"newer"
        assert os.listdir(target.parent) == ["plan"]
    assert at > 4


def test_a_full_disk_is_told_with_the_room_there_is(tmp_path, monkeypatch):
    fail_at(monkeypatch, 3, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _: SimpleNamespace(free=12345))
    with pytest.raises(EnvironmentFailure, match=r"the disk is full \(12,345 bytes free\)") as full:
        make(tmp_path / "new", "1")
    assert full.value.exit_code == 4
    assert os.listdir(tmp_path) == []


def test_one_file_appears_whole(tmp_path):
    write_whole(tmp_path / "plan", b"1")
    with pytest.raises(EnvironmentFailure, match="plan exists; add --force"):
        write_whole(tmp_path / "plan", b"2")
    assert (tmp_path / "plan").read_bytes() == b"1"
    write_whole(tmp_path / "plan", b"2", force=True)
    assert (tmp_path / "plan").read_bytes() == b"2"
    assert os.listdir(tmp_path) == ["plan"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open handles are counted in /proc")
def test_no_handle_is_left_open(tmp_path):
    make(tmp_path / "new", "1")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        make(tmp_path / "new", "1", force=True)
        with pytest.raises(EnvironmentFailure):
            make(tmp_path / "new", "1")
        write_whole(tmp_path / "plan", b"1", force=True)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("kind", ["file", "folder", "nothing", "itself", "pipe"])
@pytest.mark.parametrize("write", [make, lambda out, text: write_whole(out, text.encode())], ids=["folder", "file"])
def test_what_stands_at_the_partial_name_is_neither_followed_nor_waited_for(tmp_path, kind, write):
    aside, partial = tmp_path / "aside", tmp_path / ".new.partial"
    aside.mkdir()
    (aside / "file").write_text("mine")
    (aside / "folder").mkdir()
    if kind == "pipe":
        os.mkfifo(partial)
    else:
        partial.symlink_to(partial if kind == "itself" else aside / kind)
    with pytest.raises(EnvironmentFailure, match=r"\.new\.partial first, but that is a link or a pipe; remove it"):
        write(tmp_path / "new", "1")
    assert sorted(each.name for each in aside.rglob("*")) == ["file", "folder"]
    assert (aside / "file").read_text() == "mine"
    assert not (tmp_path / "new").exists()
    assert [each.path for each in leftovers(tmp_path)] == [partial]
    leftovers(tmp_path)[0].remove()
    assert os.listdir(tmp_path) == ["aside"]
