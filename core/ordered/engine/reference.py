"""Serial runs: the reference for every ordered run.

It has no queues and no reorder buffers. A tuple has a mark before its fields, as in the engine.

What a run of a chain by workers measured.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.atomics import load, operate, reallocate, release, store
from adapt.core.compiled import compiled, inlined
from adapt.core.errors import BadInput
from adapt.core.ordered.chain.bound import END, BoundChain, BoundOperator
from adapt.core.ordered.chain.columns import Words
from adapt.core.ordered.chain.mixing import FOLD
from adapt.core.ordered.chain.own import WordType
from adapt.core.ordered.engine.kernel.work_queue import MARK, PUNCTUATION, copy_words
from adapt.core.ordered.engine.kernel.worker import release_all
from adapt.core.ordered.functions.function import MOST, NO_MEMORY, OWN, PACE, ROUTES, STATE, STRIDE, Function, Row
from adapt.core.ordered.functions.own import Own, function_of, inner_of, own_of, shown_value, value_of
from adapt.core.ordered.functions.routed import edge_of, key_place, taken_by
from adapt.core.random_bits import mixed


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
    *,
    compiled: bool = False,
) -> SerialRun:
    """Run a chain without queues.

    Each operator reads its inputs in the order of its predecessor's outputs.

    Args:
        keep: How many output tuples to keep.
        told: Called now and then with the number of rows done.
        taken: Called with the output tuples in order, some at a time.
        compiled: Whether own functions are compiled too, instead of run in plain Python.

    Source: ordered streams, section 5, Definition 5.1: the order that every concurrent run must keep.
    """
    owns = [None if compiled else own_of(bound) for bound in chain.operators]
    steps = [
        CompiledStep(chain, bound) if own is None else PlainStep(bound, own)
        for bound, own in zip(chain.operators, owns, strict=True)
    ]
    fold, done, left, kept = np.uint64(FOLD), 0, 0, list[Row]()
    counts = np.zeros((2, len(steps)), np.int64)
    try:
        for tuples in marked_chunks(chain, at_once=_COMPILED_AT_ONCE if compiled else _PLAIN_AT_ONCE):
            if told is not None:
                told(done)
            done += len(tuples)
            for number, step in enumerate(steps):
                counts[0, number] += np.count_nonzero(tuples[:, MARK] != PUNCTUATION)
                tuples = step.passed(tuples)
                counts[1, number] += np.count_nonzero(tuples[:, MARK] != PUNCTUATION)
            fold = np.uint64(_folded(fold, tuples))
            rows = np.ascontiguousarray(tuples[tuples[:, MARK] != PUNCTUATION, 1:])
            kept += map(tuple, rows[: max(keep - left, 0)].view(np.uint64).tolist())
            left += len(rows)
            if taken is not None and len(rows):
                taken(rows)
    finally:
        for step in steps:
            step.release()
    return SerialRun(Egress(left, int(fold)), tuple(kept), *counts_without_passed(chain, *counts.tolist()))


def counts_without_passed(
    chain: BoundChain, inputs: Sequence[int], outputs: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Inputs and outputs by operator, without tuples that they passed.

    Each stream behind an operator that was there before it passed it once.
    """
    if chain.graph is None:
        return tuple(inputs), tuple(outputs)
    of_stream: list[int] = np.bincount(chain.rows_by_input(), minlength=len(chain.graph.inputs)).tolist()
    for bound, gave in zip(chain.operators, outputs, strict=True):
        passes = () if bound.route is None else bound.route.passes
        of_stream.append(gave - sum(of_stream[stream] for stream in passes))
    taken = (sum(of_stream[stream] for stream in sources) for sources in chain.graph.sources)
    return tuple(taken), tuple(of_stream[len(chain.graph.inputs) :])


class PlainStep:
    """An own function in plain Python, with its state."""

    def __init__(self, bound: BoundOperator, own: Own) -> None:
        """Start with the initial state."""
        self._bound, self._plain = bound, own.plain()
        self._width = len(bound.gives) - 1

    def outputs(self, tuples: Words) -> Iterator[tuple[Row | None, list[Row]]]:
        """Each tuple, None for a punctuation, and its marked outputs."""
        route = self._bound.route
        for mark, *words in tuples.view(np.uint64).tolist():
            if mark == PUNCTUATION:
                for partition in range(self._bound.partitions):
                    yield None, self._marked(self._plain.close(partition, words[0]))
                yield None, [(PUNCTUATION, words[0], *[0] * (len(self._bound.gives) - 1))]
            elif route is None:
                yield tuple(words), self._marked(self._plain.rows(tuple(words)))
            else:
                *fields, stream = words
                itself = (0, *(fields + [0] * self._width)[: self._width], stream)
                edge = route.edges.get(stream)
                made = [] if edge is None else self._marked(self._plain.rows(taken_by(route, stream, fields)))
                yield tuple(words), [*made, itself] if edge is None or edge.goes_on else made

    def _marked(self, rows: Sequence[Row]) -> list[Row]:
        route = self._bound.route
        if route is None:
            return [(0, *row) for row in rows]
        return [(0, *row, *[0] * (self._width - len(row)), route.stream) for row in rows]

    def passed(self, tuples: Words) -> Words:
        """Outputs of tuples, in order, each after its mark."""
        made = [row for _, rows in self.outputs(tuples) for row in rows]
        return np.array(made, np.uint64).view(np.int64).reshape(-1, len(self._bound.gives) + 1)

    def release(self) -> None:
        """Nothing to give back."""


