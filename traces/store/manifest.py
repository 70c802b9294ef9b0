"""Manifests: kind, provenance and files of an artefact."""

import hashlib
import json
import logging
import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from adapt.core.errors import BadInput, redacted
from adapt.core.lint.evidence import LINT
from adapt.core.reading import READING_LOG, Reading, Rejects
from adapt.core.units.seals import as_json, check_seal, sealed
from adapt.traces.locations.location import is_stored
from adapt.traces.locations.run_folders import MANIFEST, RUN
from adapt.traces.locations.series_path import SeriesPath
from adapt.traces.read_errors import damaged, readable
from adapt.traces.store import disk

SCHEMA = "adapt.manifest/1"
FORMAT_VERSION = 1
TRACE_VERSION = 2
"""The format of traces; the first did not keep the type of keys in their source."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """How an artefact was made."""

    command: str  # the command line, or the name of the library function
    parameters: Mapping[str, Any] = field(default_factory=dict)  # everything that decides the result
    # files (name, bytes, sha256) and artefacts (name, content_hash) that were read
    inputs: Sequence[Mapping[str, Any]] = ()
    seed: int | None = None  # the random seed, if any
    # where rows were made, counted or replayed: spark or in-process; None where nothing runs on Spark. It does not
    # change the content
    runner: str | None = None
    # of adapt, Python and the libraries that compute
    versions: Mapping[str, str] = field(default_factory=lambda: program_versions())

    def __post_init__(self) -> None:
        object.__setattr__(self, "command", redacted(self.command))
        object.__setattr__(self, "inputs", _without_secrets(self.inputs, redacted))
        object.__setattr__(self, "parameters", _without_secrets(self.parameters, _redacted_url))


def _redacted_url(text: str) -> str:
    """An expression, which decides a result, stays as it is."""
    return redacted(text) if "://" in text or "jdbc:" in text else text


def _without_secrets(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_secrets(each, redact) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_secrets(each, redact) for each in value]
    return redact(value) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of `_manifest.json`."""

    kind: str  # trace, frequencies, comparison, run, drop-plan table or deployment
    content_hash: str  # hash of the content alone, independent of creation times and file boundaries
    made: Provenance
    files: Sequence[Mapping[str, Any]]  # name, bytes and sha256 of each file, and whatever else its reader needs
    summary: Mapping[str, Any]  # facts about the content, by kind
    run: str = ""  # folder of the files within the artefact; empty on a disk, where it is the artefact itself

    @property
    def reading(self) -> Reading:
        """How the source of a trace was read."""
        rejects = Rejects(**self.summary["rejects"])
        left_out = self.summary["profile"].get(LINT, {}).get("sample", {}).get("left_out", 0)
        rows = int(self.summary["rows"]) + rejects.rows + left_out
        return Reading(rows, rejects, tuple(self.made.parameters.get("guesses", ())))

    def readings(self, name: str) -> dict[str, dict[str, Any]]:
        """Readings of the sources of an artefact of this name."""
        found = readings_of(self.made.inputs)
        if self.kind == "trace" and not found and "rejects" in self.summary:
            reading = self.reading
            if reading.rejects.rows or reading.guesses:
                found[self.content_hash] = {"trace": name, **reading.as_data()}
        return found

    def as_input(self, name: str) -> dict[str, Any]:
        """An artefact of this name as an input of others."""
        return as_input(name, self.content_hash, self.readings(name))

    def file(self, folder: Path, name: str) -> Path:
        """One of the files that it lists."""
        if not any(entry["name"] == name for entry in self.files):
            raise ValueError(f"it lists no file {name!r}")
        return folder / self.run / name


def as_input(name: str, content_hash: str, readings: Mapping[str, Any]) -> dict[str, Any]:
    """An artefact as an input of others, with readings of its sources."""
    return {"name": name, "content_hash": content_hash, **({"readings": readings} if readings else {})}


