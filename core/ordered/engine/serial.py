"""Serial run in plain Python: the reference for every ordered run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from adapt.core.ordered.chain.bound import BoundChain, BoundOperator, Words, default_word
from adapt.core.ordered.chain.graph import FROM, Graph
from adapt.core.ordered.chain.mixing import FOLD, MASK, folded
from adapt.core.ordered.functions.function import Row, Step, Windowed
from adapt.core.ordered.own.function import function_of, inner_of

_AT_ONCE = 1 << 16
"""Rows converted to Python integers at once."""


@dataclass(frozen=True, slots=True)
class Egress:
    """Output of a chain, as a count and a hash."""

    tuples: int  # tuples that left the chain
    hash: int  # 64 bits over every word of every tuple, in order


@dataclass(frozen=True, slots=True)
class SerialRun:
    """Result of a serial run."""

    egress: Egress  # what left the chain
    kept: tuple[Row, ...]  # the first output tuples
    inputs: tuple[int, ...]  # tuples that each operator read, without punctuations
    outputs: tuple[int, ...]  # tuples that each operator gave


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
    walk: _Chain | _Graph = _Chain(chain) if chain.graph is None else _Graph(chain, chain.graph)
    fold, left = FOLD, 0
    kept: list[Row] = []
    times = dict(zip(chain.punctuations.tolist(), chain.tuples[chain.punctuations, 0].tolist(), strict=True))
    for first in range(0, len(chain.tuples), _AT_ONCE):
        if told is not None:
            told(first)
        for number, words in enumerate(chain.tuples[first : first + _AT_ONCE].view(np.uint64).tolist(), first):
            time = times.get(number)
            rows = walk.row(tuple(words)) if time is None else walk.punctuation(time)
            for row in rows:
                for word in row:
                    fold = folded(fold, word)
            kept += rows[: max(keep - left, 0)]
            left += len(rows)
            if taken is not None and rows:
                taken(np.array(rows, np.uint64).view(np.int64))
    return SerialRun(Egress(left, fold), tuple(kept), tuple(walk.inputs), tuple(walk.outputs))


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


class _Chain:
    """Operators that follow each other.

    Each operator reads its inputs in the order of its predecessor's outputs, then the punctuation.
    """

    def __init__(self, chain: BoundChain) -> None:
        self._stages = [_Stage(bound, function_of(bound).step(bound)) for bound in chain.operators]
        self.inputs, self.outputs = [0] * len(self._stages), [0] * len(self._stages)

    def row(self, row: Row) -> Sequence[Row]:
        """Outputs of one tuple."""
        return self._passed([row], None)

    def punctuation(self, time: int) -> Sequence[Row]:
        """Outputs at a punctuation."""
        return self._passed([], time)

    def _passed(self, rows: list[Row], time: int | None) -> Sequence[Row]:
        for number, stage in enumerate(self._stages):
            self.inputs[number] += len(rows)
            rows = stage.given(rows, time)
            self.outputs[number] += len(rows)
        return rows


class _Graph:
    """Operators of a graph, walked depth first.

    A tuple goes to its readers in the order of the chain, each output of a reader to its own readers at once, and then
    leaves if its stream does. At a punctuation, operators close in the order of the chain. Fields are found by name.
    """

    def __init__(self, chain: BoundChain, graph: Graph) -> None:
        self._chain, self._graph = chain, graph
        self._inner = [inner_of(bound) for bound in chain.operators]
        self._steps = [function_of(bound).step(bound) for bound in self._inner]
        self._width = len(chain.gives) - 1
        self.inputs, self.outputs = [0] * len(self._steps), [0] * len(self._steps)

    def row(self, row: Row) -> list[Row]:
        """What leaves of one tuple."""
        left: list[Row] = []
        *fields, stream = row
        self._push(stream, dict(zip(self._chain.streams[stream], fields, strict=False)), left)
        return left

    def punctuation(self, time: int) -> list[Row]:
        """What leaves at a punctuation."""
        left: list[Row] = []
        for number, (bound, step) in enumerate(zip(self._inner, self._steps, strict=True)):
            if isinstance(step, Windowed):
                for partition in range(bound.partitions):
                    self._given(number, step.close(partition, time), left)
        return left

    def _push(self, stream: int, fields: dict[str, int], left: list[Row]) -> None:
        for number in self._graph.readers(stream):
            self.inputs[number] += 1
            bound, place = self._inner[number], self._graph.sources[number].index(stream)
            row = {name: default_word(bound.types.get(name)) & MASK for name in bound.fields} | fields | {FROM: place}
            self._given(number, self._steps[number](tuple(row[name] for name in bound.fields)), left)
        if stream in self._graph.outputs:
            left.append((*fields.values(), *[0] * (self._width - len(fields)), stream))

    def _given(self, number: int, rows: Sequence[Row], left: list[Row]) -> None:
        self.outputs[number] += len(rows)
        for row in rows:
            self._push(self._graph.made_by(number), dict(zip(self._inner[number].gives, row, strict=True)), left)
