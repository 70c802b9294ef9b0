"""Chain files: TOML with an [[operator]] table per operator, in order.

An optional [punctuations] table says where windows end. `inputs` and `outputs` name those of a graph, `input_column`
the column of a trace that names the input of each row.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from adapt.core.errors import BadInput, UsageError
from adapt.core.ordered.chain.chain import Chain, Operator, Punctuations
from adapt.core.ordered.chain.names import FunctionName, OperatorKind, PartitionBy, PartitionCount
from adapt.core.ordered.chain.own import OwnFunction
from adapt.core.ordered.chain.roles import TIME
from adapt.core.toml import Element, called, document_of, elements, number_of, only, text_of
from adapt.core.units.amounts import bytes_of
from adapt.core.units.durations import duration_us

FIELDS = {
    "operator": (
        *("name", "kind", "key", "partitions", "by", "cost", "selectivity", "function", "from"),
        *("tuple_bytes", "state_bytes"),
    ),
    "punctuations": ("column", "every"),
}
"""Fields of each kind of element."""


NAMES, COLUMN = ("inputs", "outputs"), "input_column"
"""Fields of the chain itself."""

Load: TypeAlias = Callable[[str], OwnFunction]
"""Loads an own function by `module:function`."""


def read_chain(text: str, load: Load | None = None) -> Chain:
    """Parse a chain from TOML text.

    Args:
        load: Loads own functions; None refuses them.
    """
    document = document_of(text, "the chain is")
    only("the chain", document, (*FIELDS, *NAMES, COLUMN))
    tables, lines = elements(document, "operator"), operator_lines(text)
    operators = []
    for at, fields in enumerate(tables):
        try:
            operators.append(_operator(fields, load))
        except BadInput as error:
            raise BadInput(f"line {lines[at]}: {error}" if len(lines) == len(tables) else str(error)) from error
    inputs, outputs = (_names("the chain", name, document.get(name, [])) for name in NAMES)
    column = text_of("the chain", COLUMN, document[COLUMN]) if COLUMN in document else None
    return Chain(tuple(operators), _punctuations(document), inputs, outputs, column)


def _names(where: str, field: str, value: Any) -> tuple[str, ...]:
    """A list of names; a single one may be a text."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadInput(f'{where}: {field} must be a list of names, such as ["a", "b"] (got {value!r})')
    return tuple(names)


def _punctuations(document: Mapping[str, Any]) -> Punctuations | None:
    fields = document.get("punctuations")
    if fields is None:
        return None
    if not isinstance(fields, dict):
        raise BadInput("punctuations must be a table; write it as [punctuations] with its fields below")
    element = Element("[punctuations]", fields, FIELDS["punctuations"])
    every_us, column = _time_us(element, "every"), element.text_or_none("column")
    return Punctuations(TIME if column is None else column, every_us)


def _time_us(element: Element, name: str) -> int | None:
    """An optional time in microseconds."""
    text = element.text_or_none(name)
    try:
        return None if text is None else duration_us(text)
    except UsageError as error:
        raise BadInput(f"{element.where}: {name}: {error}") from None


def operator_lines(text: str) -> list[int]:
    """Line numbers at which [[operator]] tables begin, from 1."""
    is_header = partial(re.match, r"\s*\[\[\s*[\"']?operator[\"']?\s*\]\]")
    return [number for number, line in enumerate(text.splitlines(), 1) if is_header(line)]


def _operator(fields: Mapping[str, Any], load: Load | None) -> Operator:
    element = Element(called("operator", fields), fields, FIELDS["operator"])
    return Operator(
        name=element.text("name"),
        kind=element.choice("kind", OperatorKind),
        key=element.text_or_none("key"),
        partitions=_partition_count(element),
        by=element.choice("by", PartitionBy, PartitionBy.HASH),
        cost=_cost(element),
        selectivity=element.number("selectivity", 1.0),
        function=_function(element, load),
        sources=None if element.get("from") is None else _names(element.where, "from", element.get("from")),
        tuple_bytes=_bytes(element, "tuple_bytes"),
        state_bytes=_bytes(element, "state_bytes"),
    )


def _bytes(element: Element, name: str) -> int:
    """A size: an integer in bytes, or a text such as "64KiB"."""
    size = element.get(name)
    if not isinstance(size, str):
        return element.whole(name, 0)
    try:
        return int(bytes_of(size))
    except UsageError as error:
        raise BadInput(f"{element.where}: {name} {error}") from None


def _partition_count(element: Element) -> int | PartitionCount | None:
    count = element.get("partitions")
    if count is None:
        return None
    if not isinstance(count, str):
        return element.whole("partitions", 1)
    if count != PartitionCount.WORKERS:
        raise BadInput(
            f'{element.where}: partitions must be an integer or "{PartitionCount.WORKERS}", for as many as workers '
            f"(got {count!r})"
        )
    return PartitionCount.WORKERS


def _function(element: Element, load: Load | None) -> FunctionName | OwnFunction:
    named = element.text_or_none("function") or ""
    if ":" not in named:
        return element.choice("function", FunctionName, FunctionName.WORK)
    if load is None:
        raise BadInput(f"{element.where}: own function {named!r} cannot be used here")
    try:
        return load(named)
    except BadInput as error:
        raise BadInput(f"{element.where}: {error}") from error


def _cost(element: Element) -> float | str:
    cost = element.get("cost")
    if cost is None or isinstance(cost, str):
        return 0.0 if cost is None else cost
    try:
        return number_of(element.where, "cost", cost)
    except BadInput:
        raise BadInput(f"{element.where}: cost must be microseconds or the name of a column (got {cost!r})") from None
