"""Packages that Spark tasks need, as one archive.

For clusters whose Python lacks them; for the minor version of Python and the platform that they are installed for.
venv-pack does the like for a virtual environment, but takes no editable packages, and all of PySpark; conda-pack needs
conda.
"""

import atexit
import gzip
import importlib.metadata as metadata
import os
import re
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from platform import machine

from adapt.core.errors import EnvironmentFailure
from adapt.core.table import Column, Table
from adapt.traces.spark.java import user_cache
from adapt.traces.spark.python_facts import UNUSED, own_files

OURS = "adapt-streams"

FOLDER = "adapt-packages"
"""The folder in which executors unpack the archive."""

SEARCHED = f"./{FOLDER}/lib"
"""The folder in which their Python finds the packages."""

IN_TASKS = ("pandas", "pyarrow", "numpy", "numba", "mmh3", "highspy", "fastavro", "obstore")
"""Distributions that tasks import; without those that are not installed."""

_UNUSED_SUFFIXES = frozenset({".h", ".hpp", ".a", ".c", ".cpp", ".pyi", ".pyx", ".pxd", ".pyc", ".pth"})
_KEPT = 2
_LEVEL = 1


@dataclass(frozen=True, slots=True)
class Packed:
    """An archive of packages."""

    path: Path  # the archive, a tar.gz
    versions: Mapping[str, str]  # version of each distribution in it


def pack(out: Path) -> Packed:
    """Write the packages of this process that tasks need."""
    found = task_packages()
    try:
        with (
            out.open("wb") as raw,
            gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as file,
            tarfile.open(None, "w", file) as archive,
        ):
            for name, path in sorted(_files(found).items()):
                archive.add(path, f"lib/{name}", recursive=False, filter=_plain)
    except OSError as error:
        raise EnvironmentFailure(f"cannot write {out}: {error.strerror or error}; choose another place") from error
    return Packed(out, {name: each.version for name, each in found.items()})


def packed_once() -> Path:
    """The archive in the user's cache, written anew if the packages changed."""
    own = [(name, path.stat().st_size, path.stat().st_mtime_ns) for name, path in sorted(own_files())]
    versions = sorted((name, each.version) for name, each in task_packages().items())
    key = sha256(repr((sys.version_info[:2], sys.platform, machine(), versions, own)).encode()).hexdigest()[:16]
    why = ""
    for folder in _folders():
        made, fresh = folder / f"{key}.tar.gz", folder / f"{os.getpid()}.partial"
        if made.exists():
            return made
        try:
            folder.mkdir(parents=True, exist_ok=True)
            pack(fresh)
            os.replace(fresh, made)
        except (OSError, EnvironmentFailure) as error:
            why = str(error)
            with suppress(OSError):
                fresh.unlink()
            continue
        for each in sorted(folder.glob("*.tar.gz"), key=lambda each: -each.stat().st_mtime_ns)[_KEPT:]:
            each.unlink(missing_ok=True)
        return made
    raise EnvironmentFailure(
        f"no folder takes the packages of Spark tasks ({why}); set XDG_CACHE_HOME to one with 200 MB free"
    )


def _folders() -> Iterator[Path]:
    yield from (each / "task-packages" for each in user_cache())
    yield _private_folder()


@cache
def _private_folder() -> Path:
    """A temporary folder of this process, which no other user can prepare."""
    folder = tempfile.mkdtemp(prefix="adapt-packages-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def packages_table() -> Table:
    """Packages that tasks need, with their versions."""
    rows = sorted((name, each.version) for name, each in task_packages().items())
    return Table.from_rows(
        f"Packages for Python {sys.version_info.major}.{sys.version_info.minor} on {sys.platform} {machine()}",
        (Column("package"), Column("version")),
        rows,
    )


def task_packages() -> dict[str, metadata.Distribution]:
    """Our distribution, those that tasks import, and what they need."""
    found = {OURS: metadata.distribution(OURS)}
    names = list(IN_TASKS)
    while names:
        name = re.sub(r"[-_.]+", "-", names.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        needed = (re.match(r"([\w.-]+)([^;]*;.*\bextra\b)?", each) for each in found[name].requires or ())
        names += [each[1] for each in needed if each and not each[2]]
    return found


def _files(found: Mapping[str, metadata.Distribution]) -> dict[str, Path]:
    files = {name: path for name, path in own_files() if _is_used(Path(name))}
    for dist in found.values():
        for each in dist.files or ():
            if each.parts[0] != ".." and "__editable__" not in each.name and _is_used(Path(each)):
                files.setdefault(each.as_posix(), Path(str(each.locate())))
    return files


def _is_used(path: Path) -> bool:
    return not UNUSED & set(path.parts) and path.suffix not in _UNUSED_SUFFIXES


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """The same bytes for the same packages, whoever installed them and when."""
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    info.mode = 0o644
    return info
