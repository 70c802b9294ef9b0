"""Clicks of web-shop users, in sessions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.synthetic.popularity import ZipfKeys

Ints = NDArray[np.int64]

VIEW, CART, CHECKOUT, SEARCH = range(4)
PAGES = ("view", "cart", "checkout", "search")
"""Names of the page kinds, by number."""

_STOP, _CART_SHARE, _SEARCH_SHARE, _CHECKOUT_SHARE = 0.18, 0.12, 0.18, 0.4
"""Probability that a session ends after a page; shares of pages; share of sessions with a cart that check out."""
_GAP_S, _GAP_SPREAD, _LONGEST_GAP_S = 25.0, 1.2, 3000.0
"""Pause between pages: median, standard deviation of its logarithm, and maximum."""


@dataclass(frozen=True, slots=True, eq=False)
class Clicks:
    """Clicks in time order; each attribute of shape (clicks,)."""

    times_us: Ints  # microseconds, sorted
    users: Ints  # user, by rank from 1
    items: Ints  # item, by rank from 1; searches have one too
    pages: Ints  # `VIEW`, `CART`, `CHECKOUT` or `SEARCH`
    sessions: Ints  # number of the session, from 0: the ground truth for a chain that finds sessions from the times


def draw_clicks(
    random: np.random.Generator, count: int, users: ZipfKeys, items: ZipfKeys, begun_us: int, ended_us: int
) -> Clicks:
    """Draw the clicks of sessions that lie within a time span.

    A session has 1 + a geometric number of pages, log-normal pauses between them, one user, and one item per page. The
    last clicks of a session longer than the span fall on its end.
    """
    pages_of = _session_sizes(random, count)
    session = np.repeat(np.arange(len(pages_of)), pages_of)
    first = np.cumsum(pages_of) - pages_of
    gaps = np.minimum(random.lognormal(np.log(_GAP_S), _GAP_SPREAD, count), _LONGEST_GAP_S)
    gaps[first] = 0.0
    into_us = np.cumsum(gaps * 1e6).astype(np.int64)
    into_us -= into_us[first][session]
    last = first + pages_of - 1
    room_us = np.maximum(ended_us - begun_us - into_us[last], 0)
    starts_us = begun_us + (random.random(len(pages_of)) * room_us).astype(np.int64)
    times_us = np.minimum(starts_us[session] + into_us, max(ended_us - 1, begun_us))
    of_session = users.ranks(random.random(len(pages_of)))
    pages = _pages(random, session, last)
    order = np.argsort(times_us, kind="stable")
    return Clicks(
        times_us[order], of_session[session[order]], items.ranks(random.random(count)), pages[order], session[order]
    )


def _session_sizes(random: np.random.Generator, count: int) -> Ints:
    """Pages per session, which add up to this count; the last session is cut."""
    sizes = np.zeros(0, np.int64)
    while sizes.sum() < count:
        more = int((count - sizes.sum()) * _STOP) + 16
        sizes = np.append(sizes, 1 + random.geometric(_STOP, more))
    ends = np.cumsum(sizes)
    sessions = int(np.searchsorted(ends, count)) + 1
    sizes = sizes[:sessions]
    sizes[-1] -= ends[sessions - 1] - count
    return np.asarray(sizes, np.int64)


def _pages(random: np.random.Generator, session: Ints, last: Ints) -> Ints:
    """Kind of each page; some sessions with a cart end at the checkout."""
    drawn = random.random(len(session))
    pages = np.where(drawn < _CART_SHARE, CART, np.where(drawn < _CART_SHARE + _SEARCH_SHARE, SEARCH, VIEW))
    carts = pages == CART
    carts[last] = False
    filled = np.bincount(session[carts], minlength=len(last)) > 0
    bought = filled & (random.random(len(last)) < _CHECKOUT_SHARE)
    pages[last[bought]] = CHECKOUT
    return np.asarray(pages, np.int64)
