"""What all synthetic streams have: a number of rows at a steady rate from a start, a seed, a type of keys."""

import math
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.stream import KeyType
from adapt.traces.generators.write import check_rows

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def check_steady(rows: int, seed: int, rate_per_s: float, key_type: KeyType) -> None:
    """Refuse what no synthetic stream can have.

    Raises:
        UsageError: an argument is out of its range.
    """
    check_rows(rows)
    if not 0 <= seed < 1 << 64:
        raise UsageError(f"--seed is {seed}, but it must be from 0 to 2^64 - 1")
    if not (rate_per_s > 0 and math.isfinite(rate_per_s)):
        raise UsageError(f"--rate is {rate_per_s} rows a second, but it must be above 0")
    if key_type not in (KeyType.STRING, KeyType.INT64):
        raise UsageError(f"--key-type is {key_type}, but generated keys are string or int64")


def check_end(rows: int, rate_per_s: float, start: str, ended_us: int) -> None:
    """Refuse a stream whose end is no time.

    Raises:
        UsageError: it ends after the year 9999.
    """
    try:
        instant(start) + timedelta(microseconds=ended_us)
    except OverflowError as error:
        raise UsageError(f"{rows:,} rows at {rate_per_s} a second from {start} on end after the year 9999") from error


def start_us(start: str) -> int:
    """A time in microseconds since 1970."""
    return (instant(start) - EPOCH) // timedelta(microseconds=1)


def steady_us(rows: int, rate_per_s: float) -> int:
    """When that many rows are over, in whole microseconds after the start."""
    return math.floor(rows * 1_000_000 / Fraction(rate_per_s))


def random_of(seed: int, number: int | np.uint64) -> np.random.Generator:
    """The random numbers of a block, or of what else has a number of its own."""
    return np.random.Generator(np.random.Philox(key=np.array([seed, number], np.uint64)))


def keys_of(numbers: NDArray[np.int64], letter: str, key_type: KeyType) -> pa.Array:
    """Keys by their numbers: "k17" or 17."""
    keys = pa.array(numbers)
    return pc.binary_join_element_wise(letter, keys.cast(pa.string()), "") if key_type is KeyType.STRING else keys


def instant(text: str) -> datetime:
    """A time as a user writes it; of UTC where it has no zone.

    Raises:
        UsageError: it is none.
    """
    try:
        time = datetime.fromisoformat(text)
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"--start {text!r} is no time such as 2026-01-31T12:00:00Z") from error
