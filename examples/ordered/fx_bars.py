"""One-minute bars of quotes by instrument, for quotes that may arrive after others of a later minute.

A bar stays open until the quotes of the minute after its end have arrived; quotes for a bar that was given already are
counted. Columns: `ts`, the time of arrival; `quoted`, the time of the quote; `key`, the instrument; `bid`.

Trace: adapt ingest quotes.jsonl --key instrument --time arrived --keep quoted --keep bid -o fx.trace
"""

from collections.abc import Iterator
from typing import Annotated, NamedTuple

MINUTE = 60_000_000
OPEN = 4  # bars of an instrument that can be open at once


class Bar(NamedTuple):
    key: str
    minute: int
    first: float
    high: float
    low: float
    last: float
    quotes: int
    late: int


class Bars:
    key: str
    given: int  # the minute before which all bars were given
    late: int
    minute: Annotated[list[int], OPEN]
    first_at: Annotated[list[int], OPEN]
    last_at: Annotated[list[int], OPEN]
    first: Annotated[list[float], OPEN]
    high: Annotated[list[float], OPEN]
    low: Annotated[list[float], OPEN]
    last: Annotated[list[float], OPEN]
    quotes: Annotated[list[int], OPEN]

    def step(self, key: str, quoted: int, bid: float) -> Iterator[Bar]:
        minute = quoted // MINUTE
        at = minute % OPEN
        self.key = key
        if minute < self.given or (self.quotes[at] > 0 and self.minute[at] > minute):
            self.late += 1
            return
        if self.quotes[at] > 0 and self.minute[at] < minute:  # after a gap
            yield bar(self, at)
        if self.quotes[at] == 0:
            self.minute[at] = minute
            self.first_at[at] = self.last_at[at] = quoted
            self.first[at] = self.high[at] = self.low[at] = bid
        if quoted < self.first_at[at]:
            self.first_at[at] = quoted
            self.first[at] = bid
        if quoted >= self.last_at[at]:
            self.last_at[at] = quoted
            self.last[at] = bid
        self.high[at] = max(self.high[at], bid)
        self.low[at] = min(self.low[at], bid)
        self.quotes[at] += 1

    def close(self, time: int) -> Iterator[Bar]:
        self.given = time // MINUTE - 1
        for step in range(OPEN):
            at = (self.given + step) % OPEN
            if self.quotes[at] > 0 and self.minute[at] < self.given:
                yield bar(self, at)


def bar(bars: Bars, at: int) -> Bar:
    """The bar in a place, which becomes free."""
    quotes, late = bars.quotes[at], bars.late
    bars.quotes[at] = bars.late = 0
    return Bar(bars.key, bars.minute[at], bars.first[at], bars.high[at], bars.low[at], bars.last[at], quotes, late)
