"""The `clicks` generator: what users of a shop on the web look at, keyed by user."""

from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from adapt.core.stream import KeyType
from adapt.core.synthetic.clicks import PAGES, draw_clicks
from adapt.core.synthetic.zipf_keys import ZipfKeys
from adapt.traces.generators.steady import check_end, check_steady, coded_keys, random_of, start_us, steady_us
from adapt.traces.store.trace import BLOCK_ROWS

ITEMS = ZipfKeys(3000, 1.0)
USERS, USER_EXPONENT, RATE_PER_S = 20_000, 0.8, 0.05


@dataclass(frozen=True, slots=True)
class ClickStream:
    """A stream of clicks: user, `item`, `page` (view, cart, checkout or search) and `session`, which is the truth.

    A block of rows has its own random numbers and its own span of time, in which its sessions lie; see `draw_clicks`.

    Attributes:
        rows: How many, at least 1.
        domain: Number of users.
        exponent: z of their sessions, 0 (alike) or more.
        seed: 0 to 2^64 - 1.
        rate_per_s: Rows a second, above 0. Users are few, so that at a high rate their sessions run into each other.
        start: Where the stream begins; of UTC where it has no zone.
        key_type: STRING ("u1", "u2", ... by falling share) or INT64 (1, 2, ...).

    Raises:
        UsageError: an attribute is out of its range.

    Source: ordered streams, section 4.
    """

    rows: int
    domain: int = USERS
    exponent: float = USER_EXPONENT
    seed: int = 0
    rate_per_s: float = RATE_PER_S
    start: str = "2026-01-01T00:00:00Z"
    key_type: KeyType = KeyType.STRING

    def __post_init__(self) -> None:
        check_steady(self.rows, self.seed, self.rate_per_s, self.key_type)
        check_end(self.rows, self.rate_per_s, self.start, steady_us(self.rows, self.rate_per_s))
        ZipfKeys(self.domain, self.exponent)

    @property
    def parameters(self) -> dict[str, Any]:
        """All that decides the rows, for the manifest."""
        return {"generator": "clicks", **asdict(self)}

    def block(self, index: int) -> pa.RecordBatch:
        """The rows of one block, in time order; see `GeneratedStream`."""
        first = index * BLOCK_ROWS
        count = min(BLOCK_ROWS, self.rows - first)
        begun_us, ended_us = (steady_us(rows, self.rate_per_s) for rows in (first, first + count))
        users = ZipfKeys(self.domain, self.exponent)
        clicks = draw_clicks(random_of(self.seed, index), count, users, ITEMS, begun_us, ended_us)
        times = pa.array(start_us(self.start) + clicks.times_us).cast(pa.timestamp("us", tz="UTC"))
        pages = pa.DictionaryArray.from_arrays(pa.array(clicks.pages).cast(pa.int8()), pa.array(PAGES))
        return pa.RecordBatch.from_pydict(
            {
                "ts": times,
                "key": coded_keys(clicks.users, "u", self.key_type),
                "item": pa.array(clicks.items),
                "page": pages.cast(pa.string()),
                "session": pa.array(first + clicks.sessions),
            }
        )
