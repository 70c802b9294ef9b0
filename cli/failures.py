"""What a failure looks like: one line, and the exit code of its kind."""

import os
import sys
import tempfile
import traceback
from typing import Any

from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.output import Verbosity, narrate
from adapt.core.errors import AdaptError, BadInput, EnvironmentFailure, did_you_mean

USAGE = 2
BUG = 5
INTERRUPTED = 130

EXIT_CODES = {
    0: "done",
    1: "a limit of `adapt check` failed",
    USAGE: "wrong usage",
    BadInput.exit_code: "bad input",
    EnvironmentFailure.exit_code: "environment: no Java, disk full, output exists or in use",
    BUG: "a bug, whose traceback goes to a file that the message names",
    INTERRUPTED: "interrupted",
}
"""What the program ends with, and why."""


def explain(error: Exception, *, debug: bool) -> int:
    """Say one line about a failure on stderr; the exit code it asks for.

    A failure that is not the user's to mend is a bug: its traceback goes to a file that the line names.
    """
    if debug:
        traceback.print_exception(error)
    if isinstance(error, AdaptError):
        _say(f"adapt: {error}")
        return error.exit_code
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):  # the option parser's own
        return _explain_usage(error)
    _say(f"adapt: a bug: {type(error).__name__}: {error} ({_kept_traceback(error)})")
    return BUG


def explain_interrupt() -> int:
    """Say that the user ended it; the exit code of that."""
    _say("adapt: interrupted; nothing unfinished was left behind")
    return INTERRUPTED


def _explain_usage(error: Any) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":  # a group without a command: its help is the answer
        print(error.format_message(), file=sys.stderr)
        return USAGE
    context = getattr(error, "ctx", None)
    help_command = context.command_path if context is not None else "adapt"
    message = _about_value(error) or _first_small(" ".join(str(error.format_message()).split())).rstrip(".?")
    _say(f"adapt: {message}; see `{help_command} --help`")
    return int(error.exit_code)


def _about_value(error: Any) -> str:
    """What is wrong with an option's value, with the value; nothing if the parser does not tell."""
    told = getattr(error.__cause__, "errors", None)
    parameter = getattr(error, "param", None)
    if told is None or parameter is None:
        return ""
    first = told()[0]
    given = f"{parameter.opts[0]} {first['input']!r}"
    choices = getattr(getattr(parameter, "type_descriptor", None), "choices", None)
    if choices:
        return f"{given} is not known{did_you_mean(str(first['input']), [choice.value for choice in choices])}"
    expected = {"int": "a whole number", "float": "a number"}.get(str(first["type"]).partition("_")[0])
    return f"{given} is not {expected}" if expected else ""


def _first_small(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _say(line: str) -> None:
    narrate(" ".join(line.split("\n")), Verbosity.QUIET)


def _kept_traceback(error: Exception) -> str:
    """Where the traceback is, after putting it there."""
    try:
        handle, path = tempfile.mkstemp(prefix="adapt-bug-", suffix=".txt")
        with os.fdopen(handle, "w", errors="backslashreplace") as file:
            file.write(f"{command_line()}\n\n")
            traceback.print_exception(error, file=file)
    except OSError as failure:
        return f"no file could be made for the traceback: {failure.strerror}; see it with --debug"
    return f"traceback in {path}"
