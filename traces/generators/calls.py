"""The `calls` generator: call data records of mobile phones, keyed by caller."""

from functools import lru_cache
from typing import ClassVar

import pyarrow as pa

from adapt.core.synthetic.calls import Phones, draw_calls, draw_phones
from adapt.core.synthetic.popularity import ZipfKeys
from adapt.core.units.settings import SettingError, settings
from adapt.traces.generators.steady import SteadyStream, coded_keys, random_of

PHONES, PHONE_EXPONENT, RATE_PER_S = 20_000, 0.8, 5.0
MOST_PHONES = 10_000_000

_ALL_PHONES = (1 << 64) - 1
"""Number of the phones' random numbers, which no block has."""


@settings()
class CallStream(SteadyStream):
    """A stream of calls between mobile phones.

    0.5 % of the phones are cloned. Rows have `caller` and `callee` (numbers of phones), `area` of the caller (0 to 9),
    `seconds`, and where both are in meters: `caller_x`, `caller_y`, `callee_x`, `callee_y`.

    Each block of rows has its own random numbers and its own span of time; see `draw_calls`. Keys are "p1", "p2", ...
    from hot to cold, or 1, 2, ...

    Source: ordered streams, Figure 1; homes, ways and clones are ours.
    """

    generator: ClassVar[str] = "calls"
    domain: int = PHONES
    exponent: float = PHONE_EXPONENT
    rate_per_s: float = RATE_PER_S

    def __post_init__(self) -> None:
        SteadyStream.__post_init__(self)
        if not 2 <= self.domain <= MOST_PHONES:
            raise SettingError(ZipfKeys, f"{{domain}} must be from 2 to {MOST_PHONES:,} phones (got {self.domain:,})")

    @property
    def phones(self) -> Phones:
        """Homes, ways and the cloned phones."""
        return _phones_of(self.seed, self.domain, self.exponent)

    def block(self, index: int) -> pa.RecordBatch:
        """Rows of one block, in time order; see `GeneratedStream`."""
        _, count, begun_us, ended_us = self.span(index)
        calls = draw_calls(random_of(self.seed, index), count, self.phones, begun_us, ended_us)
        times = self.times(calls.times_us)
        columns = {
            "ts": times,
            "key": coded_keys(calls.callers, "p", self.key_type),
            "caller": pa.array(calls.callers),
            "callee": pa.array(calls.callees),
            "area": pa.array(calls.areas),
            "seconds": pa.array(calls.seconds),
        }
        for name, places in (("caller", calls.caller_m), ("callee", calls.callee_m)):
            columns |= {f"{name}_x": pa.array(places[:, 0]), f"{name}_y": pa.array(places[:, 1])}
        return pa.RecordBatch.from_pydict(columns)


@lru_cache(maxsize=1)
def _phones_of(seed: int, phones: int, exponent: float) -> Phones:
    return draw_phones(random_of(seed, _ALL_PHONES), ZipfKeys(phones, exponent))
