"""Operators of a graph in a chain.

They take the tuples of their streams, and pass on all others.

The last word of a tuple is the number of its stream. A tuple that a later operator reads too goes on behind the
outputs that this one makes of it. So tuples stay in the order in which one walk through the graph meets them.
"""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from adapt.core.atomics import allocate, fixed, load, on_stack, put, store
from adapt.core.compiled import AtAddress, inlined
from adapt.core.ordered.chain.bound import BoundOperator, Route, Words
from adapt.core.ordered.chain.mixing import MASK
from adapt.core.ordered.functions.function import (
    MOST,
    NO_MEMORY,
    ROUTES,
    SIGNATURE,
    STRIDE,
    Blocks,
    Function,
    Row,
    Step,
    Windowed,
)

_IN, _OUT, _STREAM, _GIVEN, _MADE, _HEAD = 0, 1, 2, 3, 4, 5
"""Leading words of routes: places of the stream's number in a tuple and in an output, the stream that the operator
makes, the fields that it is given, and those of its outputs."""

_HOW, _PLACES, _KEY, _COST, _EDGE = 0, 1, 2, 3, 4
"""Words of a stream: how its tuples are taken, where the places of the fields are (0 for the tuple itself), the places
of the key and the cost, -1 without; and their number."""

PASSED, READ, READ_AND_PASSED = 0, 1, 2


@inlined
def edge_of(routes: int, fields: int) -> int:
    """Address of the words of a tuple's stream."""
    return routes + 8 * (_HEAD + _EDGE * load(fields, fixed(routes, _IN)))


@inlined
def is_passed(edge: int) -> bool:
    """Whether tuples of a stream are not for this operator."""
    return fixed(edge, _HOW) == PASSED


@inlined
def key_place(edge: int) -> int:
    """Place of the key in a stream's tuples."""
    return fixed(edge, _KEY)


@inlined
def cost_place(edge: int) -> int:
    """Place of the cost in a stream's tuples."""
    return fixed(edge, _COST)


@inlined
def _passed_on(routes: int, given: int, output: int) -> None:
    """Write a tuple as an output."""
    into, out = fixed(routes, _IN), fixed(routes, _OUT)
    for at in range(out):
        put(output, at, load(given, at) if at < into else 0)
    store(output, out, load(given, into))


@inlined
def _signed(routes: int, outputs: int, count: int, stride: int) -> None:
    """Write the number of the stream into outputs, and zeros into words without a field."""
    out = fixed(routes, _OUT)
    for _ in range(count):
        for at in range(fixed(routes, _MADE), out):
            put(outputs, at, 0)
        store(outputs, out, fixed(routes, _STREAM))
        outputs += stride


def step(words: int, partition: int, given: int, outputs: int) -> int:
    """The operator's function; it replaces this when the step is compiled."""
    raise NotImplementedError


