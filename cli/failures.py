"""What a failure looks like: one line, and the exit code of its kind."""

import os
import sys
import tempfile
import traceback

from adapt.cli.output import narrate
from adapt.core.errors import AdaptError

BUG = 5


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
    _say(f"adapt: a bug: {type(error).__name__}: {error} (traceback in {_keep_traceback(error)})")
    return BUG


def _explain_usage(error: Exception) -> int:
    context = getattr(error, "ctx", None)
    message = " ".join(str(error.format_message()).split())  # type: ignore[attr-defined]
    help_command = context.command_path if context is not None else "adapt"
    _say(f"adapt: {message[:1].lower()}{message[1:].rstrip('.')}; see `{help_command} --help`")
    return int(error.exit_code)  # type: ignore[attr-defined]


def _say(line: str) -> None:
    from adapt.cli.narration import Verbosity

    narrate(" ".join(line.splitlines()), Verbosity.QUIET)


def _keep_traceback(error: Exception) -> str:
    handle, path = tempfile.mkstemp(prefix="adapt-bug-", suffix=".txt")
    with os.fdopen(handle, "w", errors="backslashreplace") as file:
        file.write(f"adapt {' '.join(sys.argv[1:])}\n\n")
        traceback.print_exception(error, file=file)
    return path
