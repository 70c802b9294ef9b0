"""What failures look like: one line on stderr, the exit code of their kind, nothing on stdout."""

import errno
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from adapt.cli.main import main, run
from adapt.cli.terminal import output
from adapt.core.errors import BadInput, EnvironmentFailure, UsageError
from adapt.traces.reports import reporting
from adapt.traces.store.disk import disk_failures

PROGRAM = [sys.executable, "-c", "from adapt.cli.main import main; main()"]


@pytest.fixture
def failing(monkeypatch):
    """Makes `adapt report` fail with an error."""

    def fail(error):
        def raise_it(path, **_options):
            raise error

        monkeypatch.setattr(reporting, "reported", raise_it)

    return fail


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MemoryError(), "memory ran out; free some"),
        (OSError(errno.EMFILE, "Too many open files"), "too many files are open; raise the limit"),
    ],
)
def test_memory_and_files_that_run_out_are_no_bug(adapt, failing, error, sentence):
    failing(error)
    assert adapt.refused(4, "report", "x.trace").startswith(f"adapt: {sentence}")


@pytest.fixture
def counts(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text("".join(f"key {number},{number}\n" for number in range(1, 3000)))
    return path


@pytest.mark.parametrize(("error", "code"), [(UsageError, 2), (BadInput, 3), (EnvironmentFailure, 4)])
def test_each_kind_of_failure_has_its_exit_code(adapt, failing, error, code):
    failing(error("x is\nno y; give z"))
    assert adapt.refused(code, "report", "x") == "adapt: x is no y; give z"


def test_a_bug_is_one_line_that_names_the_file_of_its_traceback(adapt, failing, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    failing(ZeroDivisionError("by\nnothing"))
    line = adapt.refused(5, "report", "x")
    kept = Path(re.search(r"traceback in (.*)\)$", line)[1])
    assert "a bug: ZeroDivisionError: by nothing" in line
    assert kept.parent == tmp_path
    assert "raise_it" in kept.read_text()


def test_no_temporary_folder_is_one_sentence_without_their_list(adapt, failing, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/proc/1", "/proc/2"])
    with pytest.raises(FileNotFoundError) as found:
        tempfile.gettempdir()
    failing(found.value)
    assert adapt.refused(4, "report", "x").endswith("free space, or set TMPDIR to another folder")
    with pytest.raises(EnvironmentFailure, match="no temporary folder can be written"), disk_failures(Path("x.run")):
        raise found.value


def test_a_current_folder_that_was_removed_is_one_sentence(adapt, counts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gone").mkdir()
    os.chdir("gone")
    (tmp_path / "gone").rmdir()
    line = ["partition", "build", counts, "--channels", "4", "-o", "x.plan"]
    assert adapt.refused(4, *line) == "adapt: the current folder was removed; change to another one and run again"


@pytest.mark.parametrize("place", [["--debug", "report", "x"], ["report", "x", "--debug"]])
def test_debug_shows_the_traceback(adapt, failing, place):
    failing(BadInput("x is no y"))
    said = adapt(*place)
    assert said.code == 3
    assert "raise_it" in said.err
    assert said.err.endswith("adapt: x is no y\n")


def test_a_failure_cannot_act_on_the_terminal(adapt, failing):
    failing(BadInput("key '\x1b[31m' is no key"))
    assert "\x1b" not in adapt.refused(3, "report", "x")


def test_an_interrupt_is_one_line(adapt, failing):
    failing(KeyboardInterrupt())
    assert "interrupted" in adapt.refused(130, "report", "x")


def test_a_reader_that_has_had_enough_is_no_failure(counts):
    many = ["partition", "build", counts, "--channels", "3000", "--scheme", "uniform", "--format", "csv"]
    for arguments in (many, ["ingest", "--help"]):
        with subprocess.Popen(
            [*PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as child:
            child.stdout.close()
            assert child.stderr.read() == ""
        assert child.returncode == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full device to write to")
@pytest.mark.parametrize("line", [["partition", "build", "counts.csv", "--channels", "3"], ["--help"], ["--version"]])
def test_a_full_output_is_said_in_one_line(counts, monkeypatch, capsys, line):
    monkeypatch.chdir(counts.parent)
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert run(line) == 4
    *_, said = capsys.readouterr().err.splitlines()
    assert said == "adapt: cannot write to stdout: No space left on device; free space or redirect it elsewhere"


@pytest.mark.parametrize("line", ["", "--help", "report x", "partition"])
def test_a_closed_output_is_said_in_one_line(monkeypatch, capsys, line):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as left:
        main(line.split())
    assert left.value.code == 4
    assert capsys.readouterr().err == "adapt: stdout is closed; redirect it to a file or to /dev/null\n"


def test_narration_that_nobody_reads_stops_nothing(monkeypatch):
    class Gone:
        encoding = "utf-8"

        def write(self, text):
            raise BrokenPipeError

        def flush(self):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    output.narrate("still here")
