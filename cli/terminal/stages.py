"""Progress and interruption of long-running commands."""

import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseServer

from adapt.cli.terminal.narration import is_muted, progress, runners_narrated
from adapt.traces.spark.connect import interrupt
from adapt.traces.spark.progress import OF_COMMAND, Progress


@contextmanager
def stages() -> Iterator[Progress]:
    """A progress callback for the library; silent unless stderr is a terminal.

    Prints at the end where the work ran.
    """
    with _interruptible(), runners_narrated(), progress() as report:
        token = OF_COMMAND.set(report)
        try:
            yield report
        finally:
            OF_COMMAND.reset(token)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end Spark's work, so that no task writes while incomplete output is removed.

    Not if a program calls the command as a function, since Spark is then the program's own.
    """
    if is_muted() or threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts: list[int] = []

    def end(signal_number: int, _frame: object) -> None:
        interrupts.append(signal_number)
        _hush()
        _end_spark()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, end)
    try:
        yield
    except Exception as error:
        if interrupts:  # whatever the interrupted call to Java raised
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, before)


def _hush() -> None:
    """Keep py4j and PySpark from printing stacks about closed connections before exit."""
    logging.disable(logging.CRITICAL)
    setattr(BaseServer, "handle_error", lambda *_: None)  # noqa: B010 - a method, in the eyes of a type checker


def _end_spark() -> None:
    interrupt()
    pyspark = sys.modules.get("pyspark")
    process = getattr(getattr(getattr(pyspark, "SparkContext", None), "_gateway", None), "proc", None)
    if process is not None:
        process.kill()
        process.wait()
