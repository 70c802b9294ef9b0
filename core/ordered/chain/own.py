"""Operators that users write in Python.

An operator is a function, or a class whose fields are the state of a key. Parameters are named after columns. The
annotation of the result says what a call gives: `bool` for a filter, a `NamedTuple` (or None) for a map, an iterator of
them for any number of outputs.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from adapt.core.errors import BadInput, did_you_mean


class WordType(StrEnum):
    """Type of a value in a tuple or a state."""

    INTEGER = "int"
    """64 bits; times are microseconds since 1970."""
    FLOAT = "float"
    FLAG = "bool"
    TEXT = "str"
    """The number of a text, in the order of first appearance: to compare with others of its column and to pass on."""


class Gives(StrEnum):
    """What a call gives."""

    NOTHING = "nothing"
    FILTER = "filter"
    """Whether the row goes on as it is."""
    ONE = "one"
    """A row or None."""
    MANY = "many"
    """Rows, by `yield`."""


@dataclass(frozen=True, slots=True)
class StateField:
    """A field of a state."""

    name: str
    type: WordType | None  # type of its values; None for a type that cannot be compiled
    length: int  # number of values; 0 for a single one
    start: Callable[[], Any]  # makes its first value


@dataclass(frozen=True, slots=True)
class OwnFunction:
    """A function or class that a user wrote."""

    name: str  # `module:name`, as in the chain
    call: Callable[..., Any]  # the function, or the class of the states
    step: Callable[..., Any]  # what runs per row; of a class, its method `step`
    close: Callable[..., Any] | None  # what runs per key at a punctuation, the method `close`; None without one
    takes_time: bool  # whether `close` takes the time of the punctuation
    parameters: tuple[tuple[str, WordType | None], ...]  # columns it reads, with the declared type or None
    gives: Gives  # what a call of `step` gives
    at_close: Gives  # what a call of `close` gives
    output: type | None  # the class of its outputs; None for a filter
    outputs: tuple[tuple[str, WordType], ...]  # fields of the outputs with their types
    fields: tuple[StateField, ...]
    obstacle: str | None = None  # why it cannot be compiled, if its declaration already shows that

    @property
    def keeps_state(self) -> bool:
        """Whether it is a class of states."""
        return inspect.isclass(self.call)

    def fresh_state(self) -> Any:
        """A state with its first values."""
        state = object.__new__(self.call)  # type: ignore[arg-type]
        for field in self.fields:
            setattr(state, field.name, field.start())
        return state

    def __str__(self) -> str:
        """The name."""
        return self.name


_TYPES: dict[Any, WordType] = {int: WordType.INTEGER, float: WordType.FLOAT, bool: WordType.FLAG, str: WordType.TEXT}
_ZERO = {WordType.INTEGER: 0, WordType.FLOAT: 0.0, WordType.FLAG: False, WordType.TEXT: -1}
_RESULTS = "-> bool for a filter, -> Row or -> Row | None for a map, -> Iterator[Row] to yield rows"


def own_function(name: str, call: Callable[..., Any]) -> OwnFunction:
    """Read the declaration of a user's function or class."""
    where = f"function {name!r}"
    is_class = inspect.isclass(call)
    step = getattr(call, "step", None) if is_class else call
    if not inspect.isfunction(step):
        raise BadInput(
            f"{where}: the class has no method step(self, COLUMN, ...)"
            if is_class
            else f"{where} must be a function, or a class with a method step (it is a {type(call).__name__})"
        )
    close = getattr(call, "close", None) if is_class else None
    fields, obstacle = _fields(where, call) if is_class else ((), None)
    parameters = _parameters(where, step, is_class)
    gives, output = _result(where, step)
    at_close, closed = _result(where, close) if close is not None else (Gives.NOTHING, None)
    if output is not None and closed is not None and output is not closed:
        raise BadInput(f"{where}: step gives {output.__name__} and close {closed.__name__}; both must give one class")
    if gives is Gives.FILTER and close is not None:
        raise BadInput(f"{where}: step is a filter, so that close has nothing to give; remove close")
    output = output or closed
    if output is None and gives is not Gives.FILTER:
        raise BadInput(f"{where} gives nothing; annotate its result: {_RESULTS}")
    times = [] if close is None else list(inspect.signature(close).parameters)[1:]
    if len(times) > 1 or times not in ([], ["time"]):
        raise BadInput(f"{where}: close takes self and time only (got {', '.join(times)})")
    _check_source(where, call, [field.name for field in fields])
    return OwnFunction(
        *(name, call, step, close, bool(times), parameters, gives, at_close, output),
        _outputs(where, output),
        fields,
        obstacle,
    )


def _hints(where: str, of: Any) -> dict[str, Any]:
    try:
        return get_type_hints(of, include_extras=True)
    except Exception as error:
        raise BadInput(f"{where}: an annotation cannot be read ({type(error).__name__}: {error})") from error


def _always(value: Any) -> Callable[[], Any]:
    return lambda: value