def readings_of(inputs: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Readings of the sources of some inputs, by their traces' content hashes.

    Without those that have neither rejected rows nor guesses.
    """
    return {trace: dict(reading) for each in inputs for trace, reading in each.get("readings", {}).items()}


def note_readings(path: Path, readings: Mapping[str, Mapping[str, Any]]) -> None:
    """Log how the sources behind an artefact that is read were read."""
    for trace, reading in readings.items():
        try:
            Reading.from_data(reading)
        except (KeyError, ValueError, TypeError, AttributeError, StopIteration) as error:
            raise damaged(path, error) from error
        logging.getLogger(READING_LOG).info("%(content_hash)s %(reading)s", {"content_hash": trace, "reading": reading})


def program_versions() -> dict[str, str]:
    """Versions of adapt and of the libraries that can change a result."""
    return dict(_versions())


@cache
def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in ("adapt-streams", "pyspark", "pyarrow", "numpy"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, the last file of an artefact."""
    data = {"schema": SCHEMA, "format": _version_of(manifest.kind), **asdict(manifest)}
    del data["run"]
    if folder.name.startswith(RUN):
        data["run"] = folder.name
    if manifest.made.runner is None:
        del data["made"]["runner"]
    disk.write_bytes(folder / MANIFEST, as_json(sealed(data)))


def read_manifest(folder: Path, kind: str | None = None) -> Manifest:
    """Read the manifest of an artefact and check file sizes.

    Args:
        kind: What it is read as, to be worked on; how its sources were read is logged then.
    """
    if isinstance(folder, SeriesPath):
        manifest: Manifest = folder.manifest
        return manifest
    with readable(folder):
        return _read_manifest(folder, kind)


def is_trace(path: Path, kind: str = "trace") -> bool:
    """Whether a path is a trace, or another kind of artefact."""
    return path.is_dir() and (path / MANIFEST).is_file() and read_manifest(path).kind == kind


def _read_manifest(folder: Path, kind: str | None) -> Manifest:
    path = folder / MANIFEST
    if not folder.exists():
        raise BadInput(f"{folder} does not exist{_how_to_make(kind)}")
    if not path.is_file():
        raise BadInput(f"{folder} is not an adapt artefact: it has no {MANIFEST}{_how_to_make(kind)}")
    try:
        data = _load_json(path)
        newest = _version_of(data["kind"])
        if not FORMAT_VERSION <= data["format"] <= newest:
            raise BadInput(f"{folder} has format {data['format']}, newer than {newest}; update adapt")
        check_seal(data)
        made = data["made"]
        of_run = str(data.get("run", ""))
        if of_run and not re.fullmatch(f"{RUN}[\\w-]+", of_run):
            raise ValueError(f"{of_run!r} is not the name of a run's folder")
        manifest = Manifest(
            data["kind"], data["content_hash"], Provenance(**made), data["files"], data["summary"], of_run
        )
        home = folder / of_run
        sizes = {inside(home, entry["name"]): int(entry["bytes"]) for entry in manifest.files}
        if len(sizes) < len(manifest.files):
            raise ValueError("it lists a file twice")
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}") from error
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise damaged(path, error) from error
    if kind is not None and manifest.kind != kind:
        raise BadInput(f"{folder} is a {manifest.kind}, not a {kind}{_how_to_make(kind)}")
    if kind is not None:
        note_readings(path, manifest.readings(folder.name))
    listed: dict[Any, Any] = {each: each for each in home.rglob("*")} if is_stored(home) else {}
    for file, size in sizes.items():
        _check_size(listed.get(file, file), size)
    return manifest


def inside(folder: Path, name: object) -> Path:
    """A file of an artefact by its name, never one elsewhere."""
    parts = name.split("/") if isinstance(name, str) else [""]
    if any(part in ("", ".", "..") or re.search(r"[\\\x00-\x1f]|^[A-Za-z]:", part) for part in parts):
        raise ValueError(f"{str(name)[:60]!r} is not the name of a file in it")
    path = folder / str(name)
    if not is_stored(path) and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise ValueError(f"{str(name)[:60]!r} is a link that leads out of it")
    return path


def _version_of(kind: str) -> int:
    return TRACE_VERSION if kind == "trace" else FORMAT_VERSION


def verify(folder: Path, manifest: Manifest) -> None:
    """Verify the SHA-256 of every file."""
    for entry in manifest.files:
        path = folder / manifest.run / str(entry["name"])
        with readable(path):
            found = file_sha256(path)
        if found != entry["sha256"]:
            raise damaged(path, "its SHA-256 does not match the manifest")


def file_entry(folder: Path, path: Path) -> dict[str, Any]:
    """The manifest entry of a file: name within the artefact, bytes, sha256."""
    return {"name": str(path.relative_to(folder)), "bytes": path.stat().st_size, "sha256": file_sha256(path)}


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of(path: Path, first: int, size: int) -> str:
    """The SHA-256 of some bytes of a file, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        file.seek(first)
        while size > 0 and (piece := file.read(min(size, 1 << 20))):
            digest.update(piece)
            size -= len(piece)
    return digest.hexdigest()


def _load_json(path: Path) -> dict[str, Any]:
    data = json.loads(path.read_bytes())
    if not isinstance(data, dict):
        raise ValueError("not a JSON object")
    return data


def _check_size(path: Path, size: int) -> None:
    if not path.is_file():
        raise BadInput(f"{path} is missing; recreate the artefact")
    if path.stat().st_size != size:
        raise damaged(path, f"it has {path.stat().st_size:,} bytes instead of {size:,}")


_MAKERS = {
    "trace": "adapt ingest SOURCE -o TRACE",
    "frequencies": "adapt partition count TRACE -o FREQ",
    "comparison": "adapt partition compare TRACE -o DIR",
    "run": "adapt replay repartition TRACE -o RUN",
    "drop-plan table": "adapt replay fit TRACE --network N.toml --planner c-fit --plans DIR",
    "deployment": "adapt partition export PLAN --to spark -o DIR",
}


def _how_to_make(kind: str | None) -> str:
    return f"; create one with `{_MAKERS[kind]}`" if kind in _MAKERS else ""
