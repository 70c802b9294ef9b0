"""Fields that each operator function reads and makes."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from adapt.core.ordered.chain.names import FunctionName, OperatorKind
from adapt.core.ordered.chain.own import Gives, OwnFunction

VALUE = "value"
"""The field that operators change; at the ingress, the row number."""

COUNTED = "counted"
"""The field that the `top` functions count by."""

TIME = "ts"


class Passes(StrEnum):
    """Treatment of the fields that a function does not make."""

    ALL = "all"
    """The outputs have all fields of the inputs."""
    NEEDED = "needed"
    """The outputs keep the fields that a later operator reads."""
    NONE = "none"
    """The outputs have only the fields that the function makes."""


@dataclass(frozen=True, slots=True)
class Role:
    """Interface of a function to the rest of a chain."""

    kinds: frozenset[OperatorKind]  # kinds of operators that can run it
    # fields read, in addition to the key; those that no earlier operator makes are columns of the trace
    reads: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()  # fields made
    passes: Passes = Passes.NONE  # treatment of the other fields
    at_punctuations: bool = False  # whether some outputs come at punctuations only
    made_key: bool = False  # whether its key is `COUNTED`, made in the chain


_STATELESS = frozenset({OperatorKind.STATELESS})
_PARTITIONED = frozenset({OperatorKind.PARTITIONED})
_STATEFUL = frozenset({OperatorKind.STATEFUL})

CHUNK = 8
"""Fields of a chunk of items."""

CHUNKED = tuple(f"items {number}" for number in range(CHUNK))
"""Two items per word, each plus 1, 0 for no item: the words of the first chunk, then those of the second."""

_TOP = Role(_PARTITIONED | _STATEFUL, (COUNTED, VALUE), ("window", COUNTED, VALUE), at_punctuations=True, made_key=True)

_OF_VALUES = Role(frozenset(OperatorKind), (VALUE,), (VALUE,), Passes.ALL)

ROLES: Mapping[FunctionName, Role] = {
    FunctionName.WORK: _OF_VALUES,
    FunctionName.COUNT: Role(_PARTITIONED, (VALUE,), (VALUE,), Passes.ALL),
    FunctionName.PROJECT: Role(_STATELESS, passes=Passes.NEEDED),
    FunctionName.NOT_SEARCHES: Role(_STATELESS, ("page",), passes=Passes.NEEDED),
    FunctionName.VIEWS_AND_CHECKOUTS: Role(_STATELESS, ("page",), passes=Passes.NEEDED),
    FunctionName.ABANDONED_CARTS: Role(_STATELESS, ("kinds",), passes=Passes.NEEDED),
    FunctionName.HOUR: Role(_STATELESS, (TIME,), ("hour",), Passes.NEEDED),
    FunctionName.DAY_REVENUE: Role(_STATELESS, (TIME, "cents", "qty"), ("day", "revenue"), Passes.NEEDED),
    FunctionName.BASKET_PAIRS: Role(_PARTITIONED, ("item", "hour"), (COUNTED, VALUE)),
    FunctionName.SESSION_ITEMS: Role(_PARTITIONED, (TIME, "item"), (*CHUNKED, "within"), at_punctuations=True),
    FunctionName.ITEM_PAIRS: Role(_STATELESS, (*CHUNKED, "within"), (COUNTED, VALUE)),
    FunctionName.SESSION_PAGES: Role(_PARTITIONED, (TIME, "page"), ("pages", "kinds"), at_punctuations=True),
    FunctionName.MEAN_PAGES: Role(_STATEFUL, ("pages",), ("pages", "sessions"), at_punctuations=True),
    FunctionName.RECENT_VIEWS: Role(_PARTITIONED, (TIME, "item", "page"), (COUNTED, VALUE)),
    FunctionName.WINDOW_TOP_100: _TOP,
    FunctionName.FINAL_TOP_30: _TOP,
    FunctionName.FALLING_REVENUE: Role(
        _PARTITIONED, ("category", "day", "revenue"), ("category", "rise", "spread"), at_punctuations=True
    ),
}


def role_of(function: FunctionName | OwnFunction) -> Role:
    """Role of a built-in or an own function."""
    if isinstance(function, FunctionName):
        return ROLES[function]
    return Role(
        _PARTITIONED | _STATEFUL if function.keeps_state else _STATELESS,
        tuple(name for name, _ in function.parameters),
        tuple(name for name, _ in function.outputs),
        Passes.ALL if function.gives is Gives.FILTER else Passes.NONE,
        at_punctuations=function.close is not None,
    )
