"""Own functions: the user's code in plain Python, and compiled.

Registry of operator functions by name.
"""

import struct
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from operator import eq
from typing import Any

import numpy as np

from adapt.core.compiled import AtAddress
from adapt.core.errors import BadInput
from adapt.core.ordered.chain.bound import BoundOperator
from adapt.core.ordered.chain.chain import MOST_OUTPUTS
from adapt.core.ordered.chain.columns import Words
from adapt.core.ordered.chain.mixing import MASK
from adapt.core.ordered.chain.names import FunctionName
from adapt.core.ordered.chain.own import Gives, OwnFunction, WordType
from adapt.core.ordered.functions.clicks import item_pairs, mean_pages, recent_views, sessions
from adapt.core.ordered.functions.function import Function, Row, tables
from adapt.core.ordered.functions.own_kernel import (
    FAULT_WORDS,
    IN_CLOSE,
    IN_STEP,
    NAN,
    WHERE,
    Layout,
    NotCompiled,
    compiled_kernels,
    state_kind,
)
from adapt.core.ordered.functions.routed import routed
from adapt.core.ordered.functions.sales import (
    ABANDONED,
    basket_pairs,
    day_revenue,
    falling_revenue,
    hour,
    picking,
    top,
)
from adapt.core.ordered.functions.work import count, work

FUNCTIONS: dict[FunctionName, Callable[[BoundOperator], Function]] = {
    FunctionName.WORK: work,
    FunctionName.COUNT: count,
    FunctionName.PROJECT: picking(),
    FunctionName.NOT_SEARCHES: picking("page", 0, 1, 2),
    FunctionName.VIEWS_AND_CHECKOUTS: picking("page", 0, 2),
    FunctionName.ABANDONED_CARTS: picking("kinds", *ABANDONED),
    FunctionName.HOUR: hour,
    FunctionName.DAY_REVENUE: day_revenue,
    FunctionName.BASKET_PAIRS: basket_pairs,
    FunctionName.SESSION_ITEMS: sessions("item"),
    FunctionName.ITEM_PAIRS: item_pairs,
    FunctionName.SESSION_PAGES: sessions("page"),
    FunctionName.MEAN_PAGES: mean_pages,
    FunctionName.RECENT_VIEWS: recent_views,
    FunctionName.WINDOW_TOP_100: top(100, final=False),
    FunctionName.FINAL_TOP_30: top(30, final=True),
    FunctionName.FALLING_REVENUE: falling_revenue,
}


_ROOM = 4
"""Outputs with room in the ring buffer, of a function that may give more."""

_SIGN = 1 << 63


def value_of(word: int, kind: WordType) -> int | float | bool:
    """The value of a word from 0 to below 2^64."""
    if kind is WordType.FLOAT:
        return float(struct.unpack("<d", word.to_bytes(8, "little"))[0])
    if kind is WordType.FLAG:
        return word != 0
    return word - (1 << 64) if word & _SIGN else word


def word_of(value: Any, kind: WordType) -> int:
    """The word of a value."""
    if isinstance(value, np.generic):
        value = value.item()
    if kind is WordType.FLOAT and isinstance(value, (int, float)):
        number = float(value)
        return NAN if number != number else int.from_bytes(struct.pack("<d", number), "little")
    if kind is not WordType.FLOAT and isinstance(value, int):
        return value & MASK
    raise TypeError(f"{value!r} is not {kind}")


@cache
def _kernels(own: OwnFunction, layout: Layout) -> tuple[AtAddress, AtAddress | None] | NotCompiled:
    try:
        return compiled_kernels(own, layout)
    except NotCompiled as error:
        return error


