"""Call data records of mobile phones, of which some are cloned."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.synthetic.popularity import ZipfKeys

Ints = NDArray[np.int64]

SIDE_M, AREAS = 1_000_000, 10
"""Side of the square in which phones live, and area codes: stripes of equal width by the home of a phone."""

CLONED_SHARE = 0.005
"""Share of phones whose number is also used by a second phone, with a home of its own."""

_LONGEST_WAY_M, _DAY_US = 20_000.0, 86_400_000_000
_MEAN_CALL_S = 120.0


@dataclass(frozen=True, slots=True, eq=False)
class Phones:
    """Constants of a stream of calls.

    A phone circles around its home once a day, at most 20 km away, so that it moves by at most 5.3 km/h.
    """

    popularity: ZipfKeys  # popularity of the phones, by rank from 1
    homes_m: Floats  # home of each phone, and that of its clone; shape (2, phones + 1, 2)
    ways_m: Floats  # distance from home; shape (phones + 1,)
    turns: Floats  # where on its circle each phone is at midnight, from 0 to 1; shape (phones + 1,)
    cloned: NDArray[np.bool_]  # whether a phone has a clone; shape (phones + 1,)

    def places_m(self, phones: Ints, second: NDArray[np.bool_], times_us: Ints) -> Ints:
        """Where phones are, or their clones if `second`; shape (phones, 2)."""
        angles = 2 * np.pi * (self.turns[phones] + times_us % _DAY_US / _DAY_US)
        around = self.ways_m[phones, np.newaxis] * np.column_stack((np.cos(angles), np.sin(angles)))
        placed: Ints = np.rint(self.homes_m[second.astype(np.int64), phones] + around).astype(np.int64)
        return placed

    def areas(self, phones: Ints) -> Ints:
        """The area code of each phone."""
        codes: Ints = (self.homes_m[0, phones, 0] * AREAS / SIDE_M).astype(np.int64)
        return codes


def draw_phones(random: np.random.Generator, popularity: ZipfKeys) -> Phones:
    """Draw homes, ways and clones of all phones."""
    count = popularity.domain + 1
    return Phones(
        popularity,
        random.random((2, count, 2)) * SIDE_M,
        random.random(count) * _LONGEST_WAY_M,
        random.random(count),
        random.random(count) < CLONED_SHARE,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Calls in time order.

    Each attribute has shape (calls,), places (calls, 2).
    """

    times_us: Ints  # microseconds, sorted
    callers: Ints  # callers, callees: phones, by rank from 1; never the same
    callees: Ints
    areas: Ints  # area code of the caller, 0 to 9
    seconds: Ints  # duration of the call, 1 or more
    caller_m: Ints  # caller_m, callee_m: where both are, in meters from a corner
    callee_m: Ints


def draw_calls(random: np.random.Generator, count: int, phones: Phones, begun_us: int, ended_us: int) -> Calls:
    """Draw calls that are uniform over a span of time.

    Half of the calls with the number of a cloned phone are made or answered by the clone.
    """
    times_us = begun_us + np.sort((random.random(count) * (ended_us - begun_us)).astype(np.int64))
    callers, callees = (phones.popularity.ranks(random.random(count)) for _ in range(2))
    callees = np.where(callees == callers, callees % phones.popularity.domain + 1, callees)
    caller_m, callee_m = (
        phones.places_m(these, phones.cloned[these] & (random.random(count) < 0.5), times_us)
        for these in (callers, callees)
    )
    seconds = 1 + random.exponential(_MEAN_CALL_S, count).astype(np.int64)
    return Calls(times_us, callers, callees, phones.areas(callers), seconds, caller_m, callee_m)