_PLAIN_AT_ONCE, _COMPILED_AT_ONCE = 1 << 10, 1 << 14
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
        most, size = max(self._function.most, 1), len(bound.gives) + 1
        self._words = function_words(self._function, size, 1, most)
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
        if ended < 0:
            raise failure_of(self._chain, bound, self._function, is_memory=ended == NO_MEMORY)
        made = np.empty((int(self._result[_USED]), len(bound.gives) + 1), np.int64)
        _copied(int(self._result[_FOUND]), made.ctypes.data, made.size)
        return made

    def release(self) -> None:
        """Give back the memory of the state and of the outputs."""
        release_all(self._result.ctypes.data, 1, 1)
        release_blocks(self._function)


@compiled
def _copied(source: int, place: int, words: int) -> None:
    copy_words(source, place, words)


def function_words(function: Function, size: int, pace: int, most: int) -> Words:
    """The words that a compiled function is given.

    Its outputs have `size` words, and there is room for `most`.
    """
    words = np.array([0] * OWN + [word % 2**64 for word in function.words], np.uint64).view(np.int64)
    words[[STATE, STRIDE, PACE, MOST]] = function.state.ctypes.data, 8 * size, pace, most
    words[ROUTES] = function.routes.ctypes.data if len(function.routes) else 0
    return words


def release_blocks(function: Function) -> None:
    """Give back the blocks of memory in a function's state."""
    for each in function.blocks:
        release_all(function.state.ctypes.data + 8 * each.first, each.step, each.count)


def failure_of(chain: BoundChain, bound: BoundOperator, function: Function, *, is_memory: bool) -> Exception:
    """Why an operator's function failed."""
    if is_memory:
        return MemoryError(f"operator {bound.operator.name!r} ran out of memory for its state or its outputs")
    failure = None if function.failure is None else function.failure(lambda: run_serially(chain))
    return failure or RuntimeError(f"the function of operator {bound.operator.name!r} failed")


def marked_chunks(chain: BoundChain, rows: int | None = None, at_once: int = _COMPILED_AT_ONCE) -> Iterator[Words]:
    """The tuples of a chain, some at a time.

    Each follows its mark. With `rows`, the first ones only.
    """
    total = len(chain.tuples) if rows is None else min(rows, len(chain.tuples))
    for first in range(0, total, at_once):
        end = min(first + at_once, total)
        marked = np.zeros((end - first, len(chain.fields) + 1), np.int64)
        marked[:, 1:] = chain.tuples[first:end]
        inside = chain.punctuations[(chain.punctuations >= first) & (chain.punctuations < end)]
        marked[inside - first, MARK] = PUNCTUATION
        yield marked


_CLOSE = 1e-12
"""Relative difference of floats that are taken as equal: functions of math may differ in their last bits."""

_CHECKED_AT_ONCE = 1_000
"""Rows between two reports of progress."""


def check_sample(chain: BoundChain, rows: int, tell: Callable[[int], None] = lambda _: None) -> None:
    """Check that compiled own functions give what plain Python gives.

    On a stream of the first rows, with its end. `tell` is given the rows done.
    """
    steps = [(CompiledStep(chain, bound), own_of(bound), bound) for bound in chain.operators]
    plains = [None if own is None else PlainStep(bound, own) for _, own, bound in steps]
    end = np.zeros((1, len(chain.fields) + 1), np.int64)
    end[0, MARK], end[0, 1] = PUNCTUATION, END
    ends = [end] if len(chain.punctuations) and rows < len(chain.tuples) else []
    done = 0
    try:
        for tuples in itertools.chain(marked_chunks(chain, rows, _CHECKED_AT_ONCE), ends):
            tell(done)
            done += len(tuples)
            for (compiled, _, bound), plain in zip(steps, plains, strict=True):
                made = compiled.passed(tuples)
                if plain is not None:
                    _compare(bound, plain.outputs(tuples), made)
                tuples = made
    finally:
        for compiled, *_ in steps:
            compiled.release()


def _compare(bound: BoundOperator, plain: Iterable[tuple[Row | None, list[Row]]], made: Words) -> None:
    compiled = iter(made[made[:, MARK] != PUNCTUATION, 1:].view(np.uint64).tolist())
    rows = ((given, row) for given, outputs in plain for mark, *row in outputs if mark != PUNCTUATION)
    for given, row in itertools.chain(rows, [(None, None)]):
        other = next(compiled, None)
        if row is None and other is None:
            return
        if row is None or other is None or not _same(bound, row, other):
            raise BadInput(_difference(bound, given, row, other))


