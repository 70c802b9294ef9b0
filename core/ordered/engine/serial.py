"""The serial run in plain Python, whose results every other run of a chain must have."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from adapt.core.ordered.chain.bound import BoundChain, BoundOperator
from adapt.core.ordered.chain.mixing import FOLD, folded
from adapt.core.ordered.functions.function import Row, Step, Windowed
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
        inputs: Tuples that each operator read, punctuations not counted.
    """

    egress: Egress
    kept: tuple[Row, ...]
    inputs: tuple[int, ...]


def run_serially(chain: BoundChain, keep: int = 0, told: Callable[[int], None] | None = None) -> SerialRun:
    """Each tuple through the whole chain, one after the other.

    Args:
        keep: How many of the tuples that leave are kept.
        told: Told now and then how many rows are through.

    Source: ordered streams, section 5, Definition 5.1: the order that every concurrent run must keep.
    """
    stages = [_Stage(bound, function_of(bound.operator).step(bound)) for bound in chain.operators]
    inputs, fold, left = [0] * len(stages), FOLD, 0
    kept: list[Row] = []
    times = dict(zip(chain.punctuations.tolist(), chain.tuples[chain.punctuations, 0].tolist(), strict=True))
    for first in range(0, len(chain.tuples), _AT_ONCE):
        if told is not None:
            told(first)
        for number, words in enumerate(chain.tuples[first : first + _AT_ONCE].view(np.uint64).tolist(), first):
            time = times.get(number)
            rows = _passed(stages, inputs, () if time is not None else (tuple(words),), time)
            for row in rows:
                for word in row:
                    fold = folded(fold, word)
            kept += rows[: max(keep - left, 0)]
            left += len(rows)
    return SerialRun(Egress(left, fold), tuple(kept), tuple(inputs))


@dataclass(frozen=True, slots=True)
class _Stage:
    """An operator and its state."""

    bound: BoundOperator
    step: Step

    def given(self, rows: Sequence[Row], time: int | None) -> list[Row]:
        """The outputs of tuples, and then of the punctuation behind them if there is one."""
        outputs = [given for row in rows for given in self.step(row)]
        if time is not None and isinstance(self.step, Windowed):
            for partition in range(self.bound.partitions):
                outputs += self.step.close(partition, time)
        return outputs


def _passed(stages: Sequence[_Stage], inputs: list[int], rows: Sequence[Row], time: int | None) -> Sequence[Row]:
    """What becomes of one tuple, or of a punctuation with its time.

    Each operator sees its inputs in the order in which the one before it gave them, and then the punctuation.
    """
    for number, stage in enumerate(stages):
        inputs[number] += len(rows)
        rows = stage.given(rows, time)
    return rows
