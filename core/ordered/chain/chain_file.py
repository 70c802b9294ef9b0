"""A chain as a user writes it: TOML text, an [[operator]] for each in the order in which tuples pass them.

Where windows end is told by [punctuations].
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from adapt.core.errors import BadInput, UsageError
from adapt.core.ordered.chain.chain import Chain, Operator, Punctuations, PythonFunction
from adapt.core.ordered.chain.names import FunctionName, OperatorKind, PartitionBy
from adapt.core.ordered.chain.roles import TIME
from adapt.core.toml import Element, called, elements, number_of, only
from adapt.core.units.durations import duration_us

FIELDS = {
    "operator": ("name", "kind", "key", "partitions", "by", "cost", "selectivity", "function"),
    "punctuations": ("column", "every"),
}
"""What each kind of element may say."""


Load: TypeAlias = Callable[[str], PythonFunction]
"""Finds a function in Python by `module:function`."""


def read_chain(text: str, load: Load | None = None) -> Chain:
    """A chain from the text of its file.

    Args:
        load: Finds functions in Python; None, there are none to be had.

    Raises:
        BadInput: the text is no TOML, or an element is not what it may be; the message names the element, and the line
            on which it begins.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"the chain is not written as TOML: {error}") from None
    only("the chain", document, tuple(FIELDS))
    tables, lines = elements(document, "operator"), operator_lines(text)
    operators = []
    for at, fields in enumerate(tables):
        try:
            operators.append(_operator(fields, load))
        except BadInput as error:
            raise BadInput(f"line {lines[at]}: {error}" if len(lines) == len(tables) else str(error)) from error
    return Chain(tuple(operators), _punctuations(document))


def _punctuations(document: Mapping[str, Any]) -> Punctuations | None:
    fields = document.get("punctuations")
    if fields is None:
        return None
    if not isinstance(fields, dict):
        raise BadInput("punctuations is no table; write it as [punctuations] with its fields below")
    element = Element("[punctuations]", fields, FIELDS["punctuations"])
    every = element.text_or_none("every")
    try:
        every_us = None if every is None else duration_us(every)
    except UsageError as error:
        raise BadInput(f"[punctuations]: every is {error}") from None
    column = element.text_or_none("column")
    return Punctuations(TIME if column is None else column, every_us)


def operator_lines(text: str) -> list[int]:
    """The line on which each operator begins, from 1; of operators that are not written as [[operator]], none."""
    is_header = partial(re.match, r"\s*\[\[\s*[\"']?operator[\"']?\s*\]\]")
    return [number for number, line in enumerate(text.splitlines(), 1) if is_header(line)]


def _operator(fields: Mapping[str, Any], load: Load | None) -> Operator:
    element = Element(called("operator", fields), fields, FIELDS["operator"])
    return Operator(
        name=element.text("name"),
        kind=element.choice("kind", OperatorKind),
        key=element.text_or_none("key"),
        partitions=None if element.get("partitions") is None else element.whole("partitions", 1),
        by=element.choice("by", PartitionBy, PartitionBy.HASH),
        cost=_cost(element),
        selectivity=element.number("selectivity", 1.0),
        function=_function(element, load),
    )


def _function(element: Element, load: Load | None) -> FunctionName | PythonFunction:
    named = element.text_or_none("function") or ""
    if ":" not in named:
        return element.choice("function", FunctionName, FunctionName.WORK)
    if load is None:
        raise BadInput(f"{element.where}: function {named!r} is Python, which is not loaded here")
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
        raise BadInput(f"{element.where}: cost is {cost!r} instead of microseconds or the name of a column") from None
