"""An artefact on a disk: two runs that write it and one that reads it, in every order of their steps on the disk.

The runs are the program's own functions, each in a thread that stops before each step on the disk.
"""

import fcntl
import os
import shutil
import threading
from functools import partial

import pytest

from adapt.core.errors import AdaptError
from adapt.traces.store import atomic, disk, manifest
from adapt.traces.store.atomic import whole_folder
from adapt.traces.store.manifest import Manifest, Provenance, file_entry, read_manifest, verify, write_manifest
from tests.tiers import SOAK
from tests.trust.models.explorer import Refused, explore


class Abandoned(BaseException):
    """The search goes on elsewhere."""


class Runs:
    """Runs at one target, as a system."""

    def __init__(self, place, parties, old):
        self._place, self.target = place, place / "an.artefact"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        if old:
            write(self.target, "old")
        self._old, self._abandoned, self._ways = old, False, dict[int, tuple[str, ...]]()
        self._turns = [threading.Semaphore(0) for _ in parties]
        self._stopped = threading.Semaphore(0)
        self._going, self.results = set(range(len(parties))), dict[int, str]()
        self._threads = [
            threading.Thread(target=self._run, args=(number, party), name=str(number), daemon=True)
            for number, party in enumerate(parties)
        ]
        for number, thread in enumerate(self._threads):
            self._ways[number] = ()
            thread.start()
            self._stopped.acquire()

    def _run(self, number, party):
        try:
            self.stop("begins")
            self.results[number] = party(self.target)
        except AdaptError as refused:
            self.results[number] = f"refused: {refused}"
        except Abandoned:
            return
        except BaseException as error:
            self.results[number] = f"a bug: {error!r}"
        self._going.discard(number)
        self._stopped.release()

    def stop(self, what):
        """Called by a run before a step on the disk."""
        number = int(threading.current_thread().name)
        if not self._abandoned:
            self._ways[number] += (what,)
            self._stopped.release()
            self._turns[number].acquire()
        if self._abandoned:
            raise Abandoned

    def moves(self):
        return sorted(self._going)

    def do(self, move):
        self._turns[move].release()
        self._stopped.acquire()
        assert not any(result.startswith("a bug") for result in self.results.values()), self.results

    def state(self):
        files = sorted((str(at), at.read_bytes() if at.is_file() else b"") for at in self._place.rglob("*"))
        return tuple(files), tuple(self._ways.values()), tuple(sorted(self.results.items()))

    def end(self):
        written = [result for result in self.results.values() if result.startswith("wrote ")]
        readings = [result for result in self.results.values() if not result.startswith("wrote ")]
        assert written, f"nobody wrote: {self.results}"
        assert f"wrote {read(self.target)}" in written
        assert os.listdir(self._place) == ["an.artefact"]
        for result in readings:
            told = "being written by another run" in result or "bytes instead of" in result or "SHA-256" in result
            told |= not self._old and ("does not exist" in result or "was created during" in result)
            assert told or result in ("old", "one", "other"), result

    def close(self):
        self._abandoned = True
        for turn, thread in zip(self._turns, self._threads, strict=True):
            turn.release()
            thread.join()


def write(target, text):
    with whole_folder(target, force=True) as folder:
        for name in ("part-1", "part-2"):
            disk.write_bytes(folder / name, text.encode() * len(name + text))
        entries = [file_entry(folder, folder / name) for name in ("part-1", "part-2")]
        write_manifest(folder, Manifest("run", text, Provenance("a test"), entries, {}))
    return f"wrote {text}"


def read(target):
    found = read_manifest(target)
    verify(target, found)
    return found.content_hash


@pytest.fixture
def searched(tmp_path, monkeypatch):
    """Searches runs of some parties, which stop at each step on the disk."""
    now = []

    def stopping(module, name):
        step = getattr(module, name)

        def stopped(*arguments, **named):
            if threading.current_thread().name.isdigit():
                now[0].stop(name)
            return None if name == "sync" else step(*arguments, **named)

        monkeypatch.setattr(module, name, stopped)

    def search(*parties, old=True):
        def start():
            now[:] = [None]
            made = Runs.__new__(Runs)
            now[0] = made
            made.__init__(tmp_path / "place", parties, old)
            return made

        for name in ("make_folder", "write_bytes", "rename", "exchange", "remove_tree", "sync"):
            stopping(disk, name)
        stopping(atomic, "_is_named")
        stopping(manifest, "_load_json")
        stopping(manifest, "file_sha256")
        return explore(start)

    return search


ONE, OTHER = partial(write, text="one"), partial(write, text="other")


@pytest.mark.parametrize(
    ("parties", "old"),
    [((ONE, read), True), ((ONE, read), False), ((ONE, OTHER), True)]
    + SOAK * [((ONE, OTHER), False), ((ONE, OTHER, read), True), ((ONE, read, read), True)],
)
def test_who_reads_gets_a_whole_artefact_or_a_sentence(searched, parties, old, promise):
    found = searched(*parties, old=old)
    assert found.ends
    promise("manifest").checked(found.states)


def test_without_a_lock_two_runs_mix(searched, monkeypatch, promise):
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    with pytest.raises(Refused):
        searched(ONE, OTHER)
    promise("manifest").checked(1)


def test_a_target_that_is_removed_before_the_new_one_is_in_place_is_missed(searched, monkeypatch, promise):
    def in_two_steps(partial, target):
        disk.remove_tree(target)
        disk.rename(partial, target)
        partial.mkdir()
        return True

    monkeypatch.setattr(disk, "exchange", in_two_steps)
    with pytest.raises(Refused, match="does not exist"):
        searched(ONE, read)
    promise("manifest").checked(1)
