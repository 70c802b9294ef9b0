"""Chains over our own retail streams: clicks of users in a shop on the web, and lines of tickets in shops.

The streams are those of the generators `clicks` and `sales`; their columns are what the functions of the chains read.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from adapt.core.errors import BadInput, did_you_mean
from adapt.core.ordered.chain import Chain, Operator, Punctuations
from adapt.core.ordered.functions.baskets import PAIR
from adapt.core.ordered.functions.stateless import HOUR_US
from adapt.core.ordered.names import FunctionName, OperatorKind, PartitionBy
from adapt.core.ordered.roles import COUNTED

Answer = tuple[tuple[int, ...], ...]

_PARTITIONS = 64
_CATEGORIES = 10
_HOURLY = Punctuations(every_us=HOUR_US)
_AT_THE_END = Punctuations()


@dataclass(frozen=True, slots=True)
class Preset:
    """A chain that is called by its name.

    Attributes:
        about: The question that it answers.
        stream: The generator that makes streams with its columns.
        chain: It.
        columns: What a row of the answer says.
        answer: The answer from the words of the tuples that leave it, each from -2^63 to below 2^64, in their order.
    """

    about: str
    stream: str
    chain: Chain
    columns: tuple[str, ...]
    answer: Callable[[Iterable[Sequence[int]]], Answer]


def _stateless(name: str, function: FunctionName) -> Operator:
    return Operator(name, OperatorKind.STATELESS, function=function)


def _partitioned(name: str, function: FunctionName, key: str = "key") -> Operator:
    return Operator(name, OperatorKind.PARTITIONED, key, _PARTITIONS, function=function)


def _stateful(name: str, function: FunctionName) -> Operator:
    return Operator(name, OperatorKind.STATEFUL, function=function)


_BY_CATEGORY = Operator(
    "slopes",
    OperatorKind.PARTITIONED,
    "category",
    _CATEGORIES,
    PartitionBy.RANGE,
    function=FunctionName.FALLING_REVENUE,
)


def _pairs_by_hour(rows: Iterable[Sequence[int]]) -> Answer:
    return tuple((end // HOUR_US - 1, *divmod(pair, PAIR), count) for end, pair, count in rows)


def _pairs(rows: Iterable[Sequence[int]]) -> Answer:
    return tuple((*divmod(pair, PAIR), count) for _, pair, count in rows)


def _items(rows: Iterable[Sequence[int]]) -> Answer:
    """The highest of those that the partitions gave."""
    ranked = sorted((-count, item) for _, item, count in rows)
    return tuple((item, -negated) for negated, item in ranked[:30])


def _plain(rows: Iterable[Sequence[int]]) -> Answer:
    return tuple(tuple(_signed(word) for word in row) for row in rows)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >= 1 << 63 else word


PRESETS: Mapping[str, Preset] = {
    "retail-q1": Preset(
        "which hundred pairs of items were on most tickets, by hour",
        "sales",
        Chain(
            (
                _stateless("hours", FunctionName.HOUR),
                _partitioned("baskets", FunctionName.BASKET_PAIRS),
                _partitioned("counts", FunctionName.WINDOW_TOP_100, COUNTED),
                _stateful("top", FunctionName.WINDOW_TOP_100),
            ),
            _HOURLY,
        ),
        ("hour", "item", "other", "tickets"),
        _pairs_by_hour,
    ),
    "retail-q2": Preset(
        "which thirty pairs of items were looked at in most sessions",
        "clicks",
        Chain(
            (
                _stateless("no searches", FunctionName.NOT_SEARCHES),
                _partitioned("sessions", FunctionName.SESSION_ITEMS),
                _stateless("pairs", FunctionName.ITEM_PAIRS),
                _partitioned("counts", FunctionName.FINAL_TOP_30, COUNTED),
                _stateful("top", FunctionName.FINAL_TOP_30),
            ),
            _HOURLY,
        ),
        ("item", "other", "sessions"),
        _pairs,
    ),
    "retail-q3": Preset(
        "which thirty items were most often among the last views before a checkout",
        "clicks",
        Chain(
            (
                _stateless("views and checkouts", FunctionName.VIEWS_AND_CHECKOUTS),
                _partitioned("last views", FunctionName.RECENT_VIEWS),
                _partitioned("top", FunctionName.FINAL_TOP_30, COUNTED),
            ),
            _AT_THE_END,
        ),
        ("item", "views"),
        _items,
    ),
    "retail-q4": Preset(
        "how many pages sessions have in which a cart is filled and left",
        "clicks",
        Chain(
            (
                _stateless("project", FunctionName.PROJECT),
                _partitioned("sessions", FunctionName.SESSION_PAGES),
                _stateless("abandoned", FunctionName.ABANDONED_CARTS),
                _stateful("mean", FunctionName.MEAN_PAGES),
            ),
            _HOURLY,
        ),
        ("pages", "sessions"),
        _plain,
    ),
    "retail-q15": Preset(
        "which categories earn less from day to day",
        "sales",
        Chain(
            (
                _stateless("project", FunctionName.PROJECT),
                _stateless("revenue", FunctionName.DAY_REVENUE),
                _BY_CATEGORY,
            ),
            _AT_THE_END,
        ),
        ("category", "rise", "spread"),
        _plain,
    ),
}
"""Every preset by its name. Source: ordered streams, Table 1; keys, windows and outputs are ours."""


def preset_chain(name: str) -> Chain:
    """The chain of a preset.

    Raises:
        BadInput: there is none of this name.
    """
    if name not in PRESETS:
        raise BadInput(f"there is no chain {name!r}{did_you_mean(name, PRESETS)}; there are {', '.join(PRESETS)}")
    return PRESETS[name].chain
