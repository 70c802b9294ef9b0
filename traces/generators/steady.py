"""Base of synthetic streams: steady rate, seed, key type."""

import math
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.compiled import compiled
from adapt.core.errors import UsageError
from adapt.core.keys.key_coder import coded_numbers
from adapt.core.stream import KeyType
from adapt.core.synthetic.popularity import ZipfKeys
from adapt.core.units.settings import ABOVE_0, Range, SettingError, knob, settings
from adapt.traces.generators.write import MOST_ROWS
from adapt.traces.store.trace import BLOCK_ROWS

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@settings()
class GeneratedRows:
    """What the rows of every generator have."""

    rows: int = knob("Rows to generate.", range=Range(1, at_most=MOST_ROWS))
    seed: int = knob("Random seed.", default=0, range=Range(0, at_most=2**64 - 1))
    rate_per_s: float = knob("Average rate in rows per second.", default=1000.0, typed="rate", range=ABOVE_0)
    start: str = knob("Start of the stream, in UTC unless it has a zone.", default="2026-01-01T00:00:00Z")
    key_type: KeyType = knob("Type of the keys: string or int64.", default=KeyType.STRING)

    def __post_init__(self) -> None:
        if self.key_type not in (KeyType.STRING, KeyType.INT64):
            raise SettingError(GeneratedRows, f"{{key_type}} must be string or int64 (got {self.key_type})")

    def check_end(self, ended_us: int) -> None:
        """Check that an end, after the start, is before the year 10000."""
        try:
            instant(self.start) + timedelta(microseconds=ended_us)
        except OverflowError as error:
            raise UsageError(
                f"{self.rows:,} rows at {self.rate_per_s} rows/s from {self.start} end after the year 9999"
            ) from error


@settings()
class SteadyStream(GeneratedRows):
    """Rows at a steady rate, of users or items with Zipf shares."""

    generator: ClassVar[str]
    domain: int = 1  # number of users or items
    exponent: float = 1.0  # Zipf exponent of their popularity, 0 (uniform) or more

    def __post_init__(self) -> None:
        GeneratedRows.__post_init__(self)
        self.check_end(steady_us(self.rows, self.rate_per_s))
        ZipfKeys(self.domain, self.exponent)

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters that determine the rows, for the manifest."""
        return {"generator": self.generator, **asdict(self)}

    def span(self, index: int) -> tuple[int, int, int, int]:
        """First row, rows, and start and end in microseconds of a block."""
        first = index * BLOCK_ROWS
        count = min(BLOCK_ROWS, self.rows - first)
        return first, count, steady_us(first, self.rate_per_s), steady_us(first + count, self.rate_per_s)

    def times(self, times_us: NDArray[np.int64]) -> pa.Array:
        """Times of rows from microseconds after the start."""
        return pa.array(start_us(self.start) + times_us).cast(pa.timestamp("us", tz="UTC"))


def start_us(start: str) -> int:
    """A time in microseconds since 1970."""
    return (instant(start) - EPOCH) // timedelta(microseconds=1)


def steady_us(rows: int, rate_per_s: float) -> int:
    """Time after this number of rows, in whole microseconds after the start."""
    return math.floor(rows * 1_000_000 / Fraction(rate_per_s))


def random_of(seed: int, number: int | np.uint64) -> np.random.Generator:
    """Random generator with its own number, such as that of a block."""
    return np.random.Generator(np.random.Philox(key=np.array([seed, number], np.uint64)))


def keys_of(numbers: NDArray[np.int64], letter: str, key_type: KeyType) -> pa.Array:
    """Keys by their numbers, 0 or more: "k17" or 17."""
    if key_type is not KeyType.STRING:
        return pa.array(numbers)
    offsets = np.zeros(len(numbers) + 1, np.int32)
    _ends(numbers, offsets)
    text = np.empty(int(offsets[-1]), np.uint8)
    _spell(numbers, ord(letter), offsets, text)
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(text))


def coded_keys(numbers: NDArray[np.int64], letter: str, key_type: KeyType) -> pa.DictionaryArray:
    """As `keys_of`, dictionary-encoded so that each key is spelled once."""
    distinct, codes = coded_numbers(numbers)
    return pa.DictionaryArray.from_arrays(pa.array(codes), keys_of(distinct, letter, key_type))


@compiled
def _ends(numbers: NDArray[np.int64], offsets: NDArray[np.int32]) -> None:
    """End offset of each key: a letter and the digits of its number."""
    end = 0
    for at in range(len(numbers)):
        end += 2
        number = numbers[at]
        while number >= 10:
            number //= 10
            end += 1
        offsets[at + 1] = end


@compiled
def _spell(numbers: NDArray[np.int64], letter: int, offsets: NDArray[np.int32], text: NDArray[np.uint8]) -> None:
    """Write the keys one after another, each from its last digit back."""
    for at in range(len(numbers)):
        text[offsets[at]] = letter
        number = numbers[at]
        for place in range(offsets[at + 1] - 1, offsets[at], -1):
            text[place] = 48 + number % 10
            number //= 10


def instant(text: str) -> datetime:
    """Read an ISO 8601 time, in UTC unless it has a zone."""
    try:
        time = datetime.fromisoformat(text)
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise SettingError(
            GeneratedRows, f"{{start}} must be a time such as 2026-01-31T12:00:00Z (got {text!r})"
        ) from error
