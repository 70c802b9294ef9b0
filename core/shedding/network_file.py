"""A network as a user writes it: TOML text with [settings], [[node]], [[input]], [[operator]], [[output]], [[link]]."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as fields_of
from enum import StrEnum
from typing import Any, TypeVar

from adapt.core.durations import duration_us
from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.shedding.names import DropPlanner, Drops, OperatorKind
from adapt.core.shedding.network import (
    ColumnEquals,
    Input,
    KeyBucket,
    KeyRange,
    Link,
    Network,
    Node,
    Operator,
    Output,
    Stream,
    Window,
)
from adapt.core.shedding.settings import SheddingSettings

Choice = TypeVar("Choice", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class NetworkFile:
    """What a file holds."""

    network: Network
    settings: SheddingSettings


def read_network(text: str) -> NetworkFile:
    """A network from the text of its file.

    Raises:
        BadInput: the text is no TOML, or an element is not what it may be; the message names the element.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"the network is not written as TOML: {error}") from None
    _only("the network", document, ("settings", "node", "input", "operator", "output", "link"))
    network = Network(
        nodes=tuple(_node(element) for element in _elements(document, "node")),
        inputs=tuple(_input(element) for element in _elements(document, "input")),
        operators=tuple(_operator(element) for element in _elements(document, "operator")),
        outputs=tuple(_output(element) for element in _elements(document, "output")),
        links=tuple(_link(element) for element in _elements(document, "link")),
    )
    return NetworkFile(network, _settings(document.get("settings", {})))


class _Element:
    """One table of the file, whose fields are taken by name and type."""

    def __init__(self, where: str, fields: Mapping[str, Any], known: Sequence[str]) -> None:
        _only(where, fields, known)
        self.where, self._fields = where, fields

    def text(self, name: str) -> str:
        """A field that must be there."""
        value = self._given(name)
        if not isinstance(value, str):
            raise BadInput(f"{self.where}: {name} is {value!r} instead of a text")
        return value

    def text_or_none(self, name: str) -> str | None:
        """A field that may be left out."""
        return self.text(name) if name in self._fields else None

    def number(self, name: str, default: float | None = None) -> float:
        """A field that must be there unless it has a default."""
        if default is not None and name not in self._fields:
            return default
        return _number(self.where, name, self._given(name))

    def number_or_none(self, name: str) -> float | None:
        """A field that may be left out."""
        return self.number(name) if name in self._fields else None

    def whole(self, name: str, default: int) -> int:
        """A field that may be left out."""
        value = self._fields.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadInput(f"{self.where}: {name} is {value!r} instead of a whole number")
        return value

    def truth(self, name: str, default: bool) -> bool:
        """A field that may be left out."""
        value = self._fields.get(name, default)
        if not isinstance(value, bool):
            raise BadInput(f"{self.where}: {name} is {value!r} instead of true or false")
        return value

    def choice(self, name: str, kinds: type[Choice], default: Choice | None = None) -> Choice:
        """A field with one of some names."""
        if default is not None and name not in self._fields:
            return default
        value = self.text(name)
        if value not in [str(kind) for kind in kinds]:
            raise BadInput(f"{self.where}: there is no {name} {value!r}{did_you_mean(value, kinds)}")
        return kinds(value)

    def get(self, name: str) -> Any:
        """A field of any type; None if left out."""
        return self._fields.get(name)

    def _given(self, name: str) -> Any:
        if name not in self._fields:
            raise BadInput(f"{self.where} has no {name}; add {name} = ...")
        return self._fields[name]


def _node(fields: Mapping[str, Any]) -> Node:
    element = _Element(_called("node", fields), fields, ("name", "capacity"))
    return Node(element.text("name"), element.number("capacity", 1.0))


def _input(fields: Mapping[str, Any]) -> Input:
    known = ("name", "stream", "scale", "rate", "out_bytes", "node")
    element = _Element(_called("input", fields), fields, known)
    return Input(
        name=element.text("name"),
        stream=_stream(element.where, element.get("stream")),
        scale=element.number("scale", 1.0),
        rate=element.number_or_none("rate"),
        out_bytes=element.number_or_none("out_bytes"),
        node=element.text_or_none("node"),
    )


def _stream(where: str, binding: Any) -> Stream | None:
    """Which rows an input is bound to."""
    if binding is None:
        return None
    match binding:
        case {"column": str(column), "equals": (str() | int()) as value, **rest} if not rest:
            return ColumnEquals(column, value)
        case {"keys": [(str() | int()) as first, (str() | int()) as end], **rest} if not rest:
            return KeyRange(None if first == "" else first, None if end == "" else end)
        case {"bucket": int(bucket), "of": int(of), **rest} if not rest:
            return KeyBucket(bucket, of)
    raise BadInput(
        f"{where}: stream is {binding!r}; give {{ column = NAME, equals = VALUE }}, {{ keys = [FIRST, END] }} with "
        '"" for no bound, or { bucket = NUMBER, of = BUCKETS }'
    )


