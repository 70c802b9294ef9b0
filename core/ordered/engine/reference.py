"""Serial runs: the reference for every ordered run.

It has no queues and no reorder buffers. A tuple has a mark before its fields, as in the engine.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adapt.core.atomics import load, operate, reallocate, release, store
from adapt.core.compiled import compiled, inlined
from adapt.core.ordered.chain.bound import BoundChain, BoundOperator, Words, default_word
from adapt.core.ordered.chain.graph import FROM, Graph
from adapt.core.ordered.chain.mixing import FOLD, MASK, folded
from adapt.core.ordered.engine.kernel.work_queue import MARK, PUNCTUATION, copy_words
from adapt.core.ordered.engine.kernel.worker import release_all
from adapt.core.ordered.functions.function import MOST, NO_MEMORY, OWN, PACE, ROUTES, STATE, STRIDE, Row, Step, Windowed
from adapt.core.ordered.functions.routed import edge_of, key_place
from adapt.core.ordered.own.function import function_of, inner_of
from adapt.core.random_bits import mixed

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


_CHUNK = 1 << 14
"""Rows that pass through the chain together."""

_FOUND, _USED, _CAPACITY = 0, 1, 2
"""Words of a result: address of its tuples, their number, and how many have room."""


@inlined
def _append(result: int, outputs: int, count: int, words: int, mark: int) -> bool:
    """Add tuples to a result; whether there was memory for them."""
    used = load(result, _USED)
    if used + count > load(result, _CAPACITY):
        capacity = 2 * (used + count)
        larger = reallocate(load(result, _FOUND), capacity * words)
        if larger == 0:
            return False
        store(result, _FOUND, larger)
        store(result, _CAPACITY, capacity)
    place = load(result, _FOUND) + 8 * used * words
    copy_words(outputs, place, count * words)
    for number in range(count):
        store(place, number * words + MARK, mark)
    store(result, _USED, used + count)
    return True


@inlined
def _called(function: int, words: int, partition: int, given: int, room: int, result: int, size: int) -> int:
    """Run a function, and add its outputs to the result; below 0 if it failed."""
    made = operate(function, words, partition, given, room + 8)
    if made <= 0:
        return made
    block = load(room, 1) if made > load(words, MOST) else 0
    fits = _append(result, block if block else room, made, size, 0)
    release(block)
    return made if fits else NO_MEMORY


@compiled
def _pass_through(
    function: int,
    closing: int,
    words: int,
    partitions: int,
    key_at: int,
    partition_of: int,
    given: int,
    rows: int,
    in_words: int,
    room: int,
    result: int,
) -> int:
    """Pass tuples and punctuations through an operator; returns the result of a function that failed, or 0."""
    size = load(words, STRIDE) // 8
    for row in range(rows):
        place = given + 8 * row * in_words
        if load(place, MARK) == PUNCTUATION:
            for partition in range(partitions):
                if closing:
                    made = _called(closing, words, partition, place + 8, room, result, size)
                    if made < 0:
                        return made
            store(room, 1, load(place, 1))
            if not _append(result, room, 1, size, PUNCTUATION):
                return NO_MEMORY
            continue
        partition, at = 0, key_at
        if load(words, ROUTES):
            at = key_place(edge_of(load(words, ROUTES), place + 8))
        if at >= 0:
            key = load(place, 1 + at)
            if partition_of:
                partition = load(partition_of, key)
            else:
                partition = int(np.int64(mixed(np.uint64(key)) % np.uint64(partitions)))
        made = _called(function, words, partition, place + 8, room, result, size)
        if made < 0:
            return made
    return 0


@compiled
def _folded(start: np.uint64, tuples: Any) -> np.uint64:
    """Hash of the words of tuples, without marks and punctuations."""
    fold = start
    for row in range(len(tuples)):
        if tuples[row, MARK] != PUNCTUATION:
            for at in range(1, tuples.shape[1]):
                fold = (fold ^ np.uint64(tuples[row, at])) * np.uint64(FOLD)
                fold = fold ^ (fold >> np.uint64(32))
    return fold


class CompiledStep:
    """An operator's compiled function with its state."""

    def __init__(self, chain: BoundChain, bound: BoundOperator) -> None:
        """Start with the initial state."""
        self._function, self._chain, self._bound = function_of(bound), chain, bound
        most, size = max(self._function.most(bound), 1), len(bound.gives) + 1
        self._state = self._function.state(bound)
        own = [word % 2**64 for word in self._function.words(bound)]
        self._words = np.array([0] * OWN + own, np.uint64).view(np.int64)
        self._words[[STATE, STRIDE, PACE, MOST]] = self._state.ctypes.data, 8 * size, 1, most
        self._routes = self._function.routes(bound)
        self._words[ROUTES] = self._routes.ctypes.data if len(self._routes) else 0
        self._room, self._result = np.zeros((most + 1) * size, np.int64), np.zeros(3, np.int64)
        of = bound.partition_of
        self._partition_of = np.ascontiguousarray(np.zeros(0) if of is None else of, np.int64)

    def passed(self, tuples: Words) -> Words:
        """Outputs of tuples, in order, each after its mark."""
        closing, bound = self._function.closing, self._bound
        self._result[_USED] = 0
        ended = _pass_through(
            self._function.compiled.address,
            0 if closing is None else closing.address,
            *(self._words.ctypes.data, bound.partitions, bound.key_at),
            self._partition_of.ctypes.data if len(self._partition_of) else 0,
            *(tuples.ctypes.data, len(tuples), tuples.shape[1]),
            *(self._room.ctypes.data, self._result.ctypes.data),
        )
        if ended == NO_MEMORY:
            raise MemoryError(f"operator {bound.operator.name!r} ran out of memory for its state or its outputs")
        if ended < 0:
            failure = self._function.failure(lambda: run_serially(self._chain))
            raise failure or RuntimeError(f"the function of operator {bound.operator.name!r} failed")
        made = np.empty((int(self._result[_USED]), len(bound.gives) + 1), np.int64)
        _copied(int(self._result[_FOUND]), made.ctypes.data, made.size)
        return made

    def release(self) -> None:
        """Give back the memory of the state and of the outputs."""
        release_all(self._result.ctypes.data, 1, 1)
        for blocks in self._function.blocks(self._bound):
            release_all(self._state.ctypes.data + 8 * blocks.first, blocks.step, blocks.count)


