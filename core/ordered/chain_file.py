"""A chain as a user writes it: TOML text, an [[operator]] for each in the order in which tuples pass them."""

import tomllib
from collections.abc import Mapping
from typing import Any

from adapt.core.errors import BadInput
from adapt.core.ordered.chain import Chain, Operator
from adapt.core.ordered.names import FunctionName, OperatorKind, PartitionBy
from adapt.core.toml_elements import Element, called, elements, number_of, only

_KNOWN = ("name", "kind", "key", "partitions", "by", "cost", "selectivity", "function")


def read_chain(text: str) -> Chain:
    """A chain from the text of its file.

    Raises:
        BadInput: the text is no TOML, or an element is not what it may be; the message names the element.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"the chain is not written as TOML: {error}") from None
    only("the chain", document, ("operator",))
    return Chain(tuple(_operator(element) for element in elements(document, "operator")))


def _operator(fields: Mapping[str, Any]) -> Operator:
    element = Element(called("operator", fields), fields, _KNOWN)
    return Operator(
        name=element.text("name"),
        kind=element.choice("kind", OperatorKind),
        key=element.text_or_none("key"),
        partitions=None if element.get("partitions") is None else element.whole("partitions", 1),
        by=element.choice("by", PartitionBy, PartitionBy.HASH),
        cost=_cost(element),
        selectivity=element.number("selectivity", 1.0),
        function=element.choice("function", FunctionName, FunctionName.WORK),
    )


def _cost(element: Element) -> float | str:
    cost = element.get("cost")
    if cost is None or isinstance(cost, str):
        return 0.0 if cost is None else cost
    try:
        return number_of(element.where, "cost", cost)
    except BadInput:
        raise BadInput(f"{element.where}: cost is {cost!r} instead of microseconds or the name of a column") from None
