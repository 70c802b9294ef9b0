"""Comparison of compiled functions with their plain Python form."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from adapt.core.errors import BadInput
from adapt.core.ordered.chain.bound import END, BoundChain, BoundOperator, Words
from adapt.core.ordered.chain.own import WordType
from adapt.core.ordered.engine.kernel.tuples import MARK, PUNCTUATION
from adapt.core.ordered.engine.reference import CompiledStep, marked_chunks
from adapt.core.ordered.functions.function import Row, Step, Windowed
from adapt.core.ordered.functions.routed import taken_by
from adapt.core.ordered.own.function import Own, function_of, inner_of, shown_value, value_of

_CLOSE = 1e-12
"""Relative difference of floats that are taken as equal: functions of math may differ in their last bits."""

_AT_ONCE = 1_000
"""Rows between two reports of progress."""


def check_sample(chain: BoundChain, rows: int, tell: Callable[[int], None] = lambda _: None) -> None:
    """Check that compiled functions give what plain Python gives.

    On a stream of the first rows, with its end. `tell` is given the rows done.
    """
    steps = [(CompiledStep(chain, bound), function_of(bound).step(bound)) for bound in chain.operators]
    end = np.zeros((1, len(chain.fields) + 1), np.int64)
    end[0, MARK], end[0, 1] = PUNCTUATION, END
    ends = [end] if len(chain.punctuations) and rows < len(chain.tuples) else []
    done = 0
    try:
        for tuples in itertools.chain(marked_chunks(chain, rows), ends):
            for first in range(0, len(tuples), _AT_ONCE):
                tell(done)
                given = tuples[first : first + _AT_ONCE]
                done += len(given)
                for (compiled, plain), bound in zip(steps, chain.operators, strict=True):
                    made = compiled.passed(given)
                    _compare(bound, plain, given, made)
                    given = made
    finally:
        for compiled, _ in steps:
            compiled.release()


def _compare(bound: BoundOperator, step: Step, tuples: Words, made: Words) -> None:
    compiled = iter(made[made[:, MARK] != PUNCTUATION, 1:].view(np.uint64).tolist())
    for given, plain in _plain(bound, step, tuples):
        for row in plain:
            other = next(compiled, None)
            if other is None or not _same(bound, row, other):
                raise BadInput(_difference(bound, given, row, other))
    other = next(compiled, None)
    if other is not None:
        raise BadInput(_difference(bound, None, None, other))


def _plain(bound: BoundOperator, step: Step, tuples: Words) -> Iterator[tuple[Row | None, Sequence[Row]]]:
    """Each tuple, None for a punctuation, and its outputs."""
    for mark, *words in tuples.view(np.uint64).tolist():
        if mark != PUNCTUATION:
            yield tuple(words), step(tuple(words))
        elif isinstance(step, Windowed):
            for partition in range(bound.partitions):
                yield None, step.close(partition, words[0])


def _types(bound: BoundOperator) -> list[WordType]:
    """Types of the words of its outputs; in a graph, other streams pass as they are."""
    own = inner_of(bound)
    function = function_of(own)
    made = dict(function.own.outputs) if isinstance(function, Own) else {}
    types = [made.get(name, WordType.INTEGER) for name in own.gives]
    return types + [WordType.INTEGER] * (len(bound.gives) - len(types))


def _same(bound: BoundOperator, plain: Row, compiled: Sequence[int]) -> bool:
    if tuple(compiled) == plain:
        return True
    return all(
        one == other
        or (kind is WordType.FLOAT and math.isclose(value_of(one, kind), value_of(other, kind), rel_tol=_CLOSE))
        for one, other, kind in zip(plain, compiled, _types(bound), strict=True)
    )


def _difference(bound: BoundOperator, given: Row | None, plain: Row | None, compiled: Sequence[int] | None) -> str:
    function = function_of(inner_of(bound))
    if given is not None and bound.route is not None:
        given = taken_by(bound.route, given[-1], given[:-1])
    said = function.said(given) if isinstance(function, Own) and given is not None else "a punctuation"
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
