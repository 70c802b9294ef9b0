"""Cleaning at ingest: clock shifts, deduplication, late rows, hashed or sampled keys.

Nothing is silent: dropped rows are rejected with a reason, or counted, and the manifest records every rule.
"""

import secrets
from dataclasses import asdict, dataclass
from fractions import Fraction

from adapt.core.errors import UsageError
from adapt.core.units.durations import duration_text, duration_us
from adapt.traces.ingest.times import is_in_range
from adapt.traces.spark.lazy import Column, DataFrame, F, Window
from adapt.traces.spark.progress import Progress, watched
from adapt.traces.spark.session import spark_failures

UNIQUE = "_unique"
"""The column that rows are deduplicated by."""

REPEATED = "repeats an earlier row"

HEX_DIGITS = 24
"""Length of a hashed key: 96 bits, so that two of a billion keys collide with a probability of 1 in 10^11."""

SHORTEST_SALT = 16

_UNIT = 1 << 53


@dataclass(frozen=True, slots=True)
class ClockShift:
    """How far the clock of some streams is shifted."""

    streams: str  # name of the streams; `*` matches any text, `?` any character
    forward_us: int  # microseconds added to their times

    @classmethod
    def parse(cls, text: str) -> "ClockShift":
        """Read STREAMS=DURATION, where a negative duration shifts back."""
        streams, equals, length = text.rpartition("=")
        sign = -1 if length.startswith("-") else 1
        if not (streams and equals):
            raise UsageError(
                f"--shift-clock must be STREAMS=DURATION, such as 'fxcm:*=5h' or 'east=-2s' (got {text!r})"
            )
        try:
            return cls(streams, sign * duration_us(length.lstrip("+-")))
        except UsageError as error:
            raise UsageError(f"--shift-clock {streams}: {error}") from None

    @property
    def pattern(self) -> str:
        """The streams as a Java regular expression."""
        parts = {"*": ".*", "?": "."}
        return "(?s)^" + "".join(parts.get(letter, f"\\Q{letter}\\E") for letter in self.streams) + "$"


@dataclass(frozen=True, slots=True)
class Cleaning:
    """Cleaning rules; all off by default."""

    clock_shifts: tuple[ClockShift, ...] = ()  # clock shifts; the first that matches a stream applies
    max_lateness_us: int | None = None  # rows further than this behind an earlier good row of their file are rejected
    hash_keys: bool = False  # whether keys are replaced by salted hashes; the salt is never stored
    sample: Fraction = Fraction(1)  # share of the keys whose rows are kept, in (0, 1]

    def __post_init__(self) -> None:
        if not 0 < self.sample <= 1:
            raise UsageError(f"--sample-keys must be above 0% and at most 100% (got {float(100 * self.sample):g}%)")

    def as_data(self) -> dict[str, object]:
        """The active rules as recorded in the manifest."""
        rules: dict[str, object] = {}
        if self.clock_shifts:
            rules["clock_shifts"] = [asdict(shift) for shift in self.clock_shifts]
        if self.max_lateness_us is not None:
            rules["max_lateness_us"] = self.max_lateness_us
        if self.hash_keys:
            rules["hash_keys"] = f"the first {HEX_DIGITS} hexadecimal digits of SHA-256 of salt and key"
        if self.sample < 1:
            rules["sample_keys"] = float(self.sample)
        return rules


def parse_sample(option: str, text: str) -> Fraction:
    """A share of keys or records, as P% or a number."""
    try:
        return Fraction(text[:-1]) / 100 if text.endswith("%") else Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"{option} must be a percentage such as 10% (got {text!r})") from None


def salt_of(given: str | None) -> bytes:
    """The given salt of hashed keys, or a random one."""
    if given is None:
        return secrets.token_bytes(32)
    if len(given) < SHORTEST_SALT:
        raise UsageError(
            f"$ADAPT_SALT must have at least {SHORTEST_SALT} characters, or it could be guessed (got {len(given)})"
        )
    return given.encode("utf-8", "surrogateescape")


def cleaned(rows: DataFrame, cleaning: Cleaning, salt: bytes, progress: Progress) -> DataFrame:
    """The cleaned rows, with a reason in each that is rejected.

    Args:
        rows: Columns of the trace and of the reader, and `UNIQUE` if rows are deduplicated.
        salt: Salt of hashed keys.
    """
    if cleaning.clock_shifts:
        _check_shifts(rows, cleaning, progress)
        moved = F.timestamp_micros(F.unix_micros("ts") + _forward_us(cleaning))
        known = is_in_range(moved)
        rows = _refused(rows, F.col("ts").isNotNull() & ~known, "time is out of range after the clock shift")
        rows = rows.withColumn("ts", F.when(known, moved))
    if cleaning.max_lateness_us is not None:
        before = Window.partitionBy("_file").orderBy("_line").rowsBetween(Window.unboundedPreceding, 0)
        latest = F.max(F.when(F.col("_reason").isNull(), F.unix_micros("ts"))).over(before)
        late = F.unix_micros("ts") < latest - cleaning.max_lateness_us
        rows = _refused(rows, late, f"late by more than {duration_text(cleaning.max_lateness_us)}")
    if UNIQUE in rows.columns:
        alone = F.when(F.col(UNIQUE).isNull(), F.struct("_file", "_line"))
        alike = Window.partitionBy(UNIQUE, alone).orderBy(F.col("_reason").isNotNull(), "_file", "_line")
        rows = _refused(rows, F.col(UNIQUE).isNotNull() & (F.row_number().over(alike) > 1), REPEATED).drop(UNIQUE)
    if cleaning.sample < 1:
        part = F.xxhash64("key").bitwiseAND(_UNIT - 1)
        rows = rows.where(F.col("_reason").isNotNull() | (part < int(cleaning.sample * _UNIT)))
    if cleaning.hash_keys:
        plain = F.col("key").cast("string").cast("binary") if _is_number(rows) else F.col("key").cast("binary")
        hashed = F.substring(F.sha2(F.concat(F.lit(salt), plain), 256), 1, HEX_DIGITS)
        rows = rows.withColumn("key", F.when(F.col("key").isNotNull(), hashed))
    return rows


def _refused(rows: DataFrame, bad: Column, reason: str) -> DataFrame:
    """The rows, rejected for this reason where they have none yet."""
    known = F.col("_reason")
    return rows.withColumn("_reason", F.when(known.isNull() & bad, F.lit(reason)).otherwise(known))


def _forward_us(cleaning: Cleaning) -> Column:
    forward = F.lit(0).cast("bigint")
    for shift in reversed(cleaning.clock_shifts):
        forward = F.when(F.col("stream").rlike(shift.pattern), F.lit(shift.forward_us)).otherwise(forward)
    return forward


def _check_shifts(rows: DataFrame, cleaning: Cleaning, progress: Progress) -> None:
    if "stream" not in rows.columns:
        raise UsageError("--shift-clock needs --stream, which names the stream of a row")
    fits = [F.count_if(F.col("stream").rlike(shift.pattern)) for shift in cleaning.clock_shifts]
    with spark_failures("checking the streams"), watched(rows.sparkSession, "checking the streams", progress):
        found = rows.agg(*fits).collect()[0]
        for shift, matches in zip(cleaning.clock_shifts, found, strict=True):
            if not matches:
                some = [str(row[0]) for row in rows.select("stream").distinct().sort("stream").limit(10).collect()]
                raise UsageError(f"--shift-clock {shift.streams!r} matches no stream; available: {', '.join(some)}")


def _is_number(rows: DataFrame) -> bool:
    return bool(rows.schema["key"].dataType.simpleString() == "bigint")
