"""The TOML file of a query network.

Its tables are [settings], [[node]], [[input]], [[operator]], [[output]] and [[link]].
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as fields_of
from typing import Any

from adapt.core.errors import BadInput, UsageError
from adapt.core.fit.network.names import DropPlanner, Drops, OperatorKind
from adapt.core.fit.network.network import (
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
from adapt.core.fit.network.settings import SheddingSettings
from adapt.core.toml import Element, called, elements, number_of, only
from adapt.core.units.durations import duration_us

FIELDS = {
    "node": ("name", "capacity"),
    "input": ("name", "stream", "scale", "rate", "out_bytes", "node"),
    "operator": ("name", "node", "kind", "inputs", "cost", "selectivity", "window", "out_bytes"),
    "output": ("name", "from", "weight"),
    "link": ("from", "to", "bytes_per_s"),
}
"""The fields of each kind of element."""


@dataclass(frozen=True, slots=True)
class NetworkFile:
    """The contents of a network file."""

    network: Network
    settings: SheddingSettings


def read_network(text: str) -> NetworkFile:
    """Read a network from the text of its file.

    Raises:
        BadInput: the text is not TOML, or an element is invalid; the message names the element.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"the network is not valid TOML: {error}") from None
    only("the network", document, ("settings", *FIELDS))
    network = Network(
        nodes=tuple(_node(element) for element in elements(document, "node")),
        inputs=tuple(_input(element) for element in elements(document, "input")),
        operators=tuple(_operator(element) for element in elements(document, "operator")),
        outputs=tuple(_output(element) for element in elements(document, "output")),
        links=tuple(_link(element) for element in elements(document, "link")),
    )
    return NetworkFile(network, _settings(document.get("settings", {})))


def _node(fields: Mapping[str, Any]) -> Node:
    element = Element(called("node", fields), fields, FIELDS["node"])
    return Node(element.text("name"), element.number("capacity", 1.0))


def _input(fields: Mapping[str, Any]) -> Input:
    element = Element(called("input", fields), fields, FIELDS["input"])
    return Input(
        name=element.text("name"),
        stream=_stream(element.where, element.get("stream")),
        scale=element.number("scale", 1.0),
        rate=element.number_or_none("rate"),
        out_bytes=element.number_or_none("out_bytes"),
        node=element.text_or_none("node"),
    )


def _stream(where: str, binding: Any) -> Stream | None:
    """The rows that an input reads."""
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
        f"{where}: stream must be {{ column = NAME, equals = VALUE }}, {{ keys = [FIRST, END] }}, where an empty "
        f"string is open-ended, or {{ bucket = NUMBER, of = BUCKETS }} (got {binding!r})"
    )


def _operator(fields: Mapping[str, Any]) -> Operator:
    element = Element(called("operator", fields), fields, FIELDS["operator"])
    inputs = element.get("inputs")
    if not isinstance(inputs, list) or not all(isinstance(name, str) for name in inputs):
        raise BadInput(f'{element.where}: inputs must be a list of names such as ["parse"] (got {inputs!r})')
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
    if len(window) != 2 or any(isinstance(side, str) for side in window):
        raise BadInput(f"{where}: a join needs window = [TUPLES, TUPLES] (got {window})")
    first, second = (number_of(where, "window", side) for side in window)
    return first, second


def _window(where: str, window: Any) -> Window:
    match window:
        case {"size": str(size), "slide": str(slide), **rest}:
            timed, sizes = True, (_duration(where, size), _duration(where, slide))
        case {"size": int(tuples), "slide": int(step), **rest}:
            timed, sizes = False, (tuples, step)
        case _:
            raise BadInput(
                f"{where}: an aggregate needs window = {{ size, slide }}, both durations or both tuple counts; "
                f"a join needs window = [TUPLES, TUPLES] (got {window!r})"
            )
    only(f"{where}: window", {str(name): value for name, value in rest.items()}, ("group_by",))
    group_by = rest.get("group_by")
    if group_by is not None and not isinstance(group_by, str):
        raise BadInput(f"{where}: group_by must be the name of a column (got {group_by!r})")
    return Window(*sizes, timed, group_by)


def _output(fields: Mapping[str, Any]) -> Output:
    element = Element(called("output", fields), fields, FIELDS["output"])
    return Output(element.text("name"), element.text("from"), element.number("weight", 1.0))


def _link(fields: Mapping[str, Any]) -> Link:
    where = f"link {fields.get('from', '?')!s} to {fields.get('to', '?')!s}"
    element = Element(where, fields, FIELDS["link"])
    return Link(element.text("from"), element.text("to"), element.number("bytes_per_s"))


def _settings(fields: Any) -> SheddingSettings:
    if not isinstance(fields, dict):
        raise BadInput("settings must be a table: [settings], with its fields below")
    names = [field.name.removesuffix("_us") for field in fields_of(SheddingSettings)]
    element, default = Element("settings", fields, names), SheddingSettings()
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


def _duration(where: str, text: str) -> int:
    try:
        return duration_us(text)
    except UsageError as error:
        raise BadInput(f"{where}: {error}") from None
