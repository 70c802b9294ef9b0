"""The `clicks` generator: user sessions in a web shop, keyed by user."""

from typing import ClassVar

import pyarrow as pa

from adapt.core.synthetic.clicks import PAGES, draw_clicks
from adapt.core.synthetic.popularity import ZipfKeys
from adapt.core.units.settings import settings
from adapt.traces.generators.steady import SteadyStream, coded_keys, random_of

ITEMS = ZipfKeys(3000, 1.0)
USERS, USER_EXPONENT, RATE_PER_S = 20_000, 0.8, 0.05


@settings()
class ClickStream(SteadyStream):
    """A stream of clicks: users' sessions in a web shop.

    Rows have `item`, `page` (view, cart, checkout, search) and the true `session`.

    Each block of rows has its own random numbers and its own span of time for its sessions; see `draw_clicks`.

    There are few users, so that their sessions overlap at a high rate. Keys are "u1", "u2", ... from hot to cold, or 1,
    2, ...

    Source: ordered streams, section 4.
    """

    generator: ClassVar[str] = "clicks"
    domain: int = USERS
    exponent: float = USER_EXPONENT
    rate_per_s: float = RATE_PER_S

    def block(self, index: int) -> pa.RecordBatch:
        """Rows of one block, in time order; see `GeneratedStream`."""
        first, count, begun_us, ended_us = self.span(index)
        users = ZipfKeys(self.domain, self.exponent)
        clicks = draw_clicks(random_of(self.seed, index), count, users, ITEMS, begun_us, ended_us)
        times = self.times(clicks.times_us)
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
