"""Chains over our own retail streams: clicks of users in a shop on the web, and lines of tickets in shops.

The streams are those of the generators `clicks` and `sales`; any other with the columns that a chain reads will do.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from adapt.core.ordered.chain.chain import Chain
from adapt.core.ordered.chain.chain_file import read_chain
from adapt.core.ordered.functions.baskets import PAIR
from adapt.core.ordered.functions.stateless import HOUR_US

Answer = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Preset:
    """A chain that is called by its name.

    Attributes:
        about: The question that it answers.
        stream: The generator that makes streams with its columns.
        text: The chain, as a user would write it.
        columns: What a row of the answer says.
        answer: The answer from the words of the tuples that leave it, each from -2^63 to below 2^64, in their order.
    """

    about: str
    stream: str
    text: str
    columns: tuple[str, ...]
    answer: Callable[[Iterable[Sequence[int]]], Answer]

    @property
    def chain(self) -> Chain:
        """The chain."""
        return read_chain(self.text)


def _pairs_by_hour(rows: Iterable[Sequence[int]]) -> Answer:
    return tuple((end // HOUR_US - 1, *divmod(pair, PAIR), count) for end, pair, count in rows)


def _pairs(rows: Iterable[Sequence[int]]) -> Answer:
    return tuple((*divmod(pair, PAIR), count) for _, pair, count in rows)


def _items(rows: Iterable[Sequence[int]]) -> Answer:
    """The highest of those that the partitions gave."""
    ranked = sorted((-count, item) for _, item, count in rows)
    return tuple((item, -negated) for negated, item in ranked[:30])


def _signed(rows: Iterable[Sequence[int]]) -> Answer:
    return tuple(tuple(word - (1 << 64) if word >= 1 << 63 else word for word in row) for row in rows)


_Q1 = """\
[punctuations]
every = "1h"

[[operator]]
name = "hours"
kind = "stateless"
function = "hour"

[[operator]]
name = "baskets"
kind = "partitioned"
key = "key"
partitions = 64
function = "basket-pairs"

[[operator]]
name = "counts"
kind = "partitioned"
key = "counted"
partitions = 64
function = "window-top-100"

[[operator]]
name = "top"
kind = "stateful"
function = "window-top-100"
"""

_Q2 = """\
[punctuations]
every = "1h"

[[operator]]
name = "no searches"
kind = "stateless"
function = "not-searches"

[[operator]]
name = "sessions"
kind = "partitioned"
key = "key"
partitions = 64
function = "session-items"

[[operator]]
name = "pairs"
kind = "stateless"
function = "item-pairs"

[[operator]]
name = "counts"
kind = "partitioned"
key = "counted"
partitions = 64
function = "final-top-30"

[[operator]]
name = "top"
kind = "stateful"
function = "final-top-30"
"""

_Q3 = """\
[punctuations]

[[operator]]
name = "views and checkouts"
kind = "stateless"
function = "views-and-checkouts"

[[operator]]
name = "last views"
kind = "partitioned"
key = "key"
partitions = 64
function = "recent-views"

[[operator]]
name = "top"
kind = "partitioned"
key = "counted"
partitions = 64
function = "final-top-30"
"""

_Q4 = """\
[punctuations]
every = "1h"

[[operator]]
name = "project"
kind = "stateless"
function = "project"

[[operator]]
name = "sessions"
kind = "partitioned"
key = "key"
partitions = 64
function = "session-pages"

[[operator]]
name = "abandoned"
kind = "stateless"
function = "abandoned-carts"

[[operator]]
name = "mean"
kind = "stateful"
function = "mean-pages"
"""

_Q15 = """\
[punctuations]

[[operator]]
name = "project"
kind = "stateless"
function = "project"

[[operator]]
name = "revenue"
kind = "stateless"
function = "day-revenue"

[[operator]]
name = "slopes"
kind = "partitioned"
key = "category"
partitions = 10
by = "range"
function = "falling-revenue"
"""

PRESETS: Mapping[str, Preset] = {
    "retail-q1": Preset(
        "which hundred pairs of items were on most tickets, by hour",
        "sales",
        _Q1,
        ("hour", "item", "other", "tickets"),
        _pairs_by_hour,
    ),
    "retail-q2": Preset(
        "which thirty pairs of items were looked at in most sessions",
        "clicks",
        _Q2,
        ("item", "other", "sessions"),
        _pairs,
    ),
    "retail-q3": Preset(
        "which thirty items were most often among the last views before a checkout",
        "clicks",
        _Q3,
        ("item", "views"),
        _items,
    ),
    "retail-q4": Preset(
        "how many pages sessions have in which a cart is filled and left", "clicks", _Q4, ("pages", "sessions"), _signed
    ),
    "retail-q15": Preset(
        "which categories earn less from day to day", "sales", _Q15, ("category", "rise", "spread"), _signed
    ),
}
"""Every preset by its name. Source: ordered streams, Table 1; keys, windows and outputs are ours."""
