"""Experiments: pieces of measuring that are done once, wherever there is room, and kept."""

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
    """A piece of measuring: a frozen dataclass whose fields are plain data and say all that its result depends on."""

    alone: ClassVar[bool]
    """Whether nothing else may run meanwhile, because it takes times; so may be what is too short for a task."""

    @property
    def label(self) -> str:
        """What is measured, in a few words."""

    @property
    def needs(self) -> Sequence["Experiment"]:
        """Experiments whose results it is given."""

    def measure(self, given: Sequence[Data]) -> Data:
        """The result.

        Args:
            given: The results of `needs`, in their order.
        """

    def __hash__(self) -> int: ...


class Results(Protocol):
    """Results by their experiment."""

    def __getitem__(self, experiment: Experiment) -> Data:
        """The result of one."""


class Kept:
    """Results on disk, one file an experiment, under a hash of its parameters and of the program that measures."""

    def __init__(self, folder: Path, version: str) -> None:
        """Keep results in a folder.

        Args:
            folder: Made if it is not there.
            version: A hash of the program; what another program measured is measured again.
        """
        self._folder = folder
        self._version = version
        folder.mkdir(parents=True, exist_ok=True)

    def __contains__(self, experiment: Experiment) -> bool:
        return self._path(experiment).exists()

    def __getitem__(self, experiment: Experiment) -> Data:
        return json.loads(self._path(experiment).read_bytes())["result"]

    def keep(self, experiment: Experiment, result: Data) -> None:
        """Write a result; it is there whole or not at all."""
        told = {"experiment": described(experiment), "program": self._version, "result": result}
        replace_whole(self._path(experiment), json.dumps(told, allow_nan=False).encode())

    def _path(self, experiment: Experiment) -> Path:
        text = json.dumps([described(experiment), self._version], sort_keys=True)
        return self._folder / f"{sha256(text.encode()).hexdigest()[:32]}.json"


def described(experiment: Experiment) -> dict[str, Any]:
    """The kind and the parameters of an experiment, as JSON data."""
    return {"kind": f"{type(experiment).__module__}.{type(experiment).__qualname__}", **asdict(experiment)}  # type: ignore[call-overload]


def program_version(root: Path, folders: Sequence[str], without: Sequence[str] = ()) -> str:
    """A hash of all Python files in some folders of the tree, names and contents.

    Args:
        root: The top of the tree.
        folders: Folders below it, with all that is in them.
        without: Names of folders within these that are passed over.
    """
    digest = sha256()
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            name = path.relative_to(root)
            if not set(without) & set(name.parts):
                digest.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()