def _types(bound: BoundOperator) -> list[WordType]:
    """Types of the words of its outputs; in a graph, other streams pass as they are."""
    own = own_of(bound)
    made = {} if own is None else dict(own.own.outputs)
    types = [made.get(name, WordType.INTEGER) for name in inner_of(bound).gives]
    return types + [WordType.INTEGER] * (len(bound.gives) - len(types))


def _same(bound: BoundOperator, plain: Sequence[int], compiled: Sequence[int]) -> bool:
    if compiled == plain:
        return True
    return all(
        one == other
        or (kind is WordType.FLOAT and math.isclose(value_of(one, kind), value_of(other, kind), rel_tol=_CLOSE))
        for one, other, kind in zip(plain, compiled, _types(bound), strict=True)
    )


def _difference(
    bound: BoundOperator, given: Row | None, plain: Sequence[int] | None, compiled: Sequence[int] | None
) -> str:
    own = own_of(bound)
    if given is not None and bound.route is not None:
        given = taken_by(bound.route, given[-1], given[:-1])
    said = own.said(given) if own is not None and given is not None else "a punctuation"
    name = bound.operator.function
    return (
        f"operator {bound.operator.name!r}: {name} gives {_shown(bound, plain)} in plain Python but "
        f"{_shown(bound, compiled)} compiled, at {said}; compiled integers have 64 bits (both are shown so)"
    )


def _shown(bound: BoundOperator, row: Sequence[int] | None) -> str:
    if row is None:
        return "nothing"
    own = inner_of(bound)
    named = zip(own.gives, row, _types(bound), strict=False)
    shown = (f"{name}={shown_value(own, name, kind, value_of(word, kind))!r}" for name, word, kind in named)
    return f"({', '.join(shown)})"


@dataclass(frozen=True, slots=True, eq=False)
class OperatorTally:
    """Counters of one operator, over all workers."""

    name: str
    inputs: int  # tuples read, without punctuations
    outputs: int  # tuples sent on, without punctuations
    partition_loads: NDArray[np.int64]  # tuples by partition; shape (partitions,)
    busy_ns: int = 0  # time that workers spent on it, summed, in nanoseconds
    delegated: int = 0  # tuples delegated to the worker inside their partition
    retries: int = 0  # attempts to put outputs into a full ring buffer
    blocked: int = 0  # times that sending stopped because the next work queue was full
    overlaps: int = 0  # times that a worker entered a partition with another inside; counted by checked runs, always 0
    disorders: int = 0  # tuples that reached a partition after a later one; counted by checked runs, always 0
    fullest: int = 0  # most tuples of the ring buffer in use, from the next to be sent to the last claimed
    # chunks by the bit length of that number when they were claimed; shape (32,)
    in_use: NDArray[np.int64] = field(default_factory=lambda: np.zeros(32, np.int64))
    # time that workers spent blocked, in nanoseconds: with `retry` until their outputs had room in the ring buffer,
    # with `lock` until they had the lock. It is part of `busy_ns`
    waited_ns: int = 0
    ring_buffer: int = 0  # size of the ring buffer, which `retry` may make larger than the settings
    slices: int = 0  # slices that workers began, each after they asked the scheduler


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """Time stamps of the timed tuples, in serial order.

    In nanoseconds, each of shape (timed,).
    """

    fed: NDArray[np.int64]  # when the tuple was to arrive; without arrival times, when it entered the first work queue
    entered: NDArray[np.int64]  # when the first operator started on it
    left: NDArray[np.int64]  # when the last of its outputs left the chain, or its place holder if it was dropped
    # how late an idle worker of threads took it in, 0 while workers were busy; empty without arrival times
    lag: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    # when the first operator was done with it, in a model; empty on threads
    served: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    # the worker that ran that, likewise
    worker: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def processing_s(self) -> NDArray[np.float64]:
        """Processing latency in seconds.

        Of the tuples between the 20th and the 80th percentile of the run.

        Source: ordered streams, section 7.
        """
        return self._middle(self.left - self.entered)

    def wait_s(self) -> NDArray[np.float64]:
        """Wait in the first work queue in seconds, of the same tuples."""
        return self._middle(self.entered - self.fed)

    def end_to_end_s(self) -> NDArray[np.float64]:
        """Latency in seconds, including the wait in the first work queue.

        Otherwise as `processing_s`.
        """
        return self._middle(self.left - self.fed)

    def _middle(self, ns: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(ns[len(ns) // 5 : len(ns) - len(ns) // 5] / 1e9)


@dataclass(frozen=True, slots=True, eq=False)
class WorkersRun:
    """Result of a run by workers."""

    egress: Egress  # count and hash of the output; equal to that of the serial run if the run was ordered
    elapsed_s: float  # from the start of the workers until the last one ends
    operators: tuple[OperatorTally, ...]  # counters by place in the chain
    marks: Marks  # the timed tuples
    kept: Words  # the first output tuples, shape (kept, fields)
    # tuples by worker and operator, without punctuations; shape (workers used, operators)
    served: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64))
