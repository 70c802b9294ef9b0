"""Recent views before a checkout."""

from collections import deque
from collections.abc import Sequence

import numpy as np

from adapt.core.atomics import load, store
from adapt.core.compiled import AtAddress
from adapt.core.ordered.chain.bound import CODES, BoundOperator, Words
from adapt.core.ordered.chain.roles import TIME
from adapt.core.ordered.functions.function import OWN, SIGNATURE, STATE, STRIDE, Function, Row, Step
from adapt.core.ordered.functions.stateless import DAY_US

VIEWS, LONGEST_US = 5, 10 * DAY_US

_VIEW, _CHECKOUT = CODES["page"].index("view"), CODES["page"].index("checkout")
_SEEN, _FIRST_VIEW, _KEY_WORDS = 0, 1, 1 + 2 * VIEWS
"""State of a key: its views so far, then time and item of the latest ones, as a ring."""


def _recent_views(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001 (one state per key is enough)
    views = load(words, STATE) + 8 * _KEY_WORDS * load(given, load(words, OWN))
    time, page, seen = load(given, load(words, OWN + 1)), load(given, load(words, OWN + 3)), load(views, _SEEN)
    if page == _VIEW:
        store(views, _FIRST_VIEW + 2 * (seen % VIEWS), time)
        store(views, _FIRST_VIEW + 2 * (seen % VIEWS) + 1, load(given, load(words, OWN + 2)))
        store(views, _SEEN, seen + 1)
    if page != _CHECKOUT:
        return 0
    count = 0
    for view in range(max(seen - VIEWS, 0), seen):
        at = _FIRST_VIEW + 2 * (view % VIEWS)
        if time - load(views, at) <= LONGEST_US:
            store(outputs, 0, load(views, at + 1))
            store(outputs, 1, 1)
            outputs += load(words, STRIDE)
            count += 1
    return int(count)


class RecentViews(Function):
    """At a checkout, the last five views of the key.

    At most ten days old, the oldest first. Clicks on other pages are ignored.
    """

    compiled = AtAddress(SIGNATURE, _recent_views)

    def most(self, bound: BoundOperator) -> int:  # noqa: ARG002 (whatever the operator)
        """Five."""
        return VIEWS

    def step(self, bound: BoundOperator) -> Step:
        """The plain-Python step."""
        key_at, time_at, item_at, page_at = self.words(bound)
        views: dict[int, deque[tuple[int, int]]] = {}

        def step(row: Row) -> Sequence[Row]:
            seen = views.setdefault(row[key_at], deque(maxlen=VIEWS))
            if row[page_at] == _VIEW:
                seen.append((row[time_at], row[item_at]))
            if row[page_at] != _CHECKOUT:
                return ()
            return [(item, 1) for time, item in seen if row[time_at] - time <= LONGEST_US]

        return step

    def words(self, bound: BoundOperator) -> tuple[int, ...]:
        """Places of key, time, item and page."""
        return bound.key_at, *(bound.fields.index(name) for name in (TIME, "item", "page"))

    def state(self, bound: BoundOperator) -> Words:
        """One record per key."""
        return np.zeros(bound.keys * _KEY_WORDS, np.int64)
