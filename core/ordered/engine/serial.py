"""Serial run in plain Python: the reference for every ordered run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from adapt.core.ordered.chain.bound import BoundChain, BoundOperator, Words
from adapt.core.ordered.chain.mixing import FOLD, folded
from adapt.core.ordered.functions.function import Row, Step, Windowed
from adapt.core.ordered.own.function import function_of

_AT_ONCE = 1 << 16
"""Rows converted to Python integers at once."""


@dataclass(frozen=True, slots=True)
class Egress:
    """Output of a chain, as a count and a hash.

    Attributes:
        tuples: Tuples that left the chain.
        hash: 64 bits over every word of every tuple, in order.
    """

    tuples: int
    hash: int


@dataclass(frozen=True, slots=True)
class SerialRun:
    """Result of a serial run.

    Attributes:
        egress: What left the chain.
        kept: The first output tuples.
        inputs: Tuples that each operator read, without punctuations.
    """

    egress: Egress
    kept: tuple[Row, ...]
    inputs: tuple[int, ...]


def run_serially(
    chain: BoundChain,
    keep: int = 0,
    told: Callable[[int], None] | None = None,
    taken: Callable[[Words], None] | None = None,
) -> SerialRun:
    """Run each tuple through the whole chain before the next.

    Args:
        keep: How many output tuples to keep.
        told: Called now and then with the number of rows done.
        taken: Called with the output tuples in order, some at a time.

    Source: ordered streams, section 5, Definition 5.1: the order that every concurrent run must keep.
    """
    stages = [_Stage(bound, function_of(bound).step(bound)) for bound in chain.operators]
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
            if taken is not None and rows:
                taken(np.array(rows, np.uint64).view(np.int64))
    return SerialRun(Egress(left, fold), tuple(kept), tuple(inputs))


@dataclass(frozen=True, slots=True)
class _Stage:
    """An operator and its state."""

    bound: BoundOperator
    step: Step

    def given(self, rows: Sequence[Row], time: int | None) -> list[Row]:
        """Outputs of tuples, then of the punctuation that follows them, if any."""
        outputs = [given for row in rows for given in self.step(row)]
        if time is not None and isinstance(self.step, Windowed):
            for partition in range(self.bound.partitions):
                outputs += self.step.close(partition, time)
        return outputs


def _passed(stages: Sequence[_Stage], inputs: list[int], rows: Sequence[Row], time: int | None) -> Sequence[Row]:
    """Outputs of one tuple, or of a punctuation with its time.

    Each operator reads its inputs in the order of its predecessor's outputs, then the punctuation.
    """
    for number, stage in enumerate(stages):
        inputs[number] += len(rows)
        rows = stage.given(rows, time)
    return rows
