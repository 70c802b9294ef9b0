"""The `zipf` generator: independent Zipf keys at Poisson arrivals; nothing about the stream ever changes."""

import math
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.frequencies.zipf import MOST_RANKS, zipf_table
from adapt.core.stream import KeyType
from adapt.traces.artefacts.manifest import Provenance
from adapt.traces.artefacts.trace import BLOCK_ROWS
from adapt.traces.generators.write import check_rows, write_generated
from adapt.traces.ingest import Ingested
from adapt.traces.progress import Progress, silent
from adapt.traces.rejects import Rejects
from adapt.traces.session import SparkOptions

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ZipfStream:
    """A stream of Zipf keys.

    Every block of rows has its own random numbers, keyed by (seed, block), and its own span of time, so any block can
    be made anywhere. Within its span a block's arrivals are a Poisson process given their number: sorted uniform times.

    Attributes:
        rows: How many, at least 1.
        domain: Number of keys, 1 to `MOST_RANKS`; the key of rank k has the share k^-exponent / sum.
        exponent: 0 (uniform) or more.
        seed: 0 to 2^64 - 1.
        rate_per_s: Rows a second on average, above 0.
        start: Where the first block's span begins; of UTC where it has no zone.
        key_type: STRING ("k1", "k2", ... by falling share) or INT64 (1, 2, ...).
    """

    rows: int
    domain: int = 1_000_000
    exponent: float = 1.0
    seed: int = 0
    rate_per_s: float = 1000.0
    start: str = "2026-01-01T00:00:00Z"
    key_type: KeyType = KeyType.STRING

    def __post_init__(self) -> None:
        check_rows(self.rows)
        if not 1 <= self.domain <= MOST_RANKS:
            raise UsageError(f"--domain is {self.domain}, but a stream has from 1 to {MOST_RANKS:,} keys")
        if not (self.exponent >= 0 and math.isfinite(self.exponent)):
            raise UsageError(f"--exponent is {self.exponent}, but it must be 0 (uniform) or more")
        if not 0 <= self.seed < 1 << 64:
            raise UsageError(f"--seed is {self.seed}, but it must be from 0 to 2^64 - 1")
        if not (self.rate_per_s > 0 and math.isfinite(self.rate_per_s)):
            raise UsageError(f"--rate is {self.rate_per_s} rows a second, but it must be above 0")
        if self.key_type not in (KeyType.STRING, KeyType.INT64):
            raise UsageError(f"--key-type is {self.key_type}, but generated keys are string or int64")
        try:
            _instant(self.start) + timedelta(microseconds=self._offset_us(self.rows))
        except OverflowError as error:
            raise UsageError(
                f"{self.rows:,} rows at {self.rate_per_s} a second from {self.start} on end after the year 9999"
            ) from error

    def block(self, index: int) -> pa.RecordBatch:
        """The rows of one block, in time order; see `GeneratedStream`."""
        first = index * BLOCK_ROWS
        count = min(BLOCK_ROWS, self.rows - first)
        random = np.random.Generator(np.random.Philox(key=np.array([self.seed, index], np.uint64)))
        begun, ended = self._offset_us(first), self._offset_us(first + count)
        times = self._start_us + begun + _sorted_uniforms(random, count, ended - begun)
        ranks = zipf_table(self.domain, self.exponent).ranks(random.random(count))
        keys = pa.array(ranks)
        if self.key_type is KeyType.STRING:
            keys = pc.binary_join_element_wise("k", keys.cast(pa.string()), "")
        return pa.RecordBatch.from_pydict({"ts": pa.array(times).cast(pa.timestamp("us", tz="UTC")), "key": keys})

    @property
    def _start_us(self) -> int:
        return (_instant(self.start) - EPOCH) // timedelta(microseconds=1)

    def _offset_us(self, rows: int) -> int:
        """When that many rows are over, in whole microseconds after the start."""
        return math.floor(rows * 1_000_000 / Fraction(self.rate_per_s))


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
    force: bool = False,
    spark_options: SparkOptions | None = None,
    command: str = "adapt.traces.generators.zipf",
    progress: Progress = silent,
) -> Ingested:
    """Make a trace of Zipf keys; the parameters are those of `ZipfStream`.

    The rows depend on the parameters alone, not on how many tasks or machines make them. Each Spark worker keeps
    8 bytes a key of the domain.

    Args:
        out: Where the trace appears, whole, at the end.
        force: Replace an artefact at `out`.
        command: What the manifest says made the trace.

    Raises:
        UsageError: a parameter is out of its range.
        EnvironmentFailure: `out` is taken or cannot be written, or there is no Java.
    """
    stream = ZipfStream(rows, domain, exponent, seed, rate_per_s, start, key_type)
    made = Provenance(command, {"generator": "zipf", **asdict(stream)}, seed=seed)
    trace = write_generated(stream, out, made, force=force, spark_options=spark_options, progress=progress)
    return Ingested(trace, Rejects(), ())


def _sorted_uniforms(random: np.random.Generator, count: int, span_us: int) -> NDArray[np.int64]:
    """Sorted times, uniform in [0, span), in whole microseconds.

    The first n of n + 1 running sums of exponential gaps, over the last, are n sorted uniform numbers.
    """
    sums = np.cumsum(random.standard_exponential(count + 1))
    times: NDArray[np.int64] = (sums[:-1] / sums[-1] * span_us).astype(np.int64)
    times[times >= span_us] = max(span_us - 1, 0)  # a last gap of nothing, or a span of nothing
    return times


def _instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
        return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"--start {text!r} is no time such as 2026-01-31T12:00:00Z") from error
