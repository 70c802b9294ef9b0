"""The jar of the JVM parts, and Java programs that use it."""

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def built(folder: Path) -> Path:
    """The jar, with the parts whose engines have a jar here."""
    if shutil.which("javac") is None:
        pytest.skip("no javac on PATH: the JVM parts need a JDK, 17 or later")
    out = folder / "adapt.jar"
    subprocess.run([ROOT / "jvm" / "build.sh", out], check=True, capture_output=True)
    return out


def run(folder: Path, path: Iterable[Path | str], *line: object, text: str = "") -> list[str]:
    """What a Java program prints."""
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", os.pathsep.join(map(str, path)), *map(str, line)]
    done = subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