class Own:
    """An own function in an operator."""

    def __init__(self, bound: BoundOperator, own: OwnFunction) -> None:
        """Find its columns in the tuples."""
        self._bound, self.own = bound, own
        self.where = f"operator {bound.operator.name!r}"
        types = bound.types
        self._places = tuple(
            (bound.fields.index(name), types.get(name, WordType.INTEGER)) for name, _ in own.parameters
        )
        self._layout = Layout(self._places, bound.key_at if own.keeps_state else -1, len(bound.fields))
        self._first = np.zeros(1, np.int64)
        self._fault = np.zeros(1, np.int64)

    @property
    def obstacle(self) -> str | None:
        """Why it cannot be compiled; None if it can."""
        made = _kernels(self.own, self._layout)
        return str(made) if isinstance(made, NotCompiled) else None

    def compiled(self) -> Function:
        """Its compiled form, for a single run."""
        made, own, partitions = _kernels(self.own, self._layout), self.own, self._bound.partitions
        if isinstance(made, NotCompiled):
            raise made
        if own.keeps_state:
            self._first = first_words(own)
        self._fault = np.zeros(FAULT_WORDS + len(self._bound.fields) + len(self._first), np.int64)
        state, blocks = tables(partitions) if own.keeps_state else (np.zeros(1, np.int64), ())
        unbounded = Gives.MANY in (own.gives, own.at_close) or own.close is not None
        words = int(self._first.ctypes.data), int(self._fault.ctypes.data)
        step, close = made
        return Function(step, words, close, _ROOM if unbounded else 1, unbounded, state, blocks, failure=self.failure)

    def plain(self) -> "Plain":
        """Its form in plain Python, with the initial state."""
        return Plain(self, self._bound)

    def arguments(self, row: Row) -> tuple[int | float | bool, ...]:
        """What the user's code is given for a tuple."""
        given = []
        for (place, there), (_, declared) in zip(self._places, self.own.parameters, strict=True):
            value = value_of(row[place], there)
            if declared is WordType.FLOAT:
                value = float(value)
            elif declared is WordType.INTEGER:
                value = int(value)
            given.append(value)
        return tuple(given)

    def said(self, row: Row) -> str:
        """A tuple as its columns."""
        named = zip(self.own.parameters, self._places, self.arguments(row), strict=True)
        return ", ".join(
            f"{name}={shown_value(self._bound, self._bound.fields[at], kind, value)!r}"
            for (name, _), (at, kind), value in named
        )

    def failure(self, repeat: Callable[[], object]) -> Exception | None:
        """What the user's code raised.

        By repeating the call in plain Python, or the whole stream if the call had changed the state before.
        """
        own, words = self.own, [int(word) for word in self._fault[FAULT_WORDS:].view(np.uint64)]
        given = len(self._bound.fields) if self._fault[WHERE] == IN_STEP else 1
        state = [_state_from(own, words[given:])] if own.keeps_state else []
        try:
            if self._fault[WHERE] == IN_CLOSE and own.close is not None:
                on = f"at the punctuation of time {words[0]}"
                list(own.close(*state, *words[: own.takes_time]) or ())
            else:
                on = f"on the row {self.said(tuple(words[:given]))}"
                list(own.step(*state, *self.arguments(tuple(words[:given]))) or ())
        except Exception as error:
            return self.raised(error, on)
        try:
            repeat()
        except BadInput as error:
            return error
        return BadInput(f"{self.where}: {own.name} failed {on}, when compiled only")

    def raised(self, error: Exception, on: str) -> BadInput:
        """An exception of the user's code as a sentence."""
        file = self.own.step.__code__.co_filename
        lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == file]
        line = f", line {lines[-1]}" if lines else ""
        return BadInput(f"{self.where}: {self.own.name}{line} failed {on}: {type(error).__name__}: {error}")


def shown_value(bound: BoundOperator, name: str, kind: WordType, value: float) -> object:
    """A value of a field, with texts instead of their numbers."""
    texts = bound.texts.get(name) if kind is WordType.TEXT else None
    return texts[value].as_py() if texts is not None and 0 <= value < len(texts) else value


def first_words(own: OwnFunction) -> Words:
    """The first values of a state as words."""
    first = np.zeros(1, state_kind(own))
    for field in own.fields:
        first[field.name] = field.start()
    return first.view(np.int64)


def _state_from(own: OwnFunction, words: Sequence[int]) -> Any:
    """A state in plain Python from its words."""
    record = np.array(words, np.uint64).view(state_kind(own))[0]
    state = own.fresh_state()
    for field in own.fields:
        setattr(state, field.name, record[field.name].tolist())
    return state


