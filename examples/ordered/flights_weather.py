"""Departures with the latest weather at their airport, those that left late, and mean delays by airport and day.

Rows of two inputs in the order of time. Columns of `weather`: `key`, the airport, and `wind`; of `flights`: `key`,
`carrier`, and `delay` in minutes.

Trace: adapt ingest weather.jsonl --key airport --time at --keep wind -o weather.trace
Trace: adapt ingest flights.jsonl --key airport --time at --keep carrier --keep delay -o flights.trace
"""

from typing import NamedTuple

WEATHER = 0  # the place in `from`
OLDEST = 2 * 3_600_000_000


class Departure(NamedTuple):
    key: str
    ts: int
    carrier: str
    delay: int
    wind: float


class Join:
    seen: int = -1  # when the latest weather of an airport was reported
    wind: float

    def step(self, from_: int, key: str, ts: int, carrier: str, delay: int, wind: float) -> Departure | None:
        if from_ == WEATHER:
            self.seen, self.wind = ts, wind
            return None
        if self.seen < 0 or ts - self.seen > OLDEST:
            return None
        return Departure(key, ts, carrier, delay, self.wind)


def is_late(delay: int) -> bool:
    return delay >= 60


class Day(NamedTuple):
    key: str
    day: int
    departures: int
    windy: int
    mean_delay: float


class Days:
    key: str
    departures: int
    windy: int
    minutes: int

    def step(self, key: str, delay: int, wind: float) -> Day | None:
        self.key = key
        self.departures += 1
        self.windy += 1 if wind >= 20.0 else 0
        self.minutes += delay
        return None

    def close(self, time: int) -> Day:
        day = Day(self.key, time // 86_400_000_000 - 1, self.departures, self.windy, self.minutes / self.departures)
        self.departures = self.windy = self.minutes = 0
        self.key = -1
        return day
