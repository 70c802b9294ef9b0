"""Operators that find phones which move impossibly fast.

Their numbers are used by two phones.

Source: ordered streams, Figure 1. The area, the speed limit and the length of a window are ours.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

AREA = 3
FASTEST_KMH = 300.0
HOUR_US = 3_600_000_000


def in_area(area: int) -> bool:
    """Operator 1: calls of the area of interest."""
    return area == AREA


class Location(NamedTuple):
    """Where a phone is at a time."""

    phone: int
    ts: int
    x: int
    y: int


def locations(
    caller: int, callee: int, ts: int, caller_x: int, caller_y: int, callee_x: int, callee_y: int
) -> Iterator[Location]:
    """Operator 2: where both phones are."""
    yield Location(caller, ts, caller_x, caller_y)
    yield Location(callee, ts, callee_x, callee_y)


class Move(NamedTuple):
    """How fast a phone has moved since its last call."""

    phone: int
    ts: int
    kmh: float


class Speed:
    """Operator 3: the speed between two calls of a phone."""

    last_us: int = -1
    x: int
    y: int

    def step(self, phone: int, ts: int, x: int, y: int) -> Move | None:
        """The move from the call before; None for the first call."""
        before_us = self.last_us
        away_m = math.sqrt((x - self.x) * (x - self.x) + (y - self.y) * (y - self.y))
        self.last_us, self.x, self.y = ts, x, y
        return Move(phone, ts, 3.6e6 * away_m / max(ts - before_us, 1)) if before_us >= 0 else None


def too_fast(kmh: float) -> bool:
    """Operator 4: moves that no phone can make."""
    return kmh > FASTEST_KMH


class Window(NamedTuple):
    """Impossible moves in an hour, and the fastest phone.

    Hours count from 1970.
    """

    hour: int
    moves: int
    fastest: int


class Moves:
    """Operator 5: the number of such moves in each hour."""

    moves: int
    kmh: float
    fastest: int

    def step(self, phone: int, kmh: float) -> None:
        """Count a move."""
        self.moves += 1
        if kmh > self.kmh:
            self.kmh, self.fastest = kmh, phone

    def close(self, time: int) -> Window | None:
        """The count of the hour; None if there were none."""
        moves, fastest = self.moves, self.fastest
        self.moves = self.fastest = 0
        self.kmh = 0.0
        return Window(time // HOUR_US - 1, moves, fastest) if moves > 0 else None
