"""A process that runs scenarios ends with its command.

It loads little, to watch the command from its start.
"""

import ctypes
import os
import signal
import sys
from multiprocessing import parent_process
from threading import Thread

_PR_SET_PDEATHSIG = 1


def die_with_command() -> None:
    """Die silently on Ctrl-C, and when the command is killed.

    Ctrl-C reaches every process of a command.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform == "linux":  # at once, even where compiled code or a loading library keeps threads from running
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    Thread(target=_die_after_parent, daemon=True).start()


def _die_after_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
