"""The program `adapt`, which an interrupt ends wherever it arrives."""

import gc
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

INTERRUPTED = 130

_AGAIN_S = 0.05
_MOST = 100
"""How often an interrupt is put off; a module that runs for longer is interrupted all the same."""


_GARBAGE = 400_000
"""Objects made between two searches for garbage: what loads makes many more than Python's 700, and keeps them."""


def main() -> None:
    """Run the command line and exit with its code."""
    gc.set_threshold(_GARBAGE)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its matrices are small, and idle threads spin
    try:
        code = interruptible(_run)
    except KeyboardInterrupt:  # a second one, as it ends
        code = INTERRUPTED
    gc.disable()
    gc.freeze()  # or the end of the process searches all that was loaded once more
    sys.exit(code)


def interruptible(run: Callable[[], int]) -> int:
    """Run a program; an interrupt is put off while a module loads.

    Loaders of libraries swallow exceptions, and the program would go on. A program that was started to ignore
    interrupts, as a shell's job in the background is, ignores them.

    Returns:
        What the program returns; `INTERRUPTED` if an interrupt was swallowed all the same.
    """
    left, asked = _MOST, False

    def interrupt(_number: int, frame: FrameType | None) -> None:
        nonlocal left, asked
        asked = True
        if left > 0 and _loads(frame):
            left -= 1
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        else:
            left = _MOST
            raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        return run()
    before = {each: signal.signal(each, interrupt) for each in (signal.SIGINT, signal.SIGALRM)}
    try:
        code = run()
        return INTERRUPTED if asked else code
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for each, handler in before.items():
            signal.signal(each, handler)


def _loads(frame: FrameType | None) -> bool:
    """Whether a module is being loaded."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib."):
            return True
        frame = frame.f_back
    return False


def _run() -> int:
    from adapt.cli.main import main

    try:
        main()
    except SystemExit as left:
        return int(left.code or 0)
    return 0
