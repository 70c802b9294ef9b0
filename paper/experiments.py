"""Experiments: measurements that run once and are stored."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias

from adapt.traces.store.atomic import replace_whole

Data: TypeAlias = Any
"""JSON data."""


class Experiment(Protocol):
    """A measurement: a frozen dataclass of plain data that determines its result."""

    alone: ClassVar[bool]
    """Whether nothing else may run at the same time: it measures times, or is too short for a task."""

    @property
    def label(self) -> str:
        """Short description of the measurement."""

    @property
    def needs(self) -> Sequence["Experiment"]:
        """Experiments whose results it needs."""

    def measure(self, given: Sequence[Data]) -> Data:
        """Run the experiment.

        Args:
            given: Results of `needs`, in their order.
        """

    def __hash__(self) -> int: ...


class Results(Protocol):
    """Results by their experiment."""

    def __getitem__(self, experiment: Experiment) -> Data:
        """Result of an experiment."""


class Kept:
    """Results on disk, one file per experiment.

    Named by a hash of the parameters and of the program.
    """

    def __init__(self, folder: Path, version: str) -> None:
        """Store results in a folder.

        Args:
            folder: Folder for the results; created if missing.
            version: Hash of the program; results of another version are measured again.
        """
        self._folder = folder
        self._version = version
        folder.mkdir(parents=True, exist_ok=True)

    def __contains__(self, experiment: Experiment) -> bool:
        return self._path(experiment).exists()

    def __getitem__(self, experiment: Experiment) -> Data:
        return json.loads(self._path(experiment).read_bytes())["result"]

    def keep(self, experiment: Experiment, result: Data) -> None:
        """Write a result atomically."""
        told = {"experiment": described(experiment), "program": self._version, "result": result}
        replace_whole(self._path(experiment), json.dumps(told, allow_nan=False).encode())

    def _path(self, experiment: Experiment) -> Path:
        text = json.dumps([described(experiment), self._version], sort_keys=True)
        return self._folder / f"{sha256(text.encode()).hexdigest()[:32]}.json"


def described(experiment: Experiment) -> dict[str, Any]:
    """Kind and parameters of an experiment, as JSON data."""
    return {"kind": f"{type(experiment).__module__}.{type(experiment).__qualname__}", **asdict(experiment)}  # type: ignore[call-overload]


def program_version(root: Path, folders: Sequence[str], without: Sequence[str] = ()) -> str:
    """Hash of all Python files in some folders.

    Of their names and contents.

    Args:
        root: Root of the repository.
        folders: Folders below the root, searched recursively.
        without: Names of subfolders to skip.
    """
    digest = sha256()
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            name = path.relative_to(root)
            if not set(without) & set(name.parts):
                digest.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()
