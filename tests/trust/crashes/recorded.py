"""What a writer does to a folder, call by call, and every state in which a crash may leave it.

A folder is looked at before and after each call that changes names or syncs, so what other libraries write in between
is seen too: new files and data. Whatever else changes between two calls would be a call that nobody watches.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Any
from unittest.mock import patch

from adapt.traces.store import disk

Name = tuple[int, str]
"""An entry of a folder: the folder's number and the name."""

CALLS = ("mkdir", "rmdir", "unlink", "remove", "rename", "replace", "link", "symlink", "truncate", "fsync", "fdatasync")


@dataclass(frozen=True, slots=True)
class Entries:
    """Names that change at once, each from a node (None: absent) to another."""

    changes: Mapping[Name, tuple[int | None, int | None]]
    made: Mapping[int, bytes | None] = field(default_factory=dict)  # new nodes, empty files or (None) folders


@dataclass(frozen=True, slots=True)
class Data:
    """A file's content."""

    node: int
    before: bytes
    after: bytes


@dataclass(frozen=True, slots=True)
class Sync:
    """An fsync of a file or folder."""

    node: int


@dataclass(slots=True)
class Tree:
    """A folder; node 0 is the folder itself."""

    entries: dict[Name, int] = field(default_factory=dict)
    data: dict[int, bytes | None] = field(default_factory=dict)  # of a file; None for a folder

    def files(self, folder: int = 0, path: str = "") -> dict[str, bytes | None]:
        """Content by path, None for a folder."""
        found: dict[str, bytes | None] = {}
        for (home, name), node in self.entries.items():
            if home == folder:
                found[path + name] = self.data[node]
                if self.data[node] is None:
                    found |= self.files(node, f"{path}{name}/")
        return found


