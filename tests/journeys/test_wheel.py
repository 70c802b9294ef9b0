"""The wheel in an environment of its own: everything it needs is in it, whatever folder it is used from."""

import json
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PARTS = ("api", "cli", "core", "traces")
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of programs of a fresh environment that has the wheel, and sees the libraries of this one."""
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"
    for part in PARTS:
        shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree / name)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder / "dist"), str(tree)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    programs = folder / "venv" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", programs / "python", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", wheel], check=True)
    (worker,) = (folder / "venv").glob("lib/python*/site-packages")
    # a plain path: the finder of an editable install, which is a line of code, is not run from here
    (worker / "libraries.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return programs


def told(installed, folder, *arguments):
    said = subprocess.run([installed / "adapt", *arguments], cwd=folder, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    return said.stdout


def test_every_package_is_in_the_wheel_and_comes_from_it(installed, tmp_path):
    code = (
        "import importlib, json, pkgutil, sys\n"
        "for name in sys.argv[1:]:\n"
        "    package = importlib.import_module(name)\n"
        "    for each in pkgutil.iter_modules(package.__path__, name + '.'):\n"
        "        importlib.import_module(each.name)\n"
        "ours = {name: module.__file__ for name, module in sys.modules.items() if (name + '.').startswith('adapt.')}\n"
        "print(json.dumps(ours))"
    )
    said = subprocess.run(
        [installed / "python", "-c", code, *PACKAGES], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    modules = json.loads(said.stdout)
    sources = {path for part in PARTS for path in (ROOT / part).rglob("*.py")}
    assert len(modules) == len(sources)
    assert all(file.startswith(str(installed.parent)) for file in modules.values())


def test_the_program_runs_from_anywhere(installed, tmp_path):
    assert told(installed, tmp_path, "--version").startswith("adapt ")
    assert "Commands:" in told(installed, tmp_path, "--help")
    (tmp_path / "counts.csv").write_text("a,5\nb,3\nc,2\n")
    line = ("partition", "build", "counts.csv", "--scheme", "uniform", "--channels", "3", "--format", "json", "-o", "P")
    assert json.loads(told(installed, tmp_path, *line))["channels"] == 3
    told(installed, tmp_path, "report", "P", "--html", "page.html")
    assert "<svg" in (tmp_path / "page.html").read_text()
