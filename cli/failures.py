"""Failures as one line on stderr, and exit codes."""

import os
import sys
import tempfile
import traceback
from contextlib import suppress
from typing import Any

from adapt.cli.options.groups import typed_name
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.output import Verbosity, narrate
from adapt.cli.terminal.usage import usage_sentence
from adapt.core.errors import AdaptError, BadInput, EnvironmentFailure, Interrupted, UsageError, redacted
from adapt.core.units.process_limits import exhausted
from adapt.core.units.settings import SettingError

USAGE = 2
BUG = 5
INTERRUPTED = Interrupted.exit_code

EXIT_CODES = {
    0: "done",
    1: "a limit of `adapt check` failed",
    USAGE: "wrong usage",
    BadInput.exit_code: "bad input",
    EnvironmentFailure.exit_code: "environment: no Java, disk full, output exists or is in use",
    BUG: "a bug in adapt; the message names the file with the traceback",
    INTERRUPTED: "interrupted",
}
"""Exit codes and their meanings."""


def explain(error: Exception, *, debug: bool) -> int:
    """Print a failure in one line and return its exit code.

    An unexpected error is a bug: its traceback goes to a file that the line names.
    """
    from adapt.traces.read_errors import unencodable_name
    from adapt.traces.store.disk import no_temporary_folder

    if debug:
        print(_traceback(error), end="", file=sys.stderr)
    found = no_temporary_folder(error) or exhausted(error) or _no_current_folder(error) or unencodable_name(error)
    error = found or error
    if isinstance(error, SettingError):
        error = UsageError(error.spelled(typed_name))
    if isinstance(error, AdaptError):
        _say(f"adapt: {error}")
        return error.exit_code
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):  # raised by the option parser
        return _explain_usage(error)
    _say(f"adapt: this is a bug: {type(error).__name__}: {error} ({_kept_traceback(error)})")
    return BUG


def _no_current_folder(error: Exception) -> EnvironmentFailure | None:
    """A relative path where the current folder was removed; None for other errors."""
    if not isinstance(error, FileNotFoundError) or error.filename is not None:
        return None
    try:
        os.getcwd()
    except FileNotFoundError:
        return EnvironmentFailure("the current folder was removed; change to another one and run again")
    return None


def explain_interrupt() -> int:
    """Print that the user interrupted the run, and return the exit code."""
    _say("adapt: interrupted; no incomplete output was kept")
    return INTERRUPTED


def _explain_usage(error: Any) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":  # a group without a command prints its help
        with suppress(OSError):
            print(error.format_message(), file=sys.stderr, flush=True)
        return USAGE
    context = getattr(error, "ctx", None)
    help_command = context.command_path if context is not None else "adapt"
    _say(f"adapt: {usage_sentence(error)}; see `{help_command} --help`")
    return int(error.exit_code)


def _say(line: str) -> None:
    narrate(" ".join(line.split("\n")), Verbosity.QUIET)


def _traceback(error: Exception) -> str:
    return redacted("".join(traceback.format_exception(error)))


def _kept_traceback(error: Exception) -> str:
    """Write the traceback to a file, and say where it is."""
    try:
        handle, path = tempfile.mkstemp(prefix="adapt-bug-", suffix=".txt")
        with os.fdopen(handle, "w", errors="backslashreplace") as file:
            file.write(f"{command_line()}\n\n")
            file.write(_traceback(error))
    except OSError as failure:
        return f"cannot write the traceback: {failure.strerror}; use --debug to see it"
    return f"traceback in {path}"
