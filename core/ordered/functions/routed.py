"""Operators of a graph in a chain.

They take the tuples of their streams, and pass on all others.

The last word of a tuple is the number of its stream. A tuple that a later operator reads too goes on behind the
outputs that this one makes of it. So tuples stay in the order in which one walk through the graph meets them.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from adapt.core.atomics import allocate, fixed, load, on_stack, put, store
from adapt.core.compiled import AtAddress, inlined
from adapt.core.ordered.chain.bound import BoundOperator, Route
from adapt.core.ordered.chain.mixing import MASK
from adapt.core.ordered.functions.function import MOST, NO_MEMORY, ROUTES, SIGNATURE, STRIDE, Function, Row

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


def routed(bound: BoundOperator, route: Route, inner: Function) -> Function:
    """The function of a graph's operator, around its own."""
    own, closing = route.inner, inner.closing
    words = [len(bound.fields) - 1, len(bound.gives) - 1, route.stream, len(own.fields), len(own.gives)]
    behind = list[int]()
    for stream in range(route.streams):
        edge = route.edges.get(stream)
        if edge is None:
            words += [PASSED, 0, -1, -1]
            continue
        places = 0 if edge.places is None else _HEAD + _EDGE * route.streams + len(behind)
        words += [READ_AND_PASSED if edge.goes_on else READ, places, edge.key_at, edge.cost_at]
        behind += [word for pair in edge.places or () for word in pair]
    return replace(
        inner,
        compiled=_wrapped(inner.compiled, closes=False),
        closing=None if closing is None else _wrapped(closing, closes=True),
        most=max(inner.most, 1) + any(edge.goes_on for edge in route.edges.values()),  # the tuple itself, if it goes on
        routes=np.array([*words, *behind], np.int64),
    )


def taken_by(route: Route, stream: int, fields: Sequence[int]) -> Row:
    """The fields of a tuple that an operator is given."""
    places = route.edges[stream].places
    if places is None:
        return tuple(fields[: len(route.inner.fields)])
    return tuple(fields[place] if place >= 0 else word & MASK for place, word in places)
