"""The serial run in plain Python, row by row: the oracle of all others."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from adapt.core.ordered.chain.bound import BoundChain, BoundOperator, default_word
from adapt.core.ordered.chain.graph import FROM
from adapt.core.ordered.chain.mixing import FOLD, MASK, folded
from adapt.core.ordered.engine.reference import Egress, SerialRun
from adapt.core.ordered.functions.function import Row
from adapt.core.ordered.functions.own import inner_of, own_of
from tests.core.ordered.functions.twins import step_of


class Walk:
    """A row goes to its readers in the order of the chain, each output to its own readers at once, and then leaves.

    At a punctuation, operators close in the order of the chain. Fields of a graph are found by name.
    """

    def __init__(self, chain: BoundChain) -> None:
        self.chain, self.inner, self.left = chain, [inner_of(bound) for bound in chain.operators], list[Row]()
        self.steps, self.closes = list[Any](), list[Any]()
        for bound in self.inner:
            own = own_of(bound)
            step: Any = own.plain() if own is not None else step_of(bound)
            self.steps.append(step.rows if own is not None else step)
            self.closes.append(getattr(step, "close", None))
        self.inputs, self.outputs = [0] * len(self.steps), [0] * len(self.steps)

    def row(self, row: Row) -> None:
        if self.chain.graph is None:
            self.on(0, row)
        else:
            *fields, stream = row
            self.push(stream, dict(zip(self.chain.streams[stream], fields, strict=False)))

    def punctuation(self, time: int) -> None:
        for number, (bound, close) in enumerate(zip(self.inner, self.closes, strict=True)):
            for partition in range(bound.partitions if close else 0):
                self.made(number, close(partition, time))

    def on(self, number: int, row: Row) -> None:
        if number == len(self.steps):
            self.left.append(row)
            return
        self.inputs[number] += 1
        self.made(number, self.steps[number](row))

    def made(self, number: int, rows: Sequence[Row]) -> None:
        self.outputs[number] += len(rows)
        for row in rows:
            if self.chain.graph is None:
                self.on(number + 1, row)
            else:
                self.push(self.chain.graph.made_by(number), dict(zip(self.inner[number].gives, row, strict=True)))

    def push(self, stream: int, fields: dict[str, int]) -> None:
        graph, width = self.chain.graph, len(self.chain.gives) - 1
        assert graph is not None
        for number in graph.readers(stream):
            bound, place = self.inner[number], graph.sources[number].index(stream)
            row = {**defaults(bound), **fields, FROM: place}
            self.on(number, tuple(row[name] for name in bound.fields))
        if stream in graph.outputs:
            self.left.append((*fields.values(), *[0] * (width - len(fields)), stream))


def defaults(bound: BoundOperator) -> dict[str, int]:
    return {name: default_word(bound.types.get(name)) & MASK for name in bound.fields}


def walked(chain: BoundChain, keep: int = 0) -> SerialRun:
    """Run each row through the whole chain before the next."""
    walk, fold = Walk(chain), FOLD
    ends = set(chain.punctuations.tolist())
    for number, words in enumerate(chain.tuples.view(np.uint64).tolist()):
        if number in ends:
            walk.punctuation(words[0])
        else:
            walk.row(tuple(words))
    for row in walk.left:
        for word in row:
            fold = folded(fold, word)
    return SerialRun(Egress(len(walk.left), fold), tuple(walk.left[:keep]), tuple(walk.inputs), tuple(walk.outputs))
