"""The `self-similar` generator: independent keys, of which 20 % have 80 % of the rows, and of those again."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from adapt.core.stream import KeyType
from adapt.core.synthetic.self_similar_keys import SelfSimilarKeys
from adapt.core.synthetic.variation import Variation
from adapt.traces.generators.keyed import KeyedStream, generate_keyed
from adapt.traces.ingest.ingest import Ingested


def generate_self_similar(
    out: Path,
    *,
    rows: int,
    domain: int = 1_000_000,
    hot: float = 0.2,
    seed: int = 0,
    rate_per_s: float = 1000.0,
    start: str = "2026-01-01T00:00:00Z",
    key_type: KeyType = KeyType.STRING,
    variation: Variation | None = None,
    command: str = "adapt.traces.generators.self_similar",
    **writing: Any,
) -> Ingested:
    """Make a trace of self-similar keys; the parameters are those of `SelfSimilarKeys` and of `KeyedStream`.

    Args:
        out: Where the trace appears, whole, at the end.
        command: What the manifest says made the trace.
        writing: Further arguments of `generate_keyed`.

    Raises:
        UsageError: a parameter is out of its range.
        EnvironmentFailure: `out` is taken or cannot be written, or there is no Java.
    """
    keys = SelfSimilarKeys(domain, hot)
    stream = KeyedStream(rows, keys, seed, rate_per_s, start, key_type, variation or Variation())
    return generate_keyed(stream, out, {"generator": "self-similar", **asdict(keys)}, command=command, **writing)
