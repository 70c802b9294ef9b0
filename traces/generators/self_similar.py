"""The `self-similar` generator: 20 % of the keys get 80 %."""

from adapt.core.stream import KeyType
from adapt.core.synthetic.self_similar_keys import SelfSimilarKeys
from adapt.core.synthetic.variation import Variation
from adapt.traces.generators.keyed import KeyedStream


def self_similar_stream(
    rows: int,
    domain: int = 1_000_000,
    hot: float = 0.2,
    seed: int = 0,
    rate_per_s: float = 1000.0,
    start: str = "2026-01-01T00:00:00Z",
    key_type: KeyType = KeyType.STRING,
    variation: Variation | None = None,
) -> KeyedStream:
    """A stream of self-similar keys; see `SelfSimilarKeys` and `KeyedStream` for the parameters."""
    return KeyedStream(rows, SelfSimilarKeys(domain, hot), seed, rate_per_s, start, key_type, variation or Variation())
