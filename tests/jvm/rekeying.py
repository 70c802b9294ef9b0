"""Rekey tables for the tests of JVM parts and runbooks, and the jar of the JVM parts."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from adapt.core.engines.names import Engine
from adapt.core.engines.registry import definition_of

ROOT = Path(__file__).parent.parent.parent
CHANNELS = 8


def places(engine: Engine, keys: Iterable[str | int | bytes], channels: int = CHANNELS, groups: int | None = None) -> list[int]:
    """Where the engine's own hash places keys."""
    return definition_of(engine).placement(channels, groups).channels_of(pa.array(keys)).tolist()


def table_of(engine: Engine, wanted: Mapping[str, list[int]], channels: int = CHANNELS, groups: int | None = None) -> dict[str, Any]:
    """A table of text keys, each with the channels that it is to reach."""
    keys = {}
    for key, targets in wanted.items():
        found: dict[int, str] = {}
        for number in count():
            new = f"{key}~{number}"
            found.setdefault(places(engine, [new], channels, groups)[0], new)
            if found.keys() >= set(targets):
                break
        keys[key] = [found[target] for target in targets]
    return {
        **{"schema": "adapt.rekey/1", "engine": engine.value, "channels": channels, "max_parallelism": groups},
        **{"key_type": "string", "separator": "~", "key_bits": None, "plan": "0" * 64, "trace": None, "keys": keys},
    }


def built(folder: Path) -> Path:
    """The jar, with the parts whose engines have a jar here."""
    if shutil.which("javac") is None:
        pytest.skip("no javac on PATH: the JVM parts need a JDK, 17 or later")
    out = folder / "adapt.jar"
    subprocess.run([ROOT / "jvm" / "build.sh", out], check=True, capture_output=True)
    return out


def java(folder: Path, path: Iterable[Path | str], *line: object, text: str = "") -> list[str]:
    """What a Java program of this folder prints; a source file is compiled first."""
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", os.pathsep.join(map(str, path)), *map(str, line)]
    done = subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def written(table: dict[str, Any], file: Path) -> Path:
    """The table as a file."""
    file.write_text(json.dumps(table, ensure_ascii=False))
    return file
