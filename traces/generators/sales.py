"""The `sales` generator: lines of shop tickets, keyed by ticket."""

from functools import lru_cache
from typing import ClassVar

import pyarrow as pa

from adapt.core.synthetic.popularity import ZipfKeys
from adapt.core.synthetic.sales import Shop, draw_sales, draw_shop
from adapt.core.units.settings import settings
from adapt.traces.generators.steady import SteadyStream, keys_of, random_of, steady_us

ITEMS, ITEM_EXPONENT, RATE_PER_S = 3000, 1.0, 0.5

_SHOP = (1 << 64) - 1
"""Number of the shop's random numbers, which no block has."""


@settings()
class SaleStream(SteadyStream):
    """A stream of sales: lines of shop tickets.

    Rows have `store`, `item`, `category`, `cents` per piece and `qty`.

    Each block of rows has its own random numbers, span of time and tickets; see `draw_sales`.

    Keys are "t0", "t1", ... or 0, 1, ...; `domain` is the number of items.

    Source: ordered streams, section 4.
    """

    generator: ClassVar[str] = "sales"
    domain: int = ITEMS
    exponent: float = ITEM_EXPONENT
    rate_per_s: float = RATE_PER_S

    @property
    def shop(self) -> Shop:
        """Prices and true trends."""
        return _shop_of(self.seed, self.domain, self.exponent)

    def block(self, index: int) -> pa.RecordBatch:
        """Rows of one block, in time order; see `GeneratedStream`."""
        first, count, begun_us, ended_us = self.span(index)
        stream_us = steady_us(self.rows, self.rate_per_s)
        sales = draw_sales(random_of(self.seed, index), count, self.shop, begun_us, ended_us, stream_us)
        times = self.times(sales.times_us)
        return pa.RecordBatch.from_pydict(
            {
                "ts": times,
                "key": keys_of(first + sales.tickets, "t", self.key_type),
                "store": pa.array(sales.stores),
                "item": pa.array(sales.items),
                "category": pa.array(sales.categories),
                "cents": pa.array(sales.cents),
                "qty": pa.array(sales.pieces),
            }
        )


@lru_cache(maxsize=1)
def _shop_of(seed: int, items: int, exponent: float) -> Shop:
    return draw_shop(random_of(seed, _SHOP), ZipfKeys(items, exponent))
