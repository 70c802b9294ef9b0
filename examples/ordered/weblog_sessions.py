"""Sessions of a web log: the requests of a host without a pause of more than 30 minutes.

Trace: adapt ingest access.log --key host --bytes "coalesce(bytes, 0)" -o web.trace
"""

from collections.abc import Iterator
from typing import NamedTuple

PAUSE_US = 30 * 60 * 1_000_000


class Session(NamedTuple):
    key: str
    start: int
    end: int
    requests: int
    bytes: int


class Sessions:
    key: str
    start: int
    end: int
    requests: int
    bytes: int

    def step(self, key: str, ts: int, bytes: int) -> Iterator[Session]:
        if self.requests > 0 and ts - self.end > PAUSE_US:
            yield Session(self.key, self.start, self.end, self.requests, self.bytes)
            self.requests = 0
            self.bytes = 0
        if self.requests == 0:
            self.start = ts
        self.key = key
        self.end = ts
        self.requests += 1
        self.bytes += bytes

    def close(self, time: int) -> Session | None:
        if self.requests == 0 or time - self.end <= PAUSE_US:
            return None
        ended = Session(self.key, self.start, self.end, self.requests, self.bytes)
        self.requests = 0
        self.bytes = 0
        return ended
