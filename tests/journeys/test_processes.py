"""What only processes of their own can show."""

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import tomllib
from pathlib import Path

import pytest

PROGRAM = "from adapt.cli.main import main; main()"


def started(arguments, folder, program=PROGRAM, **options):
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_ctrl_c_in_the_middle_of_ingest_is_one_line_and_leaves_nothing(tmp_path):
    with (tmp_path / "rows.csv").open("w") as file:
        file.write("t,k\n")
        file.writelines(
            f"{1_700_000_000 + number * 7919 % 1_000_003},k{number % 1000}\n" for number in range(1_500_000)
        )
    line = "ingest rows.csv --key k --time t --time-format epoch_s -o x.trace --master local[2]".split()
    staging = tmp_path / ".x.trace.partial" / "_staging"
    with started(line, tmp_path, start_new_session=True) as child:
        while not (staging.exists() or child.poll() is not None):
            time.sleep(0.02)  # for the child to get somewhere, however long it takes
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does: to all that run there
        out, err = child.communicate()
    assert (child.returncode, out) == (130, "")
    assert err == "adapt: interrupted; no incomplete output was kept\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.csv"]


@pytest.mark.parametrize("out", ["x.plan", "x.plans"])
def test_a_file_that_cannot_grow_is_one_line_and_leaves_nothing(adapt, tmp_path, out):
    (tmp_path / "counts.csv").write_text("".join(f"k{number},{number}\n" for number in range(1, 2_000)))
    command = ["build", "--max-pins", "1500"] if out == "x.plan" else ["compare"]
    line = ["partition", *command, "counts.csv", "--channels", "3", "-q"]
    with contextlib.chdir(tmp_path):
        adapt.done(*line)  # compiles here, where it can be kept, what the limited one could not keep

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    with started([*line, "-o", out], tmp_path, preexec_fn=limited, env=environment) as child:
        told, err = child.communicate()
    assert (child.returncode, told, err.count("\n")) == (4, "", 1), err
    assert out in err
    assert [path.name for path in Path(tmp_path).iterdir()] == ["counts.csv"]


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
