"""The serial run in plain Python, whose results every other run of a chain must have."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adapt.core.ordered.bound import BoundChain
from adapt.core.ordered.functions.function import Row, Step
from adapt.core.ordered.functions.mixing import FOLD, folded
from adapt.core.ordered.functions.registry import FUNCTIONS


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
        rows: It, tuple by tuple.
        inputs: Tuples that each operator read.
    """

    egress: Egress
    rows: tuple[Row, ...]
    inputs: tuple[int, ...]


def run_serially(chain: BoundChain) -> SerialRun:
    """Each tuple through the whole chain, one after the other."""
    steps = [FUNCTIONS[bound.operator.function].step(bound) for bound in chain.operators]
    inputs = [0] * len(steps)
    out: list[Row] = []
    for words in chain.tuples.view(np.uint64).tolist():
        out += _passed(steps, inputs, tuple(words))
    return SerialRun(Egress(len(out), _hash(out)), tuple(out), tuple(inputs))


def _passed(steps: Sequence[Step], inputs: list[int], row: Row) -> Sequence[Row]:
    """What becomes of one tuple; each operator sees its inputs in the order in which the one before it gave them."""
    rows: Sequence[Row] = (row,)
    for number, step in enumerate(steps):
        inputs[number] += len(rows)
        rows = [given for row in rows for given in step(row)]
    return rows


def _hash(rows: Sequence[Row]) -> int:
    fold = FOLD
    for row in rows:
        for word in row:
            fold = folded(fold, word)
    return fold
