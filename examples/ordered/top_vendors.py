"""The three vendors with the most reviews of each hour.

Trace: adapt ingest anonreviews.csv.bz2 --key "int(vendorId)" -o reviews.trace
"""

from collections.abc import Iterator
from typing import Annotated, NamedTuple

HOUR_US = 3_600_000_000
BEST = 3


class Count(NamedTuple):
    key: int
    reviews: int


class Counts:
    key: int
    reviews: int

    def step(self, key: int) -> None:
        self.key = key
        self.reviews += 1

    def close(self) -> Count:
        counted = Count(self.key, self.reviews)
        self.key = self.reviews = 0
        return counted


class Place(NamedTuple):
    hour: int
    place: int
    key: int
    reviews: int


class Top:
    keys: Annotated[list[int], BEST]
    reviews: Annotated[list[int], BEST]

    def step(self, key: int, reviews: int) -> None:
        for at in range(BEST):
            held, count = self.keys[at], self.reviews[at]
            if reviews > count or (reviews == count and key < held):
                self.keys[at], self.reviews[at] = key, reviews
                key, reviews = held, count

    def close(self, time: int) -> Iterator[Place]:
        for at in range(BEST):
            if self.reviews[at] > 0:
                yield Place(time // HOUR_US - 1, at + 1, self.keys[at], self.reviews[at])
            self.keys[at] = self.reviews[at] = 0
