"""The serial run in plain Python, whose results every other run of a chain must have."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from adapt.core.ordered.bound import BoundChain
from adapt.core.ordered.functions.function import Row, Step
from adapt.core.ordered.functions.mixing import FOLD, folded
from adapt.core.ordered.functions.registry import function_of

_AT_ONCE = 1 << 16
"""Rows that are turned into numbers of Python at once."""


@dataclass(frozen=True, slots=True)
class Egress:
    """What left a chain.

    Attributes:
        tuples: How many did.
        hash: 64 bits that depend on every word of every tuple and on their order.
    """

    tuples: int
    hash: int


@dataclass(frozen=True, slots=True)
class SerialRun:
    """A serial run.

    Attributes:
        egress: What left the chain.
        kept: The first tuples that left.
        inputs: Tuples that each operator read.
    """

    egress: Egress
    kept: tuple[Row, ...]
    inputs: tuple[int, ...]


def run_serially(chain: BoundChain, keep: int = 0, told: Callable[[int], None] | None = None) -> SerialRun:
    """Each tuple through the whole chain, one after the other.

    Args:
        chain: The chain, bound to its tuples.
        keep: How many of the tuples that leave are kept.
        told: Told now and then how many rows are through.
    """
    steps = [function_of(bound.operator).step(bound) for bound in chain.operators]
    inputs, fold, left = [0] * len(steps), FOLD, 0
    kept: list[Row] = []
    for first in range(0, len(chain.tuples), _AT_ONCE):
        if told is not None:
            told(first)
        for words in chain.tuples[first : first + _AT_ONCE].view(np.uint64).tolist():
            rows = _passed(steps, inputs, tuple(words))
            for row in rows:
                for word in row:
                    fold = folded(fold, word)
            kept += rows[: max(keep - left, 0)]
            left += len(rows)
    return SerialRun(Egress(left, fold), tuple(kept), tuple(inputs))


def _passed(steps: Sequence[Step], inputs: list[int], row: Row) -> Sequence[Row]:
    """What becomes of one tuple; each operator sees its inputs in the order in which the one before it gave them."""
    rows: Sequence[Row] = (row,)
    for number, step in enumerate(steps):
        inputs[number] += len(rows)
        rows = [given for row in rows for given in step(row)]
    return rows