def _routed(words: int, partition: int, given: int, outputs: int) -> int:
    routes = fixed(words, ROUTES)
    edge = edge_of(routes, given)
    if is_passed(edge):
        _passed_on(routes, given, outputs)
        return 1
    taken, places = given, fixed(edge, _PLACES)
    if places:
        taken, places = on_stack(), routes + 8 * places
        for field in range(fixed(routes, _GIVEN)):
            place = load(places, 2 * field)
            store(taken, field, load(given, place) if place >= 0 else load(places, 2 * field + 1))
    made = step(words, partition, taken, outputs)
    if made < 0:
        return made
    first, most, stride = outputs, fixed(words, MOST), fixed(words, STRIDE)
    goes_on = fixed(edge, _HOW) == READ_AND_PASSED
    if made > most:
        first = load(outputs, 0) + 8
    elif goes_on and made == most:  # with the tuple itself, the outputs are too many for their room
        block = allocate((made + 2) * (stride // 8))
        if block == 0:
            return NO_MEMORY
        for at in range(made * (stride // 8) - 1):
            store(block, 1 + at, load(outputs, at))
        store(outputs, 0, block)
        first = block + 8
    _signed(routes, first, made, stride)
    if goes_on:
        _passed_on(routes, given, first + made * stride)
        made += 1
    return made


def _closed(words: int, partition: int, given: int, outputs: int) -> int:
    made = step(words, partition, given, outputs)
    if made > 0:
        first = load(outputs, 0) + 8 if made > fixed(words, MOST) else outputs
        _signed(fixed(words, ROUTES), first, made, fixed(words, STRIDE))
    return made


@cache
def _wrapped(function: AtAddress, *, closes: bool) -> AtAddress:
    return function.within(SIGNATURE, _closed if closes else _routed, "step")


class Routed(Function):
    """A function in an operator of a graph."""

    def __init__(self, route: Route, inner: Function) -> None:
        """Wrap the function that has the operator's own fields."""
        self.route, self.inner = route, inner

    @property
    def compiled(self) -> AtAddress:
        """The compiled step."""
        return _wrapped(self.inner.compiled, closes=False)

    @property
    def closing(self) -> AtAddress | None:
        """As `compiled`, for a punctuation."""
        closing = self.inner.closing
        return None if closing is None else _wrapped(closing, closes=True)

    @property
    def unbounded(self) -> bool:
        """Whether a tuple can have more outputs than `most`."""
        return self.inner.unbounded

    def most(self, bound: BoundOperator) -> int:  # noqa: ARG002 (the inner operator's)
        """Outputs with room, with the tuple itself if it goes on."""
        goes_on = any(edge.goes_on for edge in self.route.edges.values())
        return max(self.inner.most(self.route.inner), 1) + goes_on

    def step(self, bound: BoundOperator) -> Step:
        """The plain-Python step."""
        return _PlainStep(self.route, self.inner.step(self.route.inner), len(bound.gives) - 1)

    def words(self, bound: BoundOperator) -> tuple[int, ...]:  # noqa: ARG002 (so below)
        """Words of the function."""
        return self.inner.words(self.route.inner)

    def state(self, bound: BoundOperator) -> Words:  # noqa: ARG002
        """State of the function."""
        return self.inner.state(self.route.inner)

    def blocks(self, bound: BoundOperator) -> Sequence[Blocks]:  # noqa: ARG002
        """Memory blocks of the function."""
        return self.inner.blocks(self.route.inner)

    def failure(self, repeat: Callable[[], object]) -> Exception | None:
        """What the function raised."""
        return self.inner.failure(repeat)

    def routes(self, bound: BoundOperator) -> Words:
        """The streams by number, and the places of their fields."""
        route = self.route
        inner = route.inner
        words = [len(bound.fields) - 1, len(bound.gives) - 1, route.stream, len(inner.fields), len(inner.gives)]
        behind = list[int]()
        for stream in range(route.streams):
            edge = route.edges.get(stream)
            if edge is None:
                words += [PASSED, 0, -1, -1]
                continue
            places = 0 if edge.places is None else _HEAD + _EDGE * route.streams + len(behind)
            words += [READ_AND_PASSED if edge.goes_on else READ, places, edge.key_at, edge.cost_at]
            behind += [word for pair in edge.places or () for word in pair]
        return np.array([*words, *behind], np.int64)


class _PlainStep(Windowed):
    """The step in plain Python."""

    def __init__(self, route: Route, step: Step, width: int) -> None:
        self._route, self._step, self._width = route, step, width

    def __call__(self, row: Row) -> Sequence[Row]:
        *fields, stream = row
        itself = (*(fields + [0] * self._width)[: self._width], stream)
        edge = self._route.edges.get(stream)
        if edge is None:
            return [itself]
        return [*self._signed(self._step(taken_by(self._route, stream, fields))), *([itself] if edge.goes_on else [])]

    def close(self, partition: int, time: int) -> Sequence[Row]:
        """Outputs of a partition at a punctuation."""
        return self._signed(self._step.close(partition, time)) if isinstance(self._step, Windowed) else []

    def _signed(self, rows: Sequence[Row]) -> list[Row]:
        return [(*row, *[0] * (self._width - len(row)), self._route.stream) for row in rows]


def taken_by(route: Route, stream: int, fields: Sequence[int]) -> Row:
    """The fields of a tuple that an operator is given."""
    places = route.edges[stream].places
    if places is None:
        return tuple(fields[: len(route.inner.fields)])
    return tuple(fields[place] if place >= 0 else word & MASK for place, word in places)
