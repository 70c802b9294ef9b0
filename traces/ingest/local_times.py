"""Local times that occur twice or never when clocks change."""

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from adapt.traces.ingest.times import EPOCH_UNITS, ISO, TimeFormat, as_timestamp
from adapt.traces.spark.lazy import Column, DataFrame, F, Window

DAY_US = 86_400_000_000

_AROUND_US = 3 * 3600 * 1_000_000
"""How far around a doubled hour the order of rows is examined."""

_FIXED = re.compile(r"(UTC|GMT|UT|Z)?([+-].*)?|Etc/.*")
"""Zones whose clocks never change."""


@dataclass(frozen=True, slots=True)
class LocalTimes:
    """Local times that a zone repeats or skips."""

    zone: str
    doubled: int  # rows in an hour that occurs twice
    second: int  # those that the order of their file puts into its second pass
    undecided: int  # those whose order does not say which pass; they are read as the first
    skipped: int  # rows at times that the zone skips; they are moved forward by the gap
    cuts: Mapping[str, int]  # the first line of the second pass, by file and night

    def as_data(self) -> dict[str, Any]:
        """The counts, for lint."""
        return {name: getattr(self, name) for name in ("zone", "doubled", "second", "undecided", "skipped")}

    def applied(self, time: Column, value: Column, kind: str, form: TimeFormat) -> Column:
        """Times, corrected in second passes."""
        passes = _passes(value, kind, form, self.zone)
        if passes is None or not self.cuts:
            return time
        local, first, second = passes
        cuts = F.create_map(*(F.lit(part) for each in self.cuts.items() for part in each))
        is_second = F.col("_line") >= cuts[F.concat_ws(" ", F.col("_file"), _night(local))]
        return F.when((second > first) & is_second, F.timestamp_micros(second)).otherwise(time)


def local_times(
    rows: DataFrame, value: Column, kind: str, form: TimeFormat, zone: str, *, ordered: bool
) -> LocalTimes | None:
    """Local times that occur twice or never; None without any.

    A row is in the second pass if time goes backward within the doubled hour, by half of it or more, once in the night.

    Args:
        value, kind: The times, and their short type in Spark.
        ordered: Whether the order of lines is that of arrival.
    """
    passes = _passes(value, kind, form, zone)
    if passes is None:
        return None
    names = ("local", "first", "second")
    timed = rows.select("_file", "_line", *(each.alias(name) for each, name in zip(passes, names, strict=True)))
    local, doubled = F.col("local"), F.col("second") > F.col("first")
    skipped = F.unix_micros(F.from_utc_timestamp(F.timestamp_micros("first"), zone)) != local
    nights = (
        timed.where(doubled | skipped)
        .groupBy(_night(local).alias("night"))
        .agg(
            F.count_if(doubled),
            F.count_if(skipped),
            F.min(F.when(doubled, local)),
            F.max(F.when(doubled, local)),
            F.max(F.col("second") - F.col("first")),
        )
        .collect()
    )
    if not nights:
        return None
    rows_there, moved = (sum(night[at] for night in nights) for at in (1, 2))
    found = [night for night in nights if night[1]] if ordered else []
    cuts, second, decided = {}, 0, 0
    for file, night, steps, line, there, later in _turns(timed, found).collect() if found else ():
        if steps == 1 and line is not None:
            cuts[f"{file} {night}"] = line
            second, decided = second + later, decided + there
    return LocalTimes(zone, rows_there, second, rows_there - decided, moved, cuts)


def _turns(timed: DataFrame, nights: Sequence[Any]) -> DataFrame:
    """By file and night: steps back of half a doubled hour, the line of the one within it, and rows there and after."""
    local, doubled = F.col("local"), F.col("second") > F.col("first")
    near = reduce(operator.or_, (local.between(night[3] - _AROUND_US, night[4] + _AROUND_US) for night in nights))
    lines = Window.partitionBy("_file", "night").orderBy("_line")
    back = (F.lag(local).over(lines) - local) * 2 >= max(night[5] for night in nights)
    turn = back & doubled & F.lag(doubled).over(lines)
    stepped = timed.where(near).withColumn("night", _night(local))
    stepped = stepped.select("*", back.alias("back"), F.when(turn, F.col("_line")).alias("turn"))
    stepped = stepped.withColumn("after", F.min("turn").over(lines).isNotNull())
    return stepped.groupBy("_file", "night").agg(
        F.count_if("back"), F.min("turn"), F.count_if(doubled), F.count_if(doubled & F.col("after"))
    )


def _passes(value: Column, kind: str, form: TimeFormat, zone: str) -> tuple[Column, Column, Column] | None:
    """A local time as if of UTC, and its first and second moments in the zone; microseconds.

    The second is before the first unless the time occurs twice. Null for times with a zone.
    """
    utc = None if _FIXED.fullmatch(zone) else _as_utc(value, kind, form)
    if utc is None:
        return None
    local, first = F.unix_micros(utc), F.unix_micros(as_timestamp(value, kind, form))
    later = first + DAY_US
    second = local + later - F.unix_micros(F.from_utc_timestamp(F.timestamp_micros(later), zone))
    again = F.unix_micros(F.from_utc_timestamp(F.timestamp_micros(second), zone)) == local
    return local, F.when(local.isNotNull(), first), F.when(again, second)


def _as_utc(value: Column, kind: str, form: TimeFormat) -> Column | None:
    """A time without a zone as if it were of UTC; None if all have one."""
    text = F.concat(F.trim(value.cast("string")), F.lit("Z"))
    if kind == "timestamp_ntz":
        return text.cast("timestamp")
    if kind in ("timestamp", "date") or form.name in EPOCH_UNITS:
        return None
    if form.name == ISO:
        return as_timestamp(text, "string", form)  # a second zone cannot be read
    if re.search("[VzOXxZ]", re.sub("'[^']*'", "", form.name)):
        return None
    return F.try_to_timestamp(text, F.lit(f"{form.name}XXX"))


def _night(local: Column) -> Column:
    """Number of the day from noon to noon: clocks change at night."""
    return F.floor((local - DAY_US // 2) / DAY_US)
