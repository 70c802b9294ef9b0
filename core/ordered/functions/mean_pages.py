"""Mean session length in pages."""

from collections.abc import Sequence

import numpy as np

from adapt.core.atomics import load, store
from adapt.core.compiled import AtAddress
from adapt.core.ordered.chain.bound import END, BoundOperator, Words
from adapt.core.ordered.chain.mixing import MASK
from adapt.core.ordered.functions.function import OWN, SIGNATURE, STATE, Function, Row, Windowed


class _Mean(Windowed):
    def __init__(self, pages_at: int) -> None:
        self._at, self._pages, self._sessions = pages_at, 0, 0

    def __call__(self, row: Row) -> Sequence[Row]:
        self._pages, self._sessions = self._pages + row[self._at] & MASK, self._sessions + 1
        return ()

    def close(self, partition: int, time: int) -> Sequence[Row]:  # noqa: ARG002 (one output)
        return [(self._pages, self._sessions)] if time == END and self._sessions else ()


def _add(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001 (outputs come at the end)
    state = load(words, STATE)
    store(state, 0, load(state, 0) + load(given, load(words, OWN)))
    store(state, 1, load(state, 1) + 1)
    return 0


def _close(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001
    state = load(words, STATE)
    if load(given, 0) != END or load(state, 1) == 0:
        return 0
    store(outputs, 0, load(state, 0))
    store(outputs, 1, load(state, 1))
    return 1


class MeanPages(Function):
    """Total pages and number of sessions, at the end of the stream.

    Nothing if there were no sessions.
    """

    compiled = AtAddress(SIGNATURE, _add)
    closing = AtAddress(SIGNATURE, _close)

    def step(self, bound: BoundOperator) -> Windowed:
        """The plain-Python step."""
        return _Mean(bound.fields.index("pages"))

    def words(self, bound: BoundOperator) -> tuple[int, ...]:
        """Place of the pages."""
        return (bound.fields.index("pages"),)

    def state(self, bound: BoundOperator) -> Words:  # noqa: ARG002
        """Pages and sessions."""
        return np.zeros(2, np.int64)
