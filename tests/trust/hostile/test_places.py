"""Folders of any name, and any environment of a process, give the same results or one sentence."""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from adapt.traces.store import disk
from tests.journeys.processes import PROGRAM
from tests.tiers import SOAK
from tests.trust.crashes.writers import content, files_below, make_inputs, parts_of

NAMES = [
    *("plain", "with space", "it's", 'a "quote"', "a\nnewline", "-dash", "--out", "a;b&c|d", "$HOME", "`id`", "%20%s"),
    *("[a-z]*?", "{a,b}", "back\\slash", "ключ 😀", "e\u0301", "\x1b[31m", "=1+1"),
    *("a:b", "~", "<b>", "x" * 200, ".hidden", "a.trace", "s3", "#x"),
]
LINES = (
    "ingest {}/x2.csv --key key --time ts -o {}/out.csv",
    "partition build {}/x.trace --channels 3 -o {}/out.csv",
    "partition count {}/x.trace --channels 3 -o {}/out.csv",
    "partition export {}/x3.plan --to rekey -o {}/out.csv",
    "replay flux {}/x.trace --workers 2 -o {}/out.csv",
    "report {}/x.trace {}/x3.plan --html {}/out.csv",
    "check {}/x.trace --channels 2 --limit keys<=9 -o {}/out.csv",
)
SHOWN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")


@pytest.fixture(scope="module")
def stock(tmp_path_factory) -> Path:
    """A folder with inputs."""
    from adapt.cli.main import run

    class Quiet:
        def done(self, *line: object) -> None:
            assert run([*map(str, line)]) == 0, line

    folder = tmp_path_factory.mktemp("stock")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        make_inputs(Quiet())
    return folder


def test_a_folder_of_any_name_gives_the_same(adapt, stock, tmp_path, promise):
    names = NAMES if SOAK else ["plain", "a\nnewline", "--out", "[a-z]*?"]
    lines = LINES[:4] if SOAK else LINES[1:2]
    found: dict[str, list[object]] = {}
    for name in names:
        folder = tmp_path / name
        shutil.copytree(stock, folder)
        for line in lines:
            said = adapt(*(word.replace("{}", str(folder)) for word in line.split()))
            assert said.code in (0, 1), (name, line, said.err)
            assert not SHOWN.search(said.out + said.err), (name, line)
            parts = parts_of(files_below(folder))
            assert parts is not None, (name, line)
            made = content(parts) if "report" not in line and "export" not in line else sorted(parts)
            found.setdefault(line, []).append(made)
            disk.remove_tree(folder / "out.csv")
    assert all(made.count(made[0]) == len(names) for made in found.values())
    promise("places").checked(len(names) * len(lines))


def test_a_name_that_is_not_utf8_is_refused_or_gives_the_same(adapt, stock, tmp_path, promise):
    """Libraries open files by names in UTF-8 alone."""
    folder = tmp_path / os.fsdecode(b"\xff\xfe")
    shutil.copytree(stock, folder)
    for line in LINES if SOAK else LINES[:3]:
        said = adapt(*(word.replace("{}", str(folder)) for word in line.split()))
        assert said.code in (0, 1, 3), (line, said.err)
        assert said.code < 3 or "names of files and folders must be UTF-8" in said.err.splitlines()[-1], said.err
        parts = parts_of(files_below(folder))
        assert (parts is None) == (said.code == 3), line
        disk.remove_tree(folder / "out.csv")
    promise("places").checked(len(LINES))


@dataclass(frozen=True, slots=True)
class Around:
    """What is around a process."""

    environment: dict[str, str | None] = field(default_factory=dict)  # None: not set
    before: Callable[[], object] | None = None  # in the process, before it starts
    codes: tuple[int, ...] = (0,)
    stdout: str = ""  # a file instead of a pipe


def limited(kind: int, most: int) -> Callable[[], object]:
    return lambda: resource.setrlimit(kind, (most, most))


def limited_files() -> None:
    """As shells do, in which Python sees the error, not the signal."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limited(resource.RLIMIT_FSIZE, 300)()


def in_a_removed_folder() -> None:
    os.mkdir("gone")
    os.chdir("gone")
    os.rmdir("../gone")


AROUND = {
    "no HOME": Around({"HOME": None, "XDG_CACHE_HOME": None}),
    "a HOME that is not there": Around({"HOME": "/nonexistent"}),
    "a HOME that is a file": Around({"HOME": "/dev/null"}),
    "no folder for temporary files": Around({"TMPDIR": "/nonexistent"}),
    "LANG=C": Around({"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    "ASCII alone": Around({"PYTHONIOENCODING": "ascii"}),
    "a column": Around({"COLUMNS": "1", "LINES": "1"}),
    "no terminal": Around({"TERM": "dumb", "COLUMNS": "0"}),
    "colors": Around({"FORCE_COLOR": "1", "TERM": "xterm"}),
    "no PATH": Around({"PATH": ""}),
    "warnings are errors": Around({"PYTHONWARNINGS": "error"}),
    "odd time zone": Around({"TZ": "Nowhere/Land"}),
    "stdin closed": Around(before=lambda: os.close(0)),
    "stdout closed": Around(before=lambda: os.close(1), codes=(0, 4)),
    "stderr closed": Around(before=lambda: os.close(2)),
    "all closed": Around(before=lambda: os.closerange(0, 3), codes=(0, 4)),
    "stdout full": Around(stdout="/dev/full", codes=(0, 4)),
    "files of 300 bytes": Around(before=limited_files, codes=(4,)),
    "few open files": Around(before=limited(resource.RLIMIT_NOFILE, 48), codes=(0, 4)),
    "few processes": Around(before=lambda: os.nice(19)),
    "private files": Around(before=lambda: os.umask(0o777)),
    "a removed folder": Around(before=in_a_removed_folder, codes=(0, 4)),
}


@pytest.mark.parametrize("name", AROUND if SOAK else ["stdout full"])
def test_any_environment_gives_the_same_or_one_sentence(adapt, stock, tmp_path, monkeypatch, promise, name):
    monkeypatch.chdir(stock)
    around = AROUND[name]
    lines = LINES[2:4] if SOAK else LINES[2:3]  # without kernels, which take long to compile where none are kept
    environment = {**os.environ, **{key: value for key, value in around.environment.items() if value is not None}}
    for key in [key for key, value in around.environment.items() if value is None]:
        environment.pop(key, None)
    for number, line in enumerate(lines):
        folder = shutil.copytree(stock, tmp_path / str(number))
        adapt(*(word.replace("{}", ".") for word in line.split()))
        usual = parts_of(files_below(stock))
        disk.remove_tree(stock / "out.csv")
        code, err = ran(line, folder, around, environment)
        assert code in around.codes, (line, code, err)
        assert "Traceback" not in err, (line, err)
        if code:
            assert not err or err.splitlines()[-1].startswith("adapt: "), (line, err)
        found = parts_of(files_below(folder))
        assert found is not None or code, line
        if found is not None and "count" in line:
            assert content(found) == content(usual), line
        elif found is not None:
            assert sorted(found) == sorted(usual), line
        assert not [each for each in folder.iterdir() if each.name.endswith(".partial")], line
    promise("places").checked(len(lines))


def ran(line: str, folder: Path, around: Around, environment: dict[str, str]) -> tuple[int, str]:
    """A command in a process of its own."""
    typed = [word.replace("{}", str(folder)) for word in line.split()]
    with open(around.stdout or folder / "said", "w+b") as out:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *typed],
            stdout=out,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=folder,
            preexec_fn=around.before,
            check=False,
        )
    return done.returncode, done.stderr.decode(errors="replace")
