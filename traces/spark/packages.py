"""Packages that Spark tasks need, as one archive.

For clusters whose Python lacks them; for the minor version of Python and the platform that they are installed for.
venv-pack does the like for a virtual environment, but takes no editable packages, and all of PySpark; conda-pack needs
conda.
"""

import gzip
import importlib.metadata as metadata
import os
import re
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from platform import machine
from typing import TYPE_CHECKING

from adapt.core.errors import EnvironmentFailure
from adapt.traces.spark.connect import is_remote
from adapt.traces.spark.java import user_cache

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OURS = "adapt-streams"

FOLDER = "adapt-packages"
"""The folder in which executors unpack the archive."""

SEARCHED = f"./{FOLDER}/lib"
"""The folder in which their Python finds the packages."""

IN_TASKS = ("pandas", "pyarrow", "numpy", "numba", "mmh3", "highspy", "fastavro", "obstore")
"""Distributions that tasks import; without those that are not installed."""

_UNUSED = frozenset({"tests", "include", "__pycache__"})
_UNUSED_SUFFIXES = frozenset({".h", ".hpp", ".a", ".c", ".cpp", ".pyi", ".pyx", ".pxd", ".pyc", ".pth"})
_KEPT = 2
_MOST_ASKED = 1 << 10
_LEVEL = 1


@dataclass(frozen=True, slots=True)
class Packed:
    """An archive of packages.

    Attributes:
        path: The archive, a tar.gz.
        versions: Version of each distribution in it.
    """

    path: Path
    versions: Mapping[str, str]


def pack(out: Path) -> Packed:
    """Write the packages of this process that tasks need.

    Raises:
        EnvironmentFailure: the archive cannot be written.
    """
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
    """The archive in the user's cache, written anew if the packages changed.

    Raises:
        EnvironmentFailure: it cannot be written anywhere.
    """
    own = [(name, path.stat().st_size, path.stat().st_mtime_ns) for name, path in sorted(_own_files())]
    versions = sorted((name, each.version) for name, each in task_packages().items())
    key = sha256(repr((sys.version_info[:2], sys.platform, machine(), versions, own)).encode()).hexdigest()[:16]
    for folder in (*(each / "task-packages" for each in user_cache()), Path(tempfile.gettempdir(), "adapt-packages")):
        made, fresh = folder / f"{key}.tar.gz", folder / f"{os.getpid()}.partial"
        if made.exists():
            return made
        try:
            folder.mkdir(parents=True, exist_ok=True)
            pack(fresh)
            os.replace(fresh, made)
        except (OSError, EnvironmentFailure):
            fresh.unlink(missing_ok=True)
            continue
        for each in sorted(folder.glob("*.tar.gz"), key=lambda each: -each.stat().st_mtime_ns)[_KEPT:]:
            each.unlink(missing_ok=True)
        return made
    raise EnvironmentFailure("no folder for the packages of Spark tasks; set XDG_CACHE_HOME to one with 200 MB free")


def bring_packages(spark: "SparkSession") -> None:
    """Send packages to executors that lack ours, or have another version.

    Raises:
        EnvironmentFailure: they are behind Spark Connect.
    """
    here, there = metadata.version(OURS), _versions_there(spark)
    if spark.conf.get("spark.archives", "") or there == {here}:
        return
    if is_remote():
        other = ", ".join(sorted(each for each in there if each)) or "none"
        raise EnvironmentFailure(
            f"the Python of the server's tasks needs {OURS} {here} (found: {other}); install it there"
        )
    context = spark.sparkContext
    context.addArchive(f"{packed_once().as_uri()}#{FOLDER}")
    given = context.environment.get("PYTHONPATH")
    context.environment["PYTHONPATH"] = f"{SEARCHED}:{given}" if given else SEARCHED


def _versions_there(spark: "SparkSession") -> set[str | None]:
    from pyspark.sql.functions import udf

    ours = OURS

    def version() -> str | None:  # sent by value, as a nested function is, so it needs nothing of ours there
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version(ours)
        except PackageNotFoundError:
            return None

    asked = udf(version, "string", useArrow=False).asNondeterministic()
    return {row[0] for row in spark.range(_MOST_ASKED).select(asked()).distinct().collect()}


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
    files = dict(_own_files())
    for dist in found.values():
        for each in dist.files or ():
            if each.parts[0] != ".." and "__editable__" not in each.name and _is_used(Path(each)):
                files.setdefault(each.as_posix(), Path(str(each.locate())))
    return files


def _own_files() -> Iterator[tuple[str, Path]]:
    """Files of our packages, whether installed or editable."""
    for package in ("adapt", "adapt.core", "adapt.cli", "adapt.traces"):
        spec = find_spec(package)
        for place in map(Path, spec.submodule_search_locations or () if spec else ()):
            for path in place.glob("*.py") if package == "adapt" else place.rglob("*"):
                if path.is_file() and _is_used(path.relative_to(place)):
                    yield f"{package.replace('.', '/')}/{path.relative_to(place).as_posix()}", path


def _is_used(path: Path) -> bool:
    return not _UNUSED & set(path.parts) and path.suffix not in _UNUSED_SUFFIXES


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """The same bytes for the same packages, whoever installed them and when."""
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    info.mode = 0o644
    return info