class Plain:
    """The user's code in plain Python."""

    def __init__(self, function: Own, bound: BoundOperator) -> None:
        self._function, self._own, self._bound = function, function.own, bound
        self._states: list[dict[int, Any]] = [{} for _ in range(bound.partitions)]
        self._first = list(_bits_in(self._own, self._own.fresh_state())) if self._own.keeps_state else []

    def rows(self, row: Row) -> Sequence[Row]:
        """Outputs of a tuple."""
        own, arguments = self._own, self._function.arguments(row)
        if not own.keeps_state:
            return self._rows(own.step, arguments, own.gives, row)
        states = self._states[self._bound.partition(row)]
        key = row[self._bound.key_at] if self._bound.key_at >= 0 else 0
        if key not in states:
            states[key] = own.fresh_state()
        return self._rows(own.step, (states[key], *arguments), own.gives, row)

    def close(self, partition: int, time: int) -> Sequence[Row]:
        """Outputs of the partition's keys, in the order of their arrival."""
        own, rows, kept = self._own, list[Row](), dict[int, Any]()
        if own.close is None:
            return rows
        for key, state in self._states[partition].items():
            if self._is_first(state):
                continue
            rows += self._rows(own.close, (state, time) if own.takes_time else (state,), own.at_close, None)
            if not self._is_first(state):
                kept[key] = state
        self._states[partition] = kept
        return rows

    def _is_first(self, state: Any) -> bool:
        return all(map(eq, _bits_in(self._own, state), self._first))

    def _rows(self, call: Callable[..., Any], arguments: tuple[Any, ...], gives: Gives, row: Row | None) -> list[Row]:
        """Outputs of a call for a row, or at a punctuation."""
        try:
            made = call(*arguments)
            match gives:
                case Gives.FILTER:
                    rows = [row] if made and row is not None else []
                case Gives.NOTHING:
                    rows = []
                case Gives.ONE:
                    rows = [] if made is None else [self._words(made)]
                case Gives.MANY:
                    rows = [self._words(each) for each in made]
            if self._own.keeps_state:
                _check_state(self._own, arguments[0])
        except Exception as error:
            on = "at a punctuation" if row is None else f"on the row {self._function.said(row)}"
            raise self._function.raised(error, on) from error
        if len(rows) >= MOST_OUTPUTS:
            raise BadInput(
                f"{self._function.where}: {self._own.name} gives {len(rows)} outputs at once; at most "
                f"{MOST_OUTPUTS - 1} are allowed"
            )
        return rows

    def _words(self, made: Any) -> Row:
        return tuple(word_of(value, kind) for value, (_, kind) in zip(made, self._own.outputs, strict=True))


def _bits_in(own: OwnFunction, state: Any) -> Iterator[Any]:
    """The values of a state, comparable bit by bit."""
    for field in own.fields:
        value = getattr(state, field.name)
        kind = np.float64 if field.type is WordType.FLOAT else np.int64
        yield value if field.type is None else np.array(value, kind).tobytes()


class _Array(list[Any]):
    """An array of a state, whose values are converted when they are written."""

    def __init__(self, values: Iterable[Any], kind: WordType) -> None:
        super().__init__(_kept(value, kind) for value in values)
        self._kind = kind

    def __setitem__(self, at: Any, value: Any) -> None:
        kept = [_kept(each, self._kind) for each in value] if isinstance(at, slice) else _kept(value, self._kind)
        super().__setitem__(at, kept)


def _kept(value: Any, kind: WordType) -> Any:
    return value_of(word_of(value, kind), kind)


def _check_state(own: OwnFunction, state: Any) -> None:
    """Keep the fields of a state in their types, as compiled states are."""
    for field in own.fields:
        if field.type is None:
            continue
        value = getattr(state, field.name)
        if not field.length:
            setattr(state, field.name, _kept(value, field.type))
            continue
        if not isinstance(value, _Array):
            setattr(state, field.name, value := _Array(value, field.type))
        if len(value) != field.length:
            raise TypeError(f"self.{field.name} has {len(value)} values instead of {field.length}")


def inner_of(bound: BoundOperator) -> BoundOperator:
    """The operator with its own fields, also of a graph."""
    return bound if bound.route is None else bound.route.inner


def own_of(bound: BoundOperator) -> Own | None:
    """The user's code at an operator; None for a built-in function."""
    own = bound.operator.function
    return Own(inner_of(bound), own) if isinstance(own, OwnFunction) else None


def function_of(bound: BoundOperator) -> Function:
    """The function of an operator, for a single run."""
    if bound.route is not None:
        return routed(bound, bound.route, function_of(bound.route.inner))
    function = bound.operator.function
    return Own(bound, function).compiled() if isinstance(function, OwnFunction) else FUNCTIONS[function](bound)


def obstacles(operators: Iterable[BoundOperator]) -> list[str]:
    """Why operators cannot be compiled, a sentence each; empty if all can."""
    owns = [own_of(bound) for bound in operators]
    return [f"{own.where}: {own.obstacle}" for own in owns if own is not None and own.obstacle is not None]
