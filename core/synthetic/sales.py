"""Lines of shop tickets, in categories that rise or fall."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.counting.zipf import zipf_shares
from adapt.core.synthetic.popularity import ZipfKeys

Ints = NDArray[np.int64]

CATEGORIES, STORES = 10, 50

_MOST_LINES, _MOST_PIECES = 8, 5
_LEAST_CENTS, _MOST_CENTS = 99, 9999
_LEAST_TREND, _MOST_TREND = 0.3, 0.8


@dataclass(frozen=True, slots=True, eq=False)
class Shop:
    """Constants of a stream of sales."""

    items: ZipfKeys  # popularity of the items; the item of rank k belongs to category k modulo 10
    # trend of each category, whose sales go from 1 - trend at the start to 1 + trend at the end, relative to their
    # mean; shape (10,). Positive and negative trends cancel out
    trends: Floats
    cents: Ints  # price of each item by rank, with rank 0 unused; shape (items + 1,)


def draw_shop(random: np.random.Generator, items: ZipfKeys) -> Shop:
    """Draw a shop with five rising and five falling categories.

    With few items, some categories are empty.
    """
    trends = random.uniform(_LEAST_TREND, _MOST_TREND, CATEGORIES)
    falling = random.permutation(CATEGORIES) < CATEGORIES // 2
    shares = np.bincount(
        np.arange(1, items.domain + 1) % CATEGORIES,
        weights=zipf_shares(items.domain, items.exponent),
        minlength=CATEGORIES,
    )
    up, down = (float((trends * shares)[chosen].sum()) for chosen in (~falling, falling))
    # The larger side is scaled down to the other, so that total sales neither rise nor fall.
    trends[~falling] *= min(down / up, 1.0) if up else 0.0
    trends[falling] *= -(min(up / down, 1.0) if down else 0.0)
    return Shop(items, trends, random.integers(_LEAST_CENTS, _MOST_CENTS + 1, items.domain + 1))


@dataclass(frozen=True, slots=True, eq=False)
class Sales:
    """Lines of tickets in time order; each attribute of shape (lines,).

    Lines of one ticket share its time and are adjacent.
    """

    times_us: Ints  # microseconds, sorted
    tickets: Ints  # number of the ticket, from 0
    stores: Ints  # number of the store, from 1
    items: Ints  # item, by rank from 1
    categories: Ints  # category, 0 to 9
    cents: Ints  # price of one piece
    pieces: Ints  # number of pieces, 1 to 5


def draw_sales(
    random: np.random.Generator, count: int, shop: Shop, begun_us: int, ended_us: int, stream_us: int
) -> Sales:
    """Draw lines of tickets that are uniform over a span of time.

    A ticket has 1 to 8 lines, of which about half are kept: more in categories that sell well at the time.

    Args:
        begun_us, ended_us: The span, relative to the start of the stream.
    """
    parts: list[tuple[Ints, ...]] = []
    lines = tickets = 0
    while lines < count:
        more = (count - lines) * 4 // (_MOST_LINES + 1) + 16
        part = _kept_lines(random, more, shop, begun_us, ended_us, stream_us)
        parts.append((part[0], part[1] + tickets, *part[2:]))
        lines, tickets = lines + len(part[0]), tickets + more
    times_us, of, stores, items = (np.concatenate(columns)[:count] for columns in zip(*parts, strict=True))
    order = np.lexsort((of, times_us))
    times_us, of, stores, items = times_us[order], of[order], stores[order], items[order]
    pieces = 1 + (random.random(count) ** 2 * _MOST_PIECES).astype(np.int64)
    return Sales(times_us, of, stores, items, items % CATEGORIES, shop.cents[items], pieces)


def _kept_lines(
    random: np.random.Generator, tickets: int, shop: Shop, begun_us: int, ended_us: int, stream_us: int
) -> tuple[Ints, ...]:
    """Time, ticket, store and item of the kept lines of these tickets."""
    lines_of = random.integers(1, _MOST_LINES + 1, tickets)
    ticket = np.repeat(np.arange(tickets), lines_of)
    times_us = begun_us + (random.random(tickets) * (ended_us - begun_us)).astype(np.int64)
    stores = random.integers(1, STORES + 1, tickets)
    items = shop.items.ranks(random.random(len(ticket)))
    along = 2.0 * times_us / max(stream_us, 1) - 1.0
    likely = (1.0 + shop.trends[items % CATEGORIES] * along[ticket]) / 2.0
    kept = random.random(len(ticket)) < likely
    return times_us[ticket[kept]], ticket[kept], stores[ticket[kept]], items[kept]
