"""Atomic folders in a store: parts by run, manifest last.

A store has no rename. A run writes its parts below `TARGET/_run-ID/`, then `TARGET/_manifest.json`, which names that
folder, under the condition that no other run wrote it in between. Readers follow the manifest alone.
"""

import json
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from adapt.core.errors import AdaptError, EnvironmentFailure
from adapt.traces.locations.failures import Occupied
from adapt.traces.locations.location import StorePath, is_stored

MANIFEST = "_manifest.json"
RUN = "_run-"
"""Beginning of the name of a run's folder."""


def is_table(path: Path) -> bool:
    """Whether a path may hold counts.

    It is neither an artefact nor a document of this program.
    """
    if not path.is_file():
        return path.is_dir() and not (path / MANIFEST).exists() and any(path.glob("*.*"))
    with path.open("rb") as file:
        head = file.read(1 << 16).lstrip()
    return path.suffix != ".toml" and (not head.startswith(b"{") or b"\n{" in head or path.suffix == ".jsonl")


def is_artefact(path: Path) -> bool:
    """Whether a path is an artefact, rather than a file or table."""
    return not path.is_file() and not is_table(path)


def check_free(target: StorePath, *, force: bool, folder: bool) -> str:
    """Check that an artefact can be written to a store.

    Args:
        folder: Whether it is a folder, else one object.

    Returns:
        The version of the object to overwrite, which is the manifest of a folder; empty if there is none.
    """
    if not target.key:
        raise EnvironmentFailure(f"{target} is a bucket; add a name, as in {target}NAME")
    if folder and target.is_file():
        raise EnvironmentFailure(f"{target} is an object, but the output is a folder; choose another -o")
    there = [each.name for each in target.iterdir()]
    if there and not folder:
        raise EnvironmentFailure(f"{target} is a folder, but the output is one object; choose another -o")
    if any(not name.startswith(RUN) for name in there) and MANIFEST not in there:
        raise EnvironmentFailure(
            f"{target} is a folder that adapt did not create, so it is not overwritten; choose another -o"
        )
    version = _version(target / MANIFEST if folder else target)
    if version and not force:
        raise EnvironmentFailure(f"{target} exists; add --force to overwrite it, or choose another -o")
    return version


@contextmanager
def run_folder(target: StorePath, *, force: bool) -> Iterator[StorePath]:
    """The folder of a new run, for tasks on any machine.

    The manifest written there is put in place on success; on failure all is removed.
    """
    before = check_free(target, force=force, folder=True)
    old = run_of(target)
    run = target / f"{RUN}{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
    try:
        yield run
        written = (run / MANIFEST).read_bytes()
        _check_complete(run, written)
    except BaseException:
        _discard(run)
        raise
    try:
        write_over(before, target / MANIFEST, written, target)  # where the outcome is unknown, the parts stay
    except Overtaken:
        _discard(run)
        raise
    with suppress(AdaptError, OSError):  # else `adapt clean` removes them
        (run / MANIFEST).unlink()
        if old:
            (target / old).remove_below()


@contextmanager
def uploaded_folder(target: StorePath, *, force: bool) -> Iterator[Path]:
    """A temporary folder of this machine, uploaded on success."""
    with run_folder(target, force=force) as run, tempfile.TemporaryDirectory(prefix="adapt-") as passing:
        folder = Path(passing) / run.name
        folder.mkdir()
        yield folder
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            (run / path.relative_to(folder)).upload(path)


def write_object(target: StorePath, data: bytes, *, force: bool) -> None:
    """Write one object at once."""
    version = check_free(target, force=force, folder=False)
    write_over(version, target, data, target)


class Overtaken(EnvironmentFailure):
    """Another run wrote the target first."""


def write_over(version: str, path: StorePath, data: bytes, target: StorePath) -> None:
    """Write an object over one version, or a new one if empty."""
    try:
        path.upload(data, version)
    except Occupied:
        raise Overtaken(
            f"{target} was written by another run in the meantime, and is not overwritten; choose another -o"
        ) from None


def _discard(run: StorePath) -> None:
    with suppress(AdaptError, OSError):
        run.remove_below()


def run_of(target: StorePath) -> str:
    """Name of the run that wrote an artefact; empty without one."""
    with suppress(FileNotFoundError, ValueError, AttributeError):
        name = str(json.loads((target / MANIFEST).read_bytes()).get("run", ""))
        return name if name.startswith(RUN) and "/" not in name else ""
    return ""


def in_run(path: Path) -> Path:
    """Path of an artefact's file: in a store, in its run's folder."""
    if is_stored(path) and path.key and not path.is_file():
        run = "" if path.is_dir() else run_of(path.parent)
        return cast(Path, path.parent / run / path.name) if run else cast(Path, path)
    return path


def _check_complete(run: StorePath, manifest: bytes) -> None:
    """Check that `adapt clean` of another user has left all parts."""
    sizes = {str(each.relative_to(run)): each.stat().st_size for each in run.rglob("*")}
    for entry in json.loads(manifest)["files"]:
        if sizes.get(entry["name"]) != entry["bytes"]:
            raise EnvironmentFailure(f"{run / entry['name']} was removed during this run; run again")


def _version(path: StorePath) -> str:
    try:
        return path.found().version
    except FileNotFoundError:
        return ""
