"""Chains over the generated streams `calls`, `clicks` and `sales`.

Any other trace with the columns that a chain reads will do.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

from adapt.core.ordered.chain.chain import Chain, read_chain
from adapt.core.ordered.chain.own import OwnFunction, own_function
from adapt.core.ordered.functions.sales import HOUR_US, PAIR
from adapt.core.ordered.presets import fraud

Answer = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Preset:
    """A chain available by name."""

    about: str  # the question it answers
    stream: str  # the generator of streams with its columns
    text: str  # the chain in TOML
    columns: tuple[str, ...]  # column names of the answer
    # turns the output tuples, words from -2^63 to below 2^64, into the answer
    answer: Callable[[Iterable[Sequence[int]]], Answer]

    @property
    def chain(self) -> Chain:
        """The parsed chain."""
        return read_chain(self.text, _loaded)


def _loaded(name: str) -> OwnFunction:
    module, _, call = name.partition(":")
    return own_function(name, getattr(import_module(module), call))


def _pairs_by_hour(rows: Iterable[Sequence[int]]) -> Answer:
    return tuple((end // HOUR_US - 1, *divmod(pair, PAIR), count) for end, pair, count in rows)


def _pairs(rows: Iterable[Sequence[int]]) -> Answer:
    return tuple((*divmod(pair, PAIR), count) for _, pair, count in rows)


def _items(rows: Iterable[Sequence[int]]) -> Answer:
    """The overall top k of the partitions' results."""
    ranked = sorted((-count, item) for _, item, count in rows)
    return tuple((item, -negated) for negated, item in ranked[:30])


def _signed(rows: Iterable[Sequence[int]]) -> Answer:
    return tuple(tuple(word - (1 << 64) if word >= 1 << 63 else word for word in row) for row in rows)


def _written(every: str, *operators: tuple[str, str, str, str]) -> str:
    """TOML of a chain: the line of its punctuations; name, kind, key lines and function of each operator."""
    texts = (
        f'[[operator]]\nname = "{name}"\nkind = "{kind}"\n{key}function = "{function}"\n'
        for name, kind, key, function in operators
    )
    return "\n".join((f"[punctuations]\n{every}", *texts))


_HOURLY = 'every = "1h"\n'
_BY_KEY = 'key = "key"\npartitions = 64\n'
_BY_COUNTED = 'key = "counted"\npartitions = 64\n'
_BY_PHONE = 'key = "phone"\npartitions = 64\n'
_BY_RANGE = 'key = "category"\npartitions = 10\nby = "range"\n'

PRESETS: Mapping[str, Preset] = {
    "fraud": Preset(
        "how many phones of an area moved faster than 300 km/h, by hour",
        "calls",
        _written(
            _HOURLY,
            ("area", "stateless", "", f"{fraud.__name__}:in_area"),
            ("locations", "stateless", "", f"{fraud.__name__}:locations"),
            ("speed", "partitioned", _BY_PHONE, f"{fraud.__name__}:Speed"),
            ("too fast", "stateless", "", f"{fraud.__name__}:too_fast"),
            ("count", "stateful", "", f"{fraud.__name__}:Moves"),
        ),
        ("hour", "moves", "fastest"),
        _signed,
    ),
    "retail-q1": Preset(
        "which hundred pairs of items were on the most tickets, by hour",
        "sales",
        _written(
            _HOURLY,
            ("hours", "stateless", "", "hour"),
            ("baskets", "partitioned", _BY_KEY, "basket-pairs"),
            ("counts", "partitioned", _BY_COUNTED, "window-top-100"),
            ("top", "stateful", "", "window-top-100"),
        ),
        ("hour", "item", "other", "tickets"),
        _pairs_by_hour,
    ),
    "retail-q2": Preset(
        "which thirty pairs of items were viewed in the most sessions",
        "clicks",
        _written(
            _HOURLY,
            ("no searches", "stateless", "", "not-searches"),
            ("sessions", "partitioned", _BY_KEY, "session-items"),
            ("pairs", "stateless", "", "item-pairs"),
            ("counts", "partitioned", _BY_COUNTED, "final-top-30"),
            ("top", "stateful", "", "final-top-30"),
        ),
        ("item", "other", "sessions"),
        _pairs,
    ),
    "retail-q3": Preset(
        "which thirty items were most often viewed shortly before a checkout",
        "clicks",
        _written(
            "",
            ("views and checkouts", "stateless", "", "views-and-checkouts"),
            ("last views", "partitioned", _BY_KEY, "recent-views"),
            ("top", "partitioned", _BY_COUNTED, "final-top-30"),
        ),
        ("item", "views"),
        _items,
    ),
    "retail-q4": Preset(
        "how many pages sessions with an abandoned cart have",
        "clicks",
        _written(
            _HOURLY,
            ("project", "stateless", "", "project"),
            ("sessions", "partitioned", _BY_KEY, "session-pages"),
            ("abandoned", "stateless", "", "abandoned-carts"),
            ("mean", "stateful", "", "mean-pages"),
        ),
        ("pages", "sessions"),
        _signed,
    ),
    "retail-q15": Preset(
        "which categories have falling daily revenue",
        "sales",
        _written(
            "",
            ("project", "stateless", "", "project"),
            ("revenue", "stateless", "", "day-revenue"),
            ("slopes", "partitioned", _BY_RANGE, "falling-revenue"),
        ),
        ("category", "rise", "spread"),
        _signed,
    ),
}
"""Every such chain by name.

Source: ordered streams, Figure 1 and Table 1; keys, windows and outputs are ours.
"""
