"""How fast the cores are, whatever else uses them."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from adapt.core.atomics import clock_ns
from adapt.core.compiled import compiled, load
from adapt.core.ordered.calibrate.at_once import at_once

_WORDS = np.arange(8, dtype=np.uint64)

_ROUNDS = 300_000
"""Rounds of a loop that keeps many parts of a core busy: about half a millisecond."""


@compiled
def _spin(words: NDArray[np.uint64], rounds: int) -> int:
    """Nanoseconds of independent sums, shifts and products, which are more where another thread shares the core."""
    start = clock_ns()
    one, two, three, four, five, six = words[0], words[1], words[2], words[3], words[4], words[5]
    for turn in range(rounds):
        one = (one ^ (one >> np.uint64(7))) + words[turn & 7]
        two = (two ^ (two >> np.uint64(9))) + one
        three = (three + (three << np.uint64(3))) ^ words[(turn + 1) & 7]
        four = (four + (four << np.uint64(5))) ^ np.uint64(turn)
        five = five * np.uint64(0xD1342543DE82EF95) + np.uint64(1)
        six = (six ^ (six >> np.uint64(11))) + words[(turn + 3) & 7]
    words[0] = one ^ two ^ three ^ four ^ five ^ six
    return clock_ns() - start


@cache
def _loaded() -> None:
    load(_spin, _WORDS, _ROUNDS)


def loop_ns(threads: int) -> float:
    """Mean nanoseconds of a loop in threads at once.

    A virtual core slows by up to a third while another guest runs on the same core of the host, which no clock shows.
    """
    _loaded()
    return sum(at_once(threads, lambda _: _spin(_WORDS.copy(), _ROUNDS))) / threads
