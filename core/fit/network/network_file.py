"""TOML files of a query network and of its true values.

Its tables are [settings], [[node]], [[input]], [[operator]], [[output]] and [[link]].
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as fields_of
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.fit.network.names import OperatorKind
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
from adapt.core.fit.network.true_values import TrueValues, values_of, with_values
from adapt.core.toml import Element, called, document_of, elements, number_of, only, text_of, with_lines
from adapt.core.units.durations import duration_us
from adapt.core.units.settings import SettingError

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
    """Read a network from the text of its file."""
    document = document_of(text, "the network is")
    faults: list[str] = []
    try:
        only("the network", document, ("settings", *FIELDS))
        found = {kind: elements(document, kind) for kind in FIELDS}
        settings = _settings(document.get("settings", {}), faults)
    except BadInput as error:
        raise BadInput(with_lines(text, [*faults, str(error)])) from None
    parts = (
        tuple(_node(Element(called("node", each), each, FIELDS["node"], faults)) for each in found["node"]),
        tuple(_input(Element(called("input", each), each, FIELDS["input"], faults)) for each in found["input"]),
        tuple(
            _operator(Element(called("operator", each), each, FIELDS["operator"], faults)) for each in found["operator"]
        ),
        tuple(_output(Element(called("output", each), each, FIELDS["output"], faults)) for each in found["output"]),
        tuple(_link(Element(_link_name(each), each, FIELDS["link"], faults)) for each in found["link"]),
    )
    try:
        network = Network(*parts)
    except BadInput as error:
        # What follows from a value that could not be read says nothing new.
        unread = {_element_of(fault) for fault in faults}
        new = [fault for fault in str(error).splitlines() if _element_of(fault) not in unread]
        faults += [fault for fault in new if not unread or "does not reach" not in fault]
    if faults:
        raise BadInput(with_lines(text, faults))
    return NetworkFile(network, settings)


def _element_of(fault: str) -> str:
    """The element that a fault names: its kind and name."""
    named = re.match(r"(settings|\w+ (?:'[^']*'|\[\[\w+\]\]))", fault)
    return named[1] if named else fault


def _node(element: Element) -> Node:
    return Node(element.text("name"), element.number("capacity", 1.0))


def _input(element: Element) -> Input:
    return Input(
        name=element.text("name"),
        stream=element.read("stream", _stream, None) if element.get("stream") is not None else None,
        scale=element.number("scale", 1.0),
        rate=element.number_or_none("rate"),
        out_bytes=element.number_or_none("out_bytes"),
        node=element.text_or_none("node"),
    )


def _stream(where: str, _: str, binding: Any) -> Stream | None:
    """The rows that an input reads."""
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


def _operator(element: Element) -> Operator:
    window = element.get("window")
    return Operator(
        name=element.text("name"),
        node=element.text("node"),
        kind=element.choice("kind", OperatorKind),
        inputs=element.read("inputs", _inputs, ()),
        cost=element.number("cost"),
        selectivity=element.number("selectivity", 1.0),
        join_windows=element.read("window", _join_windows, None) if isinstance(window, list) else None,
        window=None if window is None or isinstance(window, list) else element.read("window", _window, None),
        out_bytes=element.number_or_none("out_bytes"),
    )


def _inputs(where: str, _: str, inputs: Any) -> tuple[str, ...]:
    if not isinstance(inputs, list) or not all(isinstance(name, str) for name in inputs):
        raise BadInput(f'{where}: inputs must be a list of names such as ["parse"] (got {inputs!r})')
    return tuple(inputs)


def _join_windows(where: str, _: str, window: Sequence[Any]) -> tuple[float, float] | None:
    if len(window) != 2 or any(isinstance(side, str) for side in window):
        raise BadInput(f"{where}: a join needs window = [TUPLES, TUPLES] (got {window})")
    first, second = (number_of(where, "window", side) for side in window)
    return first, second


def _window(where: str, _: str, window: Any) -> Window | None:
    match window:
        case {"size": str(size), "slide": str(slide), **rest}:
            timed, sizes = True, (_duration(where, "size", size), _duration(where, "slide", slide))
        case {"size": int(tuples), "slide": int(step), **rest}:
            timed, sizes = False, (tuples, step)
        case _:
            raise BadInput(
                f"{where}: an aggregate needs window = {{ size, slide }}, both durations or both tuple counts; "
                f"a join needs window = [TUPLES, TUPLES] (got {window!r})"
            )
    only(f"{where}: window", {str(name): value for name, value in rest.items()}, ())
    return Window(*sizes, timed)


def _output(element: Element) -> Output:
    return Output(element.text("name"), element.text("from"), element.number("weight", 1.0))


def _link(element: Element) -> Link:
    return Link(element.text("from"), element.text("to"), element.number("bytes_per_s"))


def _link_name(fields: Mapping[str, Any]) -> str:
    return f"link '{fields.get('from', '?')!s} to {fields.get('to', '?')!s}'"


def _settings(fields: Any, faults: list[str]) -> SheddingSettings:
    if not isinstance(fields, dict):
        raise BadInput("settings must be a table: [settings], with its fields below")
    default, before = SheddingSettings(), len(faults)
    kinds = {each.name: each.type for each in fields_of(SheddingSettings)}
    element = Element("settings", fields, [_in_file(SheddingSettings, name) for name in kinds], faults)
    readers: dict[Any, Any] = {float: element.number, int: element.whole, bool: element.truth}
    read: dict[str, Any] = {}
    for name, kind in kinds.items():
        key = _in_file(SheddingSettings, name)
        if key in fields and key != name:
            read[name] = element.read(key, _duration, default.tick_us)
        elif key in fields:
            reader = readers.get(kind) or (lambda key, usual, kind=kind: element.choice(key, kind, usual))
            read[name] = reader(key, getattr(default, name))
    if len(faults) == before:
        for name, value in read.items():  # one by one, so that every fault is found
            try:
                SheddingSettings(**{name: value})
            except SettingError as error:
                faults.append(f"settings: {error.spelled(_in_file)}")
    return SheddingSettings(**read) if len(faults) == before else default


def _in_file(_: type, name: str) -> str:
    """How a setting is called in the file."""
    return name.removesuffix("_us")


def _duration(where: str, name: str, value: Any) -> int:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise BadInput(f'{where}: {name} needs a unit, such as {name} = "{value}s" (got {value})')
    try:
        return duration_us(text_of(where, name, value))
    except UsageError as error:
        raise BadInput(f"{where}: {name}: {error}") from None


_FIELDS = ("at", "operator", "cost", "selectivity", "over")


@dataclass(frozen=True, slots=True)
class Change:
    """New true values of an operator."""

    at_us: int  # start, in microseconds since the start of the replay
    operator: str  # name
    cost: float | None  # CPU seconds per tuple; None: unchanged
    selectivity: float | None  # tuples out / tuples in; None: unchanged
    over_us: int = 0  # time until the new values are reached, along a straight line; 0: at once


@dataclass(frozen=True, slots=True)
class Listed:
    """True values from a file: those of the network, then changes."""

    changes: tuple[Change, ...]  # ascending by time
    noise: float  # standard deviation of a value in a tick, as a share of its mean
    seed: int  # random seed of this fluctuation
    text: str  # the file, to record in the run

    def over(self, network: Network, at_us: NDArray[np.int64]) -> TrueValues:
        """The values in each tick: those at its start."""
        values = np.repeat(values_of(network)[:, None], len(at_us), axis=1)
        names = [operator.name for operator in network.operators]
        for change in self.changes:
            number, after = names.index(change.operator), at_us >= change.at_us
            share = np.minimum(1.0, (at_us - change.at_us) / change.over_us) if change.over_us else None
            for of_kind, wanted in zip(values, (change.cost, change.selectivity), strict=True):
                if wanted is None or not after.any():
                    continue
                before = of_kind[int(np.argmax(after)), number]
                of_kind[after, number] = wanted if share is None else before + share[after] * (wanted - before)
        return TrueValues(network, values[0], values[1], self.noise, self.seed)

    def as_data(self) -> Mapping[str, Any]:
        """The file."""
        return {"text": self.text}


def read_true(text: str, network: Network) -> Listed:
    """Read true values from the text of their file."""
    document = document_of(text, "the true values are")
    only("the file of true values", document, ("noise", "seed", "change"))
    top = Element("the file of true values", document, tuple(document))
    noise, seed = top.number("noise", 0.0), top.whole("seed", 0)
    if not (0 <= noise < np.inf and 0 <= seed < 2**63):
        raise BadInput(f"noise and seed must be at least 0 (got {noise:g} and {seed})")
    found = [_change(number, each, network) for number, each in enumerate(elements(document, "change"), 1)]
    listed = Listed(tuple(sorted(found, key=lambda change: change.at_us)), noise, seed, text)
    for change in listed.changes:
        values = listed.over(network, np.array([change.at_us + change.over_us]))
        with_values(network, values.mean_costs[0], values.mean_selectivities[0])
    return listed


def _change(number: int, fields: Mapping[str, Any], network: Network) -> Change:
    where, operators = f"change {number}", {each.name: each for each in network.operators}
    element = Element(where, fields, _FIELDS)
    name = element.text("operator")
    if name not in operators:
        raise BadInput(f"{where}: operator {name!r} does not exist{did_you_mean(name, operators)}")
    cost, selectivity = element.number_or_none("cost"), element.number_or_none("selectivity")
    if cost is None and selectivity is None:
        raise BadInput(f"{where} changes nothing; add cost = ... or selectivity = ...")
    for what, value in (("cost", cost), ("selectivity", selectivity)):
        if value is not None and not 0 <= value < np.inf:
            raise BadInput(f"{where}: {what} must be a finite number, at least 0 (got {value:g})")
    if operators[name].kind is OperatorKind.FILTER and (selectivity or 0.0) > 1:
        raise BadInput(f"{where}: selectivity of a filter must be at most 1 (got {selectivity:g})")
    over_us = element.read("over", _duration, 0) if "over" in fields else 0
    return Change(element.read("at", _duration, 0), name, cost, selectivity, over_us)
