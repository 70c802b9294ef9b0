"""The `zipf` generator: independent keys with Zipf shares."""

from adapt.core.stream import KeyType
from adapt.core.synthetic.variation import Variation
from adapt.core.synthetic.zipf_keys import ZipfKeys
from adapt.traces.generators.keyed import KeyedStream


def zipf_stream(
    rows: int,
    domain: int = 1_000_000,
    exponent: float = 1.0,
    seed: int = 0,
    rate_per_s: float = 1000.0,
    start: str = "2026-01-01T00:00:00Z",
    key_type: KeyType = KeyType.STRING,
    variation: Variation | None = None,
) -> KeyedStream:
    """A stream of Zipf keys; see `ZipfKeys` and `KeyedStream` for the parameters.

    Each Spark worker holds 8 bytes per key of the domain.
    """
    return KeyedStream(rows, ZipfKeys(domain, exponent), seed, rate_per_s, start, key_type, variation or Variation())
