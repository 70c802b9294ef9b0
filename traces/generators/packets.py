"""The `packets` generator: self-similar bursts, as of network packets."""

from dataclasses import replace

from adapt.core.stream import KeyType
from adapt.core.synthetic.cascade import Cascade
from adapt.core.synthetic.variation import Variation
from adapt.traces.generators.keyed import KeyedStream
from adapt.traces.generators.zipf import zipf_stream

ADDRESSES = 10_000


def packet_stream(
    rows: int,
    domain: int = ADDRESSES,
    exponent: float = 1.0,
    seed: int = 0,
    rate_per_s: float = 1000.0,
    start: str = "2026-01-01T00:00:00Z",
    key_type: KeyType = KeyType.STRING,
    variation: Variation | None = None,
) -> KeyedStream:
    """A stream of Zipf keys, the addresses, with self-similar bursts.

    See `Cascade`.
    """
    varying = variation or Variation()
    bursting = replace(varying, cascade=varying.cascade or Cascade())
    return zipf_stream(rows, domain, exponent, seed, rate_per_s, start, key_type, bursting)