@compiled
def _copied(source: int, place: int, words: int) -> None:
    copy_words(source, place, words)


def marked_chunks(chain: BoundChain, rows: int | None = None) -> Iterator[Words]:
    """The tuples of a chain, some at a time.

    Each follows its mark. With `rows`, the first ones only.
    """
    total = len(chain.tuples) if rows is None else min(rows, len(chain.tuples))
    for first in range(0, total, _CHUNK):
        end = min(first + _CHUNK, total)
        marked = np.zeros((end - first, len(chain.fields) + 1), np.int64)
        marked[:, 1:] = chain.tuples[first:end]
        inside = chain.punctuations[(chain.punctuations >= first) & (chain.punctuations < end)]
        marked[inside - first, MARK] = PUNCTUATION
        yield marked


def reference_egress(chain: BoundChain) -> Egress:
    """Egress of a serial run by the compiled functions."""
    steps = [CompiledStep(chain, bound) for bound in chain.operators]
    tuples, fold = 0, np.uint64(FOLD)
    try:
        for chunk in marked_chunks(chain):
            for step in steps:
                chunk = step.passed(chunk)
            fold = np.uint64(_folded(fold, chunk))
            tuples += int((chunk[:, MARK] != PUNCTUATION).sum())
    finally:
        for step in steps:
            step.release()
    return Egress(tuples, int(fold))