def _operator(fields: Mapping[str, Any]) -> Operator:
    known = ("name", "node", "kind", "inputs", "cost", "selectivity", "window", "out_bytes")
    element = _Element(_called("operator", fields), fields, known)
    inputs = element.get("inputs")
    if not isinstance(inputs, list) or not all(isinstance(name, str) for name in inputs):
        raise BadInput(f'{element.where}: inputs is {inputs!r} instead of a list of names, such as ["parse"]')
    window = element.get("window")
    return Operator(
        name=element.text("name"),
        node=element.text("node"),
        kind=element.choice("kind", OperatorKind),
        inputs=tuple(inputs),
        cost=element.number("cost"),
        selectivity=element.number("selectivity", 1.0),
        join_windows=_join_windows(element.where, window) if isinstance(window, list) else None,
        window=_window(element.where, window) if window is not None and not isinstance(window, list) else None,
        out_bytes=element.number_or_none("out_bytes"),
    )


def _join_windows(where: str, window: Sequence[Any]) -> tuple[float, float]:
    if len(window) != 2:
        raise BadInput(f"{where}: window has {len(window)} sides; a join keeps two count windows, [tuples, tuples]")
    first, second = (_number(where, "window", side) for side in window)
    return first, second


def _window(where: str, window: Any) -> Window:
    match window:
        case {"size": str(size), "slide": str(slide), **rest}:
            timed, sizes = True, (_duration(where, size), _duration(where, slide))
        case {"size": int(tuples), "slide": int(step), **rest}:
            timed, sizes = False, (tuples, step)
        case _:
            raise BadInput(
                f"{where}: window is {window!r}; an aggregate has {{ size = ..., slide = ... }}, both lengths of time "
                "or both numbers of tuples, and a join [tuples, tuples]"
            )
    _only(f"{where}: window", {str(name): value for name, value in rest.items()}, ("group_by",))
    group_by = rest.get("group_by")
    if group_by is not None and not isinstance(group_by, str):
        raise BadInput(f"{where}: group_by is {group_by!r} instead of the name of a column")
    return Window(*sizes, timed, group_by)


def _output(fields: Mapping[str, Any]) -> Output:
    element = _Element(_called("output", fields), fields, ("name", "from", "weight"))
    return Output(element.text("name"), element.text("from"), element.number("weight", 1.0))


def _link(fields: Mapping[str, Any]) -> Link:
    where = f"link {fields.get('from', '?')!s} to {fields.get('to', '?')!s}"
    element = _Element(where, fields, ("from", "to", "bytes_per_s"))
    return Link(element.text("from"), element.text("to"), element.number("bytes_per_s"))


def _settings(fields: Any) -> SheddingSettings:
    if not isinstance(fields, dict):
        raise BadInput("settings is no table; write it as [settings] with its fields below")
    names = [field.name.removesuffix("_us") for field in fields_of(SheddingSettings)]
    element, default = _Element("settings", fields, names), SheddingSettings()
    tick = element.text_or_none("tick")
    return SheddingSettings(
        tick_us=default.tick_us if tick is None else _duration("settings", tick),
        planner=element.choice("planner", DropPlanner, default.planner),
        epsilon=element.number("epsilon", default.epsilon),
        headroom=element.number("headroom", default.headroom),
        lag_ticks=element.whole("lag_ticks", default.lag_ticks),
        smoothing=element.number("smoothing", default.smoothing),
        min_rate_change=element.number("min_rate_change", default.min_rate_change),
        feedback=element.truth("feedback", default.feedback),
        drops=element.choice("drops", Drops, default.drops),
        batch=element.whole("batch", default.batch),
    )


def _elements(document: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    found = document.get(kind, [])
    if not isinstance(found, list) or not all(isinstance(element, dict) for element in found):
        raise BadInput(f"{kind} is not a list of tables; write each as [[{kind}]] with its fields below")
    return found


def _called(kind: str, fields: Mapping[str, Any]) -> str:
    """How messages call an element."""
    name = fields.get("name")
    return f"{kind} {name!r}" if isinstance(name, str) else f"one [[{kind}]]"


def _only(where: str, fields: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in fields:
        if name not in known:
            raise BadInput(f"{where} has an unknown field {name!r}{did_you_mean(name, known)}")


def _number(where: str, name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"{where}: {name} is {value!r} instead of a number")
    return float(value)


def _duration(where: str, text: str) -> int:
    try:
        return duration_us(text)
    except UsageError as error:
        raise BadInput(f"{where}: {error}") from None
