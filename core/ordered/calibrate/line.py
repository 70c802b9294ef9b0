"""Time in which a cache line moves from one core to another."""

import threading
from collections.abc import Iterable
from statistics import median

import numpy as np

from adapt.core.atomics import clock_ns, load_atomic, publish
from adapt.core.compiled import compiled

_TURNS, _BURSTS, _LONGEST_NS = 200, 20, 100_000_000
"""Turns of a burst; bursts, of which the shortest counts, since the system may take a core away in the others; and the
time after which the threads give up."""

_LINE_WORDS = 8


@compiled
def _turns(address: int, bursts: int, mine: int) -> int:
    """Take turns in writing a word; the time of the shortest burst, or 0 without one.

    `mine` is 0 for the thread that begins, and 1 for the other one.
    """
    start = clock_ns()
    begun, shortest = start, 0
    for turn in range(bursts * _TURNS):
        looks = 0
        while load_atomic(address, 0) != 2 * turn + mine:
            looks += 1
            if looks % 1024 == 0 and clock_ns() - start > _LONGEST_NS:
                return shortest
        publish(address, 0, 2 * turn + mine + 1)
        if (turn + 1) % _TURNS == 0:
            now = clock_ns()
            if not shortest or now - begun < shortest:
                shortest = now - begun
            begun = now
    return shortest


def line_ns() -> float | None:
    """Nanoseconds in which a cache line moves from one core to another.

    On a virtual machine it depends on the cores that the host gave it, and may change by a factor of five within
    minutes. None if two threads never ran at the same time.
    """
    words = np.zeros(2 * _LINE_WORDS, np.int64)
    address = words.ctypes.data + -words.ctypes.data % (8 * _LINE_WORDS)
    _turns(address, 0, 0)
    other = threading.Thread(target=_turns, args=(address, _BURSTS, 1), daemon=True)
    other.start()
    shortest = _turns(address, _BURSTS, 0)
    other.join()
    return shortest / (2 * _TURNS) if shortest else None


def middle_ns(lines_ns: Iterable[float | None]) -> float | None:
    """Median of the times that could be measured; None without any."""
    known = [each for each in lines_ns if each is not None]
    return median(known) if known else None
