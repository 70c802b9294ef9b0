"""Stateless functions: filters, projections and derived fields."""

from collections.abc import Iterable
from dataclasses import dataclass

from adapt.core.atomics import load, store
from adapt.core.compiled import AtAddress, inlined
from adapt.core.ordered.chain.bound import CODES, BoundOperator
from adapt.core.ordered.chain.chain import TIME
from adapt.core.ordered.chain.mixing import MASK
from adapt.core.ordered.functions.function import OWN, SIGNATURE, Function, Row, Step

HOUR_US, DAY_US = 3_600_000_000, 86_400_000_000

_VIEW, _CART, _CHECKOUT, _SEARCH = range(len(CODES["page"]))


def _places(bound: BoundOperator, *made: str) -> tuple[int, ...]:
    """Place of each output field in the inputs; -1, -2 and so on for derived fields."""
    return tuple(-1 - made.index(name) if name in made else bound.fields.index(name) for name in bound.gives)


@inlined
def _copied(places: int, count: int, given: int, outputs: int, first: int, second: int) -> None:
    """Write an output: the fields at these places, and the derived ones."""
    for field in range(count):
        place = load(places, field)
        word = first if place == -1 else second
        if place >= 0:
            word = load(given, place)
        store(outputs, field, word)


def _pick(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001 (no state; so below)
    at = load(words, OWN)
    if at >= 0:
        word = load(given, at)
        if word < 0 or word > 63 or not (load(words, OWN + 1) >> word) & 1:
            return 0
    _copied(words + 8 * (OWN + 3), load(words, OWN + 2), given, outputs, 0, 0)
    return 1


def _hour(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001
    hour = load(given, load(words, OWN)) // HOUR_US
    _copied(words + 8 * (OWN + 2), load(words, OWN + 1), given, outputs, hour, 0)
    return 1


def _day_revenue(words: int, partition: int, given: int, outputs: int) -> int:  # noqa: ARG001
    day = load(given, load(words, OWN)) // DAY_US
    revenue = load(given, load(words, OWN + 1)) * load(given, load(words, OWN + 2))
    _copied(words + 8 * (OWN + 4), load(words, OWN + 3), given, outputs, day, revenue)
    return 1


@dataclass(frozen=True, slots=True)
class Pick(Function):
    """Filter by small values of a field, with a projection."""

    field: str | None = None  # the field; None passes every tuple
    allowed: frozenset[int] = frozenset()  # numbers from 0 to 63

    compiled = AtAddress(SIGNATURE, _pick)

    def step(self, bound: BoundOperator) -> Step:
        """The plain-Python step."""
        at, places = self._at(bound), _places(bound)

        def step(row: Row) -> list[Row]:
            return [tuple(row[place] for place in places)] if at < 0 or row[at] in self.allowed else []

        return step

    def words(self, bound: BoundOperator) -> tuple[int, ...]:
        """Places of the fields and the allowed values as bits."""
        places = _places(bound)
        return self._at(bound), sum(1 << word for word in self.allowed), len(places), *places

    def _at(self, bound: BoundOperator) -> int:
        return -1 if self.field is None else bound.fields.index(self.field)


def _having(kinds: Iterable[int], without: int) -> frozenset[int]:
    """Sets of page kinds, as bits, that contain these and lack another."""
    bits = sum(1 << kind for kind in kinds)
    return frozenset(held for held in range(1 << len(CODES["page"])) if held & bits == bits and not held >> without & 1)


PROJECT = Pick()
NOT_SEARCHES = Pick("page", frozenset({_VIEW, _CART, _CHECKOUT}))
VIEWS_AND_CHECKOUTS = Pick("page", frozenset({_VIEW, _CHECKOUT}))
ABANDONED_CARTS = Pick("kinds", _having([_CART], without=_CHECKOUT))


class Hour(Function):
    """Adds the hour of a tuple's time, counted from 1970."""

    compiled = AtAddress(SIGNATURE, _hour)

    def step(self, bound: BoundOperator) -> Step:
        """The plain-Python step."""
        at, places = bound.fields.index(TIME), _places(bound, "hour")

        def step(row: Row) -> list[Row]:
            return [tuple(row[place] if place >= 0 else row[at] // HOUR_US for place in places)]

        return step

    def words(self, bound: BoundOperator) -> tuple[int, ...]:
        """Places of the time and the fields; -1 for the hour."""
        places = _places(bound, "hour")
        return bound.fields.index(TIME), len(places), *places


class DayRevenue(Function):
    """Adds the day since 1970 and the revenue of a sale."""

    compiled = AtAddress(SIGNATURE, _day_revenue)

    def step(self, bound: BoundOperator) -> Step:
        """The plain-Python step."""
        time_at, cents_at, quantity_at = (bound.fields.index(name) for name in (TIME, "cents", "qty"))
        places = _places(bound, "day", "revenue")

        def step(row: Row) -> list[Row]:
            made = row[time_at] // DAY_US, row[cents_at] * row[quantity_at] & MASK
            return [tuple(row[place] if place >= 0 else made[-1 - place] for place in places)]

        return step

    def words(self, bound: BoundOperator) -> tuple[int, ...]:
        """Places of time, price, quantity and the fields.

        -1 for the day, -2 for the revenue.
        """
        places = _places(bound, "day", "revenue")
        return *(bound.fields.index(name) for name in (TIME, "cents", "qty")), len(places), *places
