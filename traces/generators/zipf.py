"""The `zipf` generator: independent keys with Zipf shares."""

from pathlib import Path
from typing import Any

from adapt.core.stream import KeyType
from adapt.core.synthetic.variation import Variation
from adapt.core.synthetic.zipf_keys import ZipfKeys
from adapt.traces.generators.keyed import KeyedStream, generate_keyed
from adapt.traces.ingest.ingest import Ingested


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
    """A stream of Zipf keys; the parameters are those of `ZipfKeys` and of `KeyedStream`.

    Raises:
        UsageError: a parameter is out of its range.
    """
    return KeyedStream(rows, ZipfKeys(domain, exponent), seed, rate_per_s, start, key_type, variation or Variation())


def generate_zipf(
    out: Path,
    *,
    rows: int,
    domain: int = 1_000_000,
    exponent: float = 1.0,
    seed: int = 0,
    rate_per_s: float = 1000.0,
    start: str = "2026-01-01T00:00:00Z",
    key_type: KeyType = KeyType.STRING,
    variation: Variation | None = None,
    command: str = "adapt.traces.generators.zipf",
    **writing: Any,
) -> Ingested:
    """Make a trace of Zipf keys; the parameters are those of `zipf_stream`.

    Each Spark worker keeps 8 bytes a key of the domain.

    Args:
        out: Where the trace appears, whole, at the end.
        command: What the manifest says made the trace.
        writing: Further arguments of `generate_keyed`.

    Raises:
        UsageError: a parameter is out of its range.
        EnvironmentFailure: `out` is taken or cannot be written, or there is no Java.
    """
    stream = zipf_stream(rows, domain, exponent, seed, rate_per_s, start, key_type, variation)
    told = {"generator": "zipf", "domain": domain, "exponent": exponent}
    return generate_keyed(stream, out, told, command=command, **writing)
