"""What is done to the rows of a source before they become a trace: repairs, and what lets a trace be shared.

Nothing is silent: what is left out is refused with a reason, or counted, and the manifest holds every rule.
"""

import secrets
from dataclasses import dataclass
from fractions import Fraction

from adapt.core.errors import UsageError
from adapt.core.units.durations import duration_text, duration_us
from adapt.traces.ingest.times import is_in_range
from adapt.traces.spark.lazy import Column, DataFrame, F, Window
from adapt.traces.spark.progress import Progress, watched
from adapt.traces.spark.session import spark_failures

UNIQUE = "_unique"
"""The column by which repeated rows are known."""

REPEATED = "repeats an earlier row"

HEX_DIGITS = 24
"""Of a hashed key: 96 bits, so that among a billion keys two are one with a chance of 1 in 10^11."""

SHORTEST_SALT = 16

_UNIT = 1 << 53


@dataclass(frozen=True, slots=True)
class Clock:
    """How far the clock of some streams is set forward, or back.

    Attributes:
        streams: Their name; `*` stands for any text, `?` for any character.
        forward_us: Microseconds to add to their times.
    """

    streams: str
    forward_us: int

    @classmethod
    def parse(cls, text: str) -> "Clock":
        """STREAMS=LENGTH, with a sign if it is to be set back.

        Raises:
            UsageError: it is not so written.
        """
        streams, equals, length = text.rpartition("=")
        sign = -1 if length.startswith("-") else 1
        if not (streams and equals):
            raise UsageError(f"--clock {text!r} is not STREAMS=LENGTH, such as 'fxcm:*=5h' or 'east=-500ms'")
        return cls(streams, sign * duration_us(length.lstrip("+-")))

    @property
    def pattern(self) -> str:
        """The streams as a regular expression of Java."""
        parts = {"*": ".*", "?": "."}
        return "(?s)^" + "".join(parts.get(letter, f"\\Q{letter}\\E") for letter in self.streams) + "$"


@dataclass(frozen=True, slots=True)
class Treatment:
    """Nothing of it unless it is given.

    Attributes:
        clocks: Clocks that are set right; the first that fits a stream counts.
        most_late_us: A row is refused whose time is further than this behind that of a good row before it in its file.
        hash_keys: Whether keys are replaced by salted hashes; the salt is kept nowhere.
        sample: The share of keys, whole keys, of which rows are kept; in (0, 1].

    Raises:
        UsageError: an attribute is out of its range.
    """

    clocks: tuple[Clock, ...] = ()
    most_late_us: int | None = None
    hash_keys: bool = False
    sample: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if not 0 < self.sample <= 1:
            raise UsageError(f"--sample-keys {float(100 * self.sample):g}% keeps from above 0 to 100% of the keys")

    def as_data(self) -> dict[str, object]:
        """What is given of it, as the manifest tells it."""
        told: dict[str, object] = {}
        if self.clocks:
            told["clocks"] = [{"streams": clock.streams, "forward_us": clock.forward_us} for clock in self.clocks]
        if self.most_late_us is not None:
            told["most_late_us"] = self.most_late_us
        if self.hash_keys:
            told["hash_keys"] = f"the first {HEX_DIGITS} hexadecimal digits of SHA-256 of salt and key"
        if self.sample < 1:
            told["sample_keys"] = float(self.sample)
        return told


def parse_sample(text: str) -> Fraction:
    """A share of keys, as P% or as a number up to 1.

    Raises:
        UsageError: it is neither.
    """
    try:
        return Fraction(text[:-1]) / 100 if text.endswith("%") else Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"--sample-keys {text!r} is no share of the keys, such as 10%") from None


def salt_of(given: str | None) -> bytes:
    """The salt of hashed keys: the one given, so that several traces have the same keys, or a new one.

    Raises:
        UsageError: it is so short that it could be guessed.
    """
    if given is None:
        return secrets.token_bytes(32)
    if len(given) < SHORTEST_SALT:
        raise UsageError(f"ADAPT_SALT has {len(given)} characters and could be guessed; give {SHORTEST_SALT} or more")
    return given.encode("utf-8", "surrogateescape")