@dataclass(slots=True)
class Recorder:
    """Looks at a folder and notes what has changed."""

    root: Path
    operations: list[Entries | Data | Sync] = field(default_factory=list)
    unseen: list[Name] = field(default_factory=list)  # names that changed in other ways than by a call
    calls: list[str] = field(default_factory=list)
    tree: Tree = field(default_factory=lambda: Tree({}, {0: None}))
    _numbers: dict[int, int] = field(default_factory=dict)  # of inodes
    _made: int = 0
    _lock: Any = field(default_factory=RLock)

    def look(self, *, after_call: bool) -> None:
        """Note what has changed since the last look."""
        now = self._seen()
        names = {**self.tree.entries, **now.entries}
        changes = {
            name: (self.tree.entries.get(name), now.entries.get(name))
            for name in names
            if self.tree.entries.get(name) != now.entries.get(name)
        }
        made = {node: data and b"" for node, data in now.data.items() if node not in self.tree.data}
        if after_call and changes:
            self.operations.append(Entries(changes, made))
        elif changes:
            self.unseen += [name for name, (before, _) in changes.items() if before is not None]
            self.operations += [Entries({name: change}, made) for name, change in changes.items()]
        for node, data in now.data.items():
            before = self.tree.data.get(node, b"")
            if data is not None and data != before:
                self.operations.append(Data(node, before or b"", data))
        self.tree = now

    def call(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        """A call that is watched."""

        def watched(*given: Any, **more: Any) -> Any:
            with self._lock:
                self.look(after_call=False)
                try:
                    return real(*given, **more)
                finally:
                    before = len(self.operations)
                    self.look(after_call=True)
                    if name in ("fsync", "fdatasync"):
                        node = self._numbers.get(os.fstat(given[0]).st_ino)
                        self.operations += [] if node is None else [Sync(node)]
                    self.calls += [name] * (len(self.operations) > before)

        return watched

    def _seen(self) -> Tree:
        tree, inodes = Tree({}, {0: None}), {self.root.stat().st_ino: 0}
        folders = [(self.root, 0)]
        while folders:
            folder, home = folders.pop(0)
            for entry in sorted(os.scandir(folder), key=lambda each: each.name):
                inode = entry.inode()
                if inode not in inodes and inode in self._numbers:
                    inodes[inode] = self._numbers[inode]
                elif inode not in inodes:
                    self._made += 1
                    inodes[inode] = self._made
                tree.entries[home, entry.name] = inodes[inode]
                is_folder = entry.is_dir(follow_symlinks=False)
                tree.data[inodes[inode]] = None if is_folder else Path(entry.path).read_bytes()
                if is_folder:
                    folders.append((Path(entry.path), inodes[inode]))
        self._numbers = inodes
        return tree


@contextmanager
def recorded(root: Path) -> Iterator[Recorder]:
    """Records what this process does to a folder."""
    recorder = Recorder(root)
    recorder.look(after_call=False)
    recorder.operations.clear()
    with calls_patched(recorder.call):
        yield recorder
    recorder.look(after_call=False)


@contextmanager
def calls_patched(watch: Callable[[str, Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """Every call that changes names or syncs goes through what `watch` makes of it."""
    changed = {name: watch(name, getattr(os, name) if "sync" not in name else _no_sync) for name in CALLS}
    with patch.multiple(os, **changed), patch.object(disk, "exchange", watch("exchange", disk.exchange)):
        yield


def _no_sync(_: int) -> None:
    """Takes the place of a sync, which takes long on a busy disk and changes nothing that others see."""


def replayed(start: Tree, operations: Sequence[Entries | Data | Sync]) -> Tree:
    """The folder after all of these."""
    return _after(start, operations, frozenset(), "kept")


TEARS: dict[str, Callable[[bytes, bytes], bytes]] = {
    "kept": lambda _, after: after,
    "lost": lambda before, _: before,
    "cut": lambda _, after: after[: len(after) // 2],
    "zeros": lambda _, after: bytes(len(after)),
    "torn": lambda _, after: after[: len(after) // 2] + bytes(len(after) - len(after) // 2),
}
"""What may have become of data that was not synced."""


def crash_states(start: Tree, operations: Sequence[Entries | Data | Sync]) -> Iterator[tuple[str, Tree]]:
    """Every different state that a crash may leave, with its story.

    After each prefix of the operations. Names that the sync of their folder did not follow may be gone: from any of
    them on, as in a journal, or any single one, or all. Of data that no sync followed, all, nothing, a half or zeros.
    """
    seen = set()
    for end in range(len(operations) + 1):
        done = operations[:end]
        loose = [at for at, each in enumerate(done) if isinstance(each, Entries) and not _is_durable(done, at)]
        firm = max((at for at, each in enumerate(done) if isinstance(each, Entries) and at not in loose), default=-1)
        undone = [frozenset[int](), *(frozenset([at]) for at in loose)]
        undone += [frozenset(each for each in loose if each >= at) for at in loose if at > firm] + [frozenset(loose)]
        for gone in dict.fromkeys(undone):
            for tear in TEARS if not gone else ("kept", "lost"):
                tree = _after(start, done, gone, tear)
                state = frozenset(tree.files().items())
                if state not in seen:
                    seen.add(state)
                    yield f"after {end} of {len(operations)}, without {sorted(gone)}, data {tear}", tree


def _is_durable(done: Sequence[Entries | Data | Sync], at: int) -> bool:
    """Whether syncs followed: of a file, or of each folder whose names changed."""
    operation = done[at]
    synced = {each.node for each in done[at + 1 :] if isinstance(each, Sync)}
    if isinstance(operation, Entries):
        return {folder for folder, _ in operation.changes} <= synced
    return isinstance(operation, Data) and operation.node in synced


def _after(start: Tree, done: Sequence[Entries | Data | Sync], gone: frozenset[int], tear: str) -> Tree:
    tree = Tree(dict(start.entries), dict(start.data))
    for at, operation in enumerate(done):
        if isinstance(operation, Data):
            before = tree.data.get(operation.node) or b""
            kind = "kept" if _is_durable(done, at) else tear
            tree.data[operation.node] = TEARS[kind](before, operation.after)
        elif isinstance(operation, Entries) and at not in gone:
            if any(tree.entries.get(name) != before for name, (before, _) in operation.changes.items()):
                continue  # it needs one that is gone
            tree.data |= {node: data for node, data in operation.made.items() if node not in tree.data}
            for name, (_, after) in operation.changes.items():
                if after is None:
                    del tree.entries[name]
                else:
                    tree.entries[name] = after
    return tree
