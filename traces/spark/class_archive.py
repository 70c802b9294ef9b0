"""Java class-data archive, from which Spark starts faster.

An archive is `adapt/java-classes/KEY/CHECKSUM.jsa` in the user's cache folder; the key covers Java, Spark and this
package. The first run records: its Java process writes the classes it loaded when it ends, in the background. The next
run starts from them. An archive that is damaged or cannot be made costs time, never the run.
"""

import logging
import os
import shlex
import subprocess
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from shutil import rmtree
from time import time
from zlib import crc32

from adapt.traces.spark.java import java_says, user_cache, version_text

LOG = logging.getLogger("adapt")

FIRST_COMPILER = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java options for a process that does little work: the quick compiler, and the collector that starts fastest."""

LENIENT = "-XX:+IgnoreUnrecognizedVMOptions"
"""Java option that lets a Java without the others start all the same."""

_BASE = "base.jsa"
_KEPT_KEYS = 2
_ABANDONED_S = 600.0
_HEADER_BYTES = 4
"""The first bytes of an archive, which Java writes last."""

_PIECE_BYTES = 1 << 20


def java_options(java_home: Path, *, brief: bool) -> str:
    """Java options of a Spark that starts fast; may be empty.

    Args:
        brief: Whether the process does little work.
    """
    ours = [archive_options(java_home), FIRST_COMPILER if brief else ""]
    return " ".join([LENIENT, *filter(None, ours)]) if any(ours) else ""


def archive_options(java_home: Path) -> str:
    """Java options that read or record the archive; may be empty."""
    java = java_home / "bin" / "java"
    try:
        folder = _folder(java)
        archive = _archive(folder)
        if archive is not None:
            archive.touch()
            made = folder / _BASE
            return _option("SharedArchiveFile", made if made.exists() else None, archive)
        if any(folder.glob("*.recording")):  # another run's, perhaps unfinished
            return ""
        base = _base(java, folder)
        recording = folder / f"{os.getpid()}.recording"
        recording.touch()
        return f"{_option('SharedArchiveFile', base)} {_option('ArchiveClassesAtExit', recording)}".strip()
    except (OSError, StopIteration, subprocess.SubprocessError) as error:
        LOG.info("Spark starts without a class-data archive: %s", error)
        return ""


def _option(name: str, *paths: Path | None) -> str:
    """A Java option with paths, quoted for Spark; empty without any."""
    given = os.pathsep.join(str(path) for path in paths if path is not None)
    return shlex.quote(f"-XX:{name}={given}") if given else ""


def _folder(java: Path) -> Path:
    """The folder of the archive for this Java, Spark and version; those not used lately are deleted."""
    programs = [version_text(java), files("pyspark"), version("pyspark"), version("adapt-streams")]
    folder = next(user_cache()) / "java-classes" / sha256(repr(programs).encode()).hexdigest()[:16]
    if not folder.exists():
        folder.mkdir(parents=True)
        others = sorted(folder.parent.iterdir(), key=lambda each: each.stat().st_mtime_ns, reverse=True)
        for each in others[_KEPT_KEYS:]:
            rmtree(each, ignore_errors=True)
    return folder


def _base(java: Path, folder: Path) -> Path | None:
    """The archive of Java's own classes where Java has none, such as in a trimmed runtime; None if it has one."""
    base = folder / _BASE
    if not base.exists() and not _has_own(java):
        fresh = folder / f"{os.getpid()}.base"
        java_says(java, "-Xshare:dump", f"-XX:SharedArchiveFile={fresh}")
        os.replace(fresh, base)
    return base if base.exists() else None


def _archive(folder: Path) -> Path | None:
    """The archive, with what an earlier run recorded adopted; damaged archives and abandoned recordings are deleted."""
    for recording in folder.glob("*.recording"):
        with recording.open("rb") as file:
            finished = any(file.read(_HEADER_BYTES))
        if finished:
            os.replace(recording, folder / f"{_checksum(recording)}.jsa")
        elif time() - recording.stat().st_mtime > _ABANDONED_S:
            recording.unlink()
    for archive in folder.glob("*.jsa"):
        if archive.name == _BASE:
            continue
        if archive.stem == _checksum(archive):
            return archive
        LOG.info("%s is damaged; it is recorded again", archive)
        archive.unlink()
    return None


def _checksum(path: Path) -> str:
    total = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            total = crc32(piece, total)
    return f"{total:08x}"


def _has_own(java: Path) -> bool:
    """Whether a Java comes with an archive of its own classes."""
    try:
        java_says(java, "-Xshare:on", "-version")
    except subprocess.SubprocessError:
        return False
    return True