def _zeros(of: WordType, length: int) -> Callable[[], Any]:
    return lambda: [_ZERO[of]] * length


def _fields(where: str, kind: Any) -> tuple[tuple[StateField, ...], str | None]:
    """Fields of a state, and why they cannot be compiled."""
    fields, obstacle = [], None
    for name, hint in _hints(where, kind).items():
        if hint in _TYPES:
            of, first = _TYPES[hint], getattr(kind, name, _ZERO[_TYPES[hint]])
            fields.append(StateField(name, of, 0, _always(first)))
            continue
        array = _array(hint)
        if array is not None:
            of, length = array
            fields.append(StateField(name, of, length, _zeros(of, length)))
            continue
        make = get_origin(hint) or hint
        if not callable(make):
            raise BadInput(f"{where}: field {name!r} must be int, float, bool, str or Annotated[list[int], 8]")
        fields.append(StateField(name, None, 0, make))
        obstacle = obstacle or (
            f"field {name!r} is a {getattr(make, '__name__', make)}; compiled states have int, float, bool and str "
            "fields, and arrays of a fixed length such as Annotated[list[int], 8]"
        )
    return tuple(fields), obstacle


def _array(hint: Any) -> tuple[WordType, int] | None:
    """Type and length of an array, as in `Annotated[list[int], 8]`."""
    if get_origin(hint) is Annotated:
        of, length, *_ = get_args(hint)
        if get_origin(of) is list and get_args(of)[0] in _TYPES and isinstance(length, int) and length > 0:
            return _TYPES[get_args(of)[0]], length
    return None


def _parameters(where: str, step: Any, is_method: bool) -> tuple[tuple[str, WordType | None], ...]:
    hints, found = _hints(where, step), list(inspect.signature(step).parameters.values())[is_method:]
    for parameter in found:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.KEYWORD_ONLY):
            raise BadInput(f"{where}: each parameter must be named after a column (got {parameter})")
        if hints.get(parameter.name, int) not in _TYPES:
            raise BadInput(f"{where}: parameter {parameter.name!r} must be int, float, bool or str, or not annotated")
    if not found:
        raise BadInput(f"{where} takes no column; name its parameters after columns of the trace")
    return tuple((each.name, _TYPES[hints[each.name]] if each.name in hints else None) for each in found)


def _result(where: str, function: Any) -> tuple[Gives, type | None]:
    """What a function gives, and the class of its outputs."""
    hint = _hints(where, function).get("return", inspect.Parameter.empty)
    yields = inspect.isgeneratorfunction(function)
    if hint is bool and not yields:
        return Gives.FILTER, None
    if hint is NoneType and not yields:
        return Gives.NOTHING, None
    gives = Gives.ONE
    if get_origin(hint) in (Iterator, Iterable, Generator):
        gives, hint = Gives.MANY, get_args(hint)[0]
    elif get_origin(hint) in (Union, UnionType):
        (hint,) = [each for each in get_args(hint) if each is not NoneType][:1]
    if not (inspect.isclass(hint) and issubclass(hint, tuple) and hasattr(hint, "_fields")):
        raise BadInput(f"{where}: annotate the result of {function.__name__}, where Row is a NamedTuple: {_RESULTS}")
    if yields is not (gives is Gives.MANY):
        raise BadInput(
            f"{where}: {function.__name__} must yield its rows, as its result is an iterator"
            if gives is Gives.MANY
            else f"{where}: {function.__name__} yields, so its result must be Iterator[{hint.__name__}]"
        )
    return gives, hint


def _outputs(where: str, output: type | None) -> tuple[tuple[str, WordType], ...]:
    hints = {} if output is None else _hints(where, output)
    wrong = [name for name, hint in hints.items() if hint not in _TYPES]
    if wrong:
        raise BadInput(f"{where}: field {wrong[0]!r} of its outputs must be int, float, bool or str")
    return tuple((name, _TYPES[hint]) for name, hint in hints.items())


def _check_source(where: str, call: Any, fields: list[str]) -> None:
    """Find fields that are not declared, and texts that no column has."""
    try:
        lines, first = inspect.getsourcelines(call)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):  # no source, as of a function typed at a prompt
        return
    for node in ast.walk(tree):
        line = f"line {first + getattr(node, 'lineno', 1) - 1}"
        of_self = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
        if isinstance(node, ast.Attribute) and of_self and inspect.isclass(call):
            name = node.attr
            if name not in (*fields, *dir(call)):
                raise BadInput(f"{where}: {line}: self.{name} is not declared in the class{did_you_mean(name, fields)}")
        if isinstance(node, ast.Compare):
            texts = [each for each in (node.left, *node.comparators) if isinstance(each, ast.Constant)]
            if any(isinstance(each.value, str) for each in texts):
                raise BadInput(
                    f"{where}: {line}: operators see texts as numbers, so a text cannot be compared with a constant; "
                    "derive a number or flag at `adapt ingest`"
                )
