"""An interrupt ends the program with 130, wherever it arrives."""

import os
import signal
import sys
from pathlib import Path

import pytest

import adapt
from adapt.cli import entry
from adapt.cli.entry import INTERRUPTED, interruptible
from adapt.cli.failures import INTERRUPTED as OF_COMMANDS

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
        signal.pause()  # until it arrives
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
    with pytest.raises(SystemExit) as left:
        entry.main()
    assert left.value.code == INTERRUPTED
