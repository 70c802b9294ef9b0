"""Failures, interrupts and costly values: one line and the exit code of their kind."""

import errno
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from unittest.mock import Mock

import pytest

import adapt
from adapt.cli import entry
from adapt.cli.entry import INTERRUPTED, interruptible
from adapt.cli.failures import INTERRUPTED as OF_COMMANDS
from adapt.cli.main import main, run
from adapt.cli.terminal import output
from adapt.core.errors import BadInput, EnvironmentFailure, UsageError
from adapt.traces.reports import reporting
from adapt.traces.store.disk import disk_failures
from tests.any_trace import VISITS, two_halves
from tests.traces.small_traces import write_trace

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


SWALLOWS = """
import os, signal, threading
seen = []
try:
    os.kill(os.getpid(), signal.SIGINT)
    seen.append("put off")
except BaseException:
    seen.append("swallowed")
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Loads a module that swallows every exception, and is interrupted."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "swallows.py").write_text(SWALLOWS)
    yield lambda: __import__("swallows")
    sys.modules.pop("swallows", None)


def test_an_interrupt_while_a_module_loads_arrives_after_it(load):
    went_on = []

    def run():
        went_on.append(load().seen)
        for _ in range(60_000):  # until it arrives: one long wait may begin just after
            time.sleep(1e-3)
        return 0

    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGALRM)]
    assert interruptible(run) == INTERRUPTED == OF_COMMANDS
    assert went_on == [["put off"]]
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGALRM)] == handlers


def test_a_job_of_the_background_that_ignores_interrupts_goes_on_doing_so():
    def run():
        os.kill(os.getpid(), signal.SIGINT)
        return 7

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert interruptible(run) == 7
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_program_that_ends_before_it_arrives_or_swallows_it_was_interrupted_too(load):
    assert interruptible(lambda: load() and 0) == INTERRUPTED

    def swallow():
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            return 0
        return 1

    assert interruptible(swallow) == INTERRUPTED


def test_a_module_that_never_ends_is_interrupted_all_the_same(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("adapt.cli.entry._AGAIN_S", 1e-3)
    (tmp_path / "endless.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nwhile True: pass\n")
    assert interruptible(lambda: __import__("endless") and 0) == INTERRUPTED


def test_without_an_interrupt_the_code_is_that_of_the_program():
    assert [interruptible(lambda code=code: code) for code in (0, 3)] == [0, 3]


@pytest.mark.parametrize("name", ["adapt", "script.py"])
def test_the_first_line_of_the_program_handles_an_interrupt_and_a_library_leaves_it_alone(name, monkeypatch):
    left = []
    monkeypatch.setattr("os._exit", left.append)
    monkeypatch.setattr("sys.argv", [f"/usr/bin/{name}"])
    before = signal.getsignal(signal.SIGINT)
    try:
        exec(Path(adapt.__file__).read_text(), {"__name__": "adapt"})
        handler = signal.getsignal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    if name == "adapt":
        handler(signal.SIGINT, None)
        assert left == [INTERRUPTED]
    else:
        assert handler is before


def test_a_second_interrupt_ends_the_program_as_the_first(monkeypatch):
    def interrupted_twice(_run):
        raise KeyboardInterrupt

    monkeypatch.setattr(entry, "interruptible", interrupted_twice)
    monkeypatch.setattr(entry, "gc", Mock())  # of the program, not of this process
    with pytest.raises(SystemExit) as left:
        entry.main()
    assert left.value.code == INTERRUPTED


FLUX, ELASTIC = "replay flux x.trace --workers 4", "replay elastic x.trace --pool 4"
LIVE = "replay repartition x.trace --channels 4 --period 1s --live"
COMPARE = "replay compare x.trace --channels 4 --seeds 1 --jobs 1 --scenario flux-load"
PERIODS = "control periods, and at most 500,000"


COSTLY = [
    (f"{FLUX} --network latency=1h", PERIODS),
    (f"{FLUX} --network bandwidth=1bps", PERIODS),
    (f"{FLUX} --state 10000 --network state-bandwidth-total=1bps", PERIODS),
    (f"{FLUX} --state 1000000000000", PERIODS),
    (f"{FLUX} --service-time 100h", PERIODS),
    (f"{FLUX} --slow 1@0s:0.0001%", PERIODS),
    (f"{FLUX} --producers row:buffer=100000000", "take 11.9 GiB, and at most 4 GiB"),
    (f"{FLUX} --network connection-buffer=100000000", "take 59.6 GiB, and at most 4 GiB"),
    (f"{FLUX} --seed -1", "--seed must be from 0 to 2^63 - 1 (got -1)"),
    (f"{FLUX} --policy load:min-imbalance=inf", "must be finite and at least 1 (got inf)"),
    (f"{FLUX} --policy memory:min-imbalance=inf --memory 1MB", "must be finite and at least 1 (got inf)"),
    (f"{FLUX} --stages late.toml", PERIODS),
    (f"{ELASTIC} --network latency=1h", PERIODS),
    (f"{ELASTIC} --state 10000 --network state-bandwidth-total=1bps", PERIODS),
    (f"{ELASTIC} --offered 1e9", "smaller than the 10000000000 workers"),
    (f"{ELASTIC} --seed -1", "--seed must be from 0 to 2^63 - 1 (got -1)"),
    (f"{LIVE} --network latency=1h", "14,400 steps of 1s, and at most 10,000"),
    (f"{LIVE} --network state-bandwidth-total=1bps", "steps of 1s, and at most 10,000"),
    (f"{COMPARE} --network latency=1h", PERIODS),
    (f"{COMPARE} --state 10000 --network state-bandwidth-total=1bps", PERIODS),
    ("replay fit x.trace --network scaled.toml", "200,000,000 tuples of 200 rows, and at most 20,000,000"),
    ("replay ordered x.trace --chain chain.toml --seed -1", "--seed must be at least 0 (got '-1')"),
    ("partition build x.trace --channels 100000", "at most 10,000,000 replicas in all (got 100,000 workers"),
    ("verdict x.trace --channels 100000", "at most 10,000,000 replicas in all (got 100,000 workers"),
    ("partition compare x.trace --channels 100000", "at most 10,000,000 replicas in all"),
]


def test_what_would_take_too_long_is_refused_with_the_number(adapt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    adapt.done(*"generate zipf --rows 200 --keys 30 --rate 100 --cost constant(1ms) -o x.trace".split())
    Path("chain.toml").write_text(VISITS)
    stages = '[[stage]]\nname = "a"\n[[stage]]\nname = "b"\nquery = "q"\ninputs = ["a"]\n'
    Path("late.toml").write_text(f'{stages}[[query]]\nname = "q"\narrive = "1000000h"\n')
    Path("scaled.toml").write_text(two_halves("1s", 0.001).replace('"some"\n', '"some"\nscale = 1e6\n', 1))
    for line, sentence in COSTLY:
        said = adapt(*line.split())
        assert said.code == 2, line
        assert sentence in said.err.splitlines()[-1], line
        assert "Warning" not in said.err, line


def test_rows_that_arrive_after_all_times_end_in_an_answer(adapt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    adapt.done(*"generate zipf --rows 9 --keys 3 --rate 100 -o x.trace".split())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapt.done(*f"{LIVE} --speedup 1e-300".split())


OWN = """
from adapt.cli.pandas_later import keep_pandas_for_later
keep_pandas_for_later()
import pyarrow as pa
pa.array([1])
import sys
assert "pandas" not in sys.modules
import pandas as pd
moments = pa.array(pd.Series(pd.to_datetime(["2020-01-01", None])))
assert moments.type == pa.timestamp("ns") and moments.null_count == 1
assert pa.array(pd.Series([1.5, None])).null_count == 1
assert pa.table({"a": [1]}).to_pandas().equals(pd.DataFrame({"a": [1]}))
"""

COMMAND = """
import sys
from adapt.cli.main import main
try:
    main(sys.argv[1:])
finally:
    heavy = "duckdb jinja2 pandas py4j pyspark vl_convert".split() + ["adapt.cli.commands.check"] * (len(sys.argv) > 2)
    print("loaded", *[name for name in heavy if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize(
    "command",
    [
        "replay flux x.trace --workers 2 -o x.flux",
        "verdict x.csv --key key --time ts --channels 2 --engine flink -o y.trace",
        "--version",
    ],
)
def test_a_command_loads_only_what_it_needs(tmp_path: Path, command: str) -> None:
    write_trace(tmp_path / "x.trace", {"ts": [0, 1000, 2000], "key": ["a", "b", "a"]})
    (tmp_path / "x.csv").write_text("ts,key\n" + "".join(f"2020-01-01 00:00:{s:02},{s % 3}\n" for s in range(60)))
    line = [sys.executable, "-c", COMMAND, *command.split()]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "loaded"


def test_pandas_imported_later_has_its_types_in_pyarrow() -> None:
    subprocess.run([sys.executable, "-c", OWN], check=True)
