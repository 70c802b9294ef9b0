"""Facts about the Python that runs this.

Executors get it as text, since they may have nothing of ours.
"""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
from hashlib import sha256
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

UNUSED = frozenset({"tests", "include", "__pycache__"})
"""Folders that no task needs."""


def facts(names: Iterable[str]) -> dict[str, Any]:
    """Where this Python runs, its version, and the packages among these names."""
    return {
        "host": os.environ.get("SPARK_LOCAL_HOSTNAME") or os.environ.get("SPARK_LOCAL_IP") or socket.gethostname(),
        "folder": os.getcwd(),
        "python": platform.python_version(),
        "platform": sys.platform + " " + platform.machine(),
        "adapt": fingerprint(),
        "packages": {name: found for name in names for found in [_version(name)] if found},
        "memory": memory_bytes(),
    }


def own_files() -> Iterator[tuple[str, Path]]:
    """Files of our packages that tasks may need, whether installed or editable."""
    for package in ("adapt", "adapt.core", "adapt.cli", "adapt.traces"):
        spec = find_spec(package)
        for place in map(Path, (spec and spec.submodule_search_locations) or ()):
            for path in place.glob("*.py") if package == "adapt" else place.rglob("*"):
                if path.is_file() and not UNUSED & set(path.relative_to(place).parts):
                    yield package.replace(".", "/") + "/" + path.relative_to(place).as_posix(), path


def fingerprint() -> str:
    """Hash of our modules, equal for equal copies; empty without any."""
    try:
        found = sorted((name, path) for name, path in own_files() if name.endswith(".py"))
    except Exception:  # a copy that cannot be imported is of no use
        return ""
    total = sha256()
    for name, path in found:
        total.update(name.encode() + b"\0" + sha256(path.read_bytes()).digest())
    return total.hexdigest()[:8] if found else ""


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def memory_bytes() -> int:
    """Memory in bytes: of the machine, or less in a container."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for place in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            sizes.append(int(Path("/sys/fs/cgroup", place).read_text()))
        except (OSError, ValueError):
            continue
    return min(sizes)


if __name__ == "__main__":
    print(json.dumps(facts(sys.argv[1:])))