def treated(rows: DataFrame, treatment: Treatment, salt: bytes, progress: Progress) -> DataFrame:
    """The rows that are left, with the reason against each that is refused.

    Args:
        rows: The trace's columns beside the reader's, and `UNIQUE` where rows may be repeated.
        salt: Of hashed keys.

    Raises:
        UsageError: a clock is that of no stream.
    """
    if treatment.clocks:
        _check_clocks(rows, treatment, progress)
        moved = F.timestamp_micros(F.unix_micros("ts") + _forward_us(treatment))
        known = is_in_range(moved)
        rows = _refused(rows, F.col("ts").isNotNull() & ~known, "time is out of range once its clock is set right")
        rows = rows.withColumn("ts", F.when(known, moved))
    if treatment.most_late_us is not None:
        before = Window.partitionBy("_file").orderBy("_line").rowsBetween(Window.unboundedPreceding, 0)
        latest = F.max(F.when(F.col("_reason").isNull(), F.unix_micros("ts"))).over(before)
        late = F.unix_micros("ts") < latest - treatment.most_late_us
        rows = _refused(rows, late, f"late by more than {duration_text(treatment.most_late_us)}")
    if UNIQUE in rows.columns:
        alone = F.when(F.col(UNIQUE).isNull(), F.struct("_file", "_line"))
        alike = Window.partitionBy(UNIQUE, alone).orderBy(F.col("_reason").isNotNull(), "_file", "_line")
        rows = _refused(rows, F.col(UNIQUE).isNotNull() & (F.row_number().over(alike) > 1), REPEATED).drop(UNIQUE)
    if treatment.sample < 1:
        part = F.xxhash64("key").bitwiseAND(_UNIT - 1)
        rows = rows.where(F.col("_reason").isNotNull() | (part < int(treatment.sample * _UNIT)))
    if treatment.hash_keys:
        plain = F.col("key").cast("string").cast("binary") if _is_number(rows) else F.col("key").cast("binary")
        hashed = F.substring(F.sha2(F.concat(F.lit(salt), plain), 256), 1, HEX_DIGITS)
        rows = rows.withColumn("key", F.when(F.col("key").isNotNull(), hashed))
    return rows


def _refused(rows: DataFrame, bad: Column, reason: str) -> DataFrame:
    """The rows with one more reason, where there is none yet."""
    known = F.col("_reason")
    return rows.withColumn("_reason", F.when(known.isNull() & bad, F.lit(reason)).otherwise(known))


def _forward_us(treatment: Treatment) -> Column:
    forward = F.lit(0).cast("bigint")
    for clock in reversed(treatment.clocks):
        forward = F.when(F.col("stream").rlike(clock.pattern), F.lit(clock.forward_us)).otherwise(forward)
    return forward


def _check_clocks(rows: DataFrame, treatment: Treatment, progress: Progress) -> None:
    if "stream" not in rows.columns:
        raise UsageError("--clock sets the clocks of streams; say with --stream which stream a row is of")
    fits = [F.count_if(F.col("stream").rlike(clock.pattern)) for clock in treatment.clocks]
    with spark_failures("looking at the streams"), watched(rows.sparkSession, "looking at the streams", progress):
        found = rows.agg(*fits).collect()[0]
        for clock, times in zip(treatment.clocks, found, strict=True):
            if not times:
                some = [str(row[0]) for row in rows.select("stream").distinct().sort("stream").limit(10).collect()]
                raise UsageError(f"--clock {clock.streams!r} is that of no stream; there are {', '.join(some)}")


def _is_number(rows: DataFrame) -> bool:
    return bool(rows.schema["key"].dataType.simpleString() == "bigint")
