"""Outcomes of scenarios on disk, by everything that decides them."""

import json
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from adapt.core.errors import BadInput
from adapt.core.run import SCHEMA
from adapt.core.table import Cell
from adapt.core.units.seals import hash_of
from adapt.traces.store.disk import remove_tree
from adapt.traces.store.manifest import program_versions, read_manifest

FOLDER, FILE = "outcomes", "outcomes.jsonl"
"""Where a comparison has its outcomes."""


def key_of(parameters: Mapping[str, Any], trace: str) -> str:
    """Hash of everything that decides an outcome.

    Args:
        trace: Content hash of the trace.
    """
    return hash_of({"schema": SCHEMA, "parameters": dict(parameters), "trace": trace, "versions": program_versions()})


class Outcomes:
    """Finished outcomes, each kept as soon as it is there."""

    def __init__(self, folder: Path, out: Path | None) -> None:
        """Read those of an interrupted or overwritten comparison.

        Args:
            folder: Folder of the unfinished comparison.
            out: The comparison.
        """
        self.folder = folder / FOLDER
        file = self.folder / FILE
        for path, is_ours in ((self.folder, self.folder.is_dir()), (file, file.is_file())):
            if path.is_symlink() or not is_ours:  # a link or a pipe
                remove_tree(path)
        self.folder.mkdir(exist_ok=True)
        self._known: dict[str, dict[str, Cell]] = {}
        self._kept = self._read(file)
        if out is not None:
            with suppress(BadInput, OSError, ValueError):  # nothing is there yet
                self._known |= self._read(read_manifest(out).file(out.absolute(), f"{FOLDER}/{FILE}"))
        self._known |= self._kept

    def get(self, key: str) -> dict[str, Cell] | None:
        """The outcome with this key, if it is finished."""
        found = self._known.get(key)
        if found is not None and key not in self._kept:
            self.add(key, found)
        return found

    def add(self, key: str, outcome: Mapping[str, Cell]) -> None:
        """Keep an outcome; an incomplete or changed line is ignored when read."""
        self._known[key] = self._kept[key] = dict(outcome)
        with (self.folder / FILE).open("a", encoding="utf-8") as file:
            text = json.dumps([key, outcome])
            file.write(f"\n{_sealed(text)} {text}")

    @staticmethod
    def _read(path: Path) -> dict[str, dict[str, Cell]]:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.is_file() else []
        parted = (line.partition(" ") for line in lines)
        return dict(json.loads(text) for seal, _, text in parted if seal == _sealed(text))


def _sealed(text: str) -> str:
    return sha256(text.encode()).hexdigest()
