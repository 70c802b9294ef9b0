"""Lint rules on times: granularity, outliers, order, clocks, span."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.counting.frequencies import top_share_interval
from adapt.core.labels import label
from adapt.core.lint import thresholds
from adapt.core.lint.evidence import Evidence
from adapt.core.lint.finding import Finding, Severity
from adapt.core.lint.thresholds import CLOCK_BINS, CLOCK_CORRELATION, CLOCK_LAG_S, CLOCK_RATIO
from adapt.core.phrases import counted, percent
from adapt.core.values import duration, instant


def local_times(seen: Evidence) -> Finding | None:
    """Local times that occur twice or not at all when clocks change."""
    found = seen.lint.get("local_times")
    if not found:
        return None
    zones = ", ".join(dict.fromkeys(each["zone"] for each in found))
    doubled, second, undecided, skipped = (
        sum(each[name] for each in found) for name in ("doubled", "second", "undecided", "skipped")
    )
    told = []
    if doubled:
        told.append(f"{counted(doubled, 'row')} of the source {_lie(doubled)} in an hour that occurs twice in {zones}")
    if second:
        told.append(f"the order of the file puts {second:,} of them into its second pass")
    if undecided:
        told.append(f"of {undecided:,} the pass is unknown, and they are read as the first")
    if skipped:
        told.append(f"{counted(skipped, 'row')} {_lie(skipped)} in an hour that {zones} skips, and moved past it")
    unknown = "Rows of an unknown pass may be early by the length of the change, and the second pass seems empty."
    return Finding(
        "local-times",
        Severity.WARNING if undecided or skipped else Severity.NOTE,
        f"{'; '.join(told)}.",
        unknown if undecided else "Rates in that night depend on it; other times have one meaning.",
        "Write times with their offset, such as 2018-10-28T02:30:00+01:00, or in UTC.",
        {"doubled": doubled, "second": second, "undecided": undecided, "skipped": skipped},
    )


def _lie(rows: int) -> str:
    return "lies" if rows == 1 else "lie"


def granularity(seen: Evidence) -> Finding | None:
    """Timestamps on whole minutes, hours or days."""
    grain = seen.grain
    if grain is None:
        return None
    instants = seen.lint["instants"]
    on_grain = instants["whole"][grain] / seen.rows
    mean = seen.rows / instants["distinct"]
    return Finding(
        "granularity",
        Severity.NOTE if grain == "minute" else Severity.WARNING,
        f"{_part(on_grain).capitalize()} timestamps fall on a whole {grain}: {mean:,.3g} rows per timestamp on average,"
        f" {instants['most']:,} at most.",
        f"The order within {'an' if grain == 'hour' else 'a'} {grain} is unknown. In a replay, rows with equal times"
        " arrive as one burst, and peak rates, queues and latencies are those of the bursts.",
        "If the source has a finer time, add it in the --time expression.",
        {"grain": grain, "share": on_grain, "rows_an_instant": mean, "most_an_instant": instants["most"]},
    )


def minute_of_hour(seen: Evidence) -> Finding | None:
    """One minute of the hour with far more rows than its share."""
    minutes = seen.lint["minutes"]
    if minutes["hours"] < thresholds.HOURS_FOR_MINUTES or seen.grain in ("hour", "day"):
        return None
    rows, shares = minutes["rows"], minutes["shares"]
    minute = max(range(60), key=lambda at: (shares[at], rows[at]))
    of_rows = rows[minute] / seen.rows
    if min(of_rows, shares[minute]) < thresholds.MINUTE_SHARE:
        return None
    return Finding(
        "minute-of-hour",
        Severity.SEVERE,
        f"Minute {minute:02d} of the hour has {_part(of_rows)} rows in {minutes['hours']:,} hours; an even share"
        f" is {percent(1 / 60)}.",
        f"Rates are wrong by up to a factor of {60 * of_rows:.0f}: the stream is silent for most of each hour and"
        " arrives in bursts made by the publisher or by an hourly job. Peak rate, latency, lag and autoscaling are"
        " misleading; key shares hold.",
        "Use periods of whole hours, or spread rows over the hour with --time.",
        {"minute": minute, "share": of_rows, "hours": minutes["hours"]},
    )


def outlier_dates(seen: Evidence) -> Finding | None:
    """A few rows dated far from all others."""
    found = seen.outliers
    if not found.rows:
        return None
    instants = seen.lint["instants"]
    first, last = instants["head"][0], instants["tail"][-1]
    whole_s, span_s = (last - first) / 1e6, seen.span_s
    return Finding(
        "outlier-dates",
        Severity.SEVERE,
        f"{found.rows:,} of {seen.rows:,} rows ({found.before} before, {found.after} after) are dated far"
        f" from the others, which are between {_short(found.first_us)} and {_short(found.last_us)}; the trace runs from"
        f" {_short(first)} to {_short(last)}.",
        f"The trace spans {duration(whole_s)} instead of {duration(span_s)}: mean rates are too low by a factor of"
        f" {whole_s / max(span_s, 1e-6):.3g}, and most periods are empty. {_in_file_order(seen)}".rstrip(),
        f"Drop them: --time \"if(TIME between '{instant(found.first_us)}' and '{instant(found.last_us)}', TIME,"
        ' null)".',
        {
            "rows": found.rows,
            "before": found.before,
            "after": found.after,
            "first_us": found.first_us,
            "last_us": found.last_us,
        },
    )


def _in_file_order(seen: Evidence) -> str:
    """Effect of outliers on a job that reads the source in file order."""
    source = seen.lint.get("source") or {}
    late, without = (source.get(name) for name in ("all", "without_outliers"))
    if not late or not without or late["late"] < 2 * max(without["late"], 1):
        return ""
    lateness = percent(late["late"] / late["rows"])
    return f"In file order, line {late['last_rise']:,} makes {lateness} of the rows late."


def source_order(seen: Evidence) -> Finding | None:
    """Rows of the source out of time order."""
    source = seen.lint.get("source")
    if not source:
        return None
    order = source["without_outliers"] or source["all"]
    if order["late"] < thresholds.LATE_SHARE * order["rows"]:
        return None
    latest_s = order["latest_us"] / 1e6
    is_jitter = latest_s < thresholds.LATE_SPAN * seen.span_s
    is_blocks = not is_jitter and order["steps_back"] * 10 < order["rows"]
    files = f" in {order['files']:,} files" if order["files"] > 1 else ""
    first = "first " if source["all"]["rows"] < seen.rows else ""  # a long source is looked at in part
    back = "time goes backward " + ("once" if order["steps_back"] == 1 else f"{order['steps_back']:,} times")
    blocks = f"The {first}{order['rows']:,} rows of the source{files} are {order['steps_back'] + 1:,} blocks"
    return Finding(
        "source-order",
        Severity.NOTE if is_jitter or is_blocks else Severity.WARNING,
        f"{blocks}, each in time order, as the partitions of a topic are one after another."
        if is_blocks
        else f"{order['late']:,} of the {first}{order['rows']:,} rows of the source{files} are late, by up to"
        f" {duration(latest_s)}; {back}; {'otherwise it is' if is_jitter else 'it is not'} in time order.",
        "The trace is sorted by time, so counts, plans and rates hold. Lateness, watermarks and the order of rows with"
        " equal times are not those of production"
        + ("." if is_jitter else ", and a job that reads the source in file order sees another stream."),
        "",
        {
            "late": order["late"],
            "share": order["late"] / order["rows"],
            "latest_s": latest_s,
            "steps_back": order["steps_back"],
        },
    )


def clocks(seen: Evidence) -> Finding | None:
    """Streams with different clocks."""
    found = seen.lint["clocks"]
    if not found or not found["shifts"]:
        return None
    name, other, ahead_s, at_shift, as_is = found["shifts"][0]
    behind = name if ahead_s > 0 else other
    against = other if ahead_s > 0 else name
    by = abs(ahead_s)
    pairs = [shift for shift in found["shifts"] if abs(shift[2]) == by]
    late = sorted({shift[0] if shift[2] > 0 else shift[1] for shift in pairs}, key=found["names"].index)
    named = ", ".join(label(each) for each in late)
    return Finding(
        "clocks",
        Severity.SEVERE,
        f"The clock of {named} is {duration(by)} behind the others: the activity of {label(behind)} and"
        f" {label(against)} correlates at {at_shift:.2f} with {duration(by)} added to the former, at {as_is:.2f}"
        f" without ({counted(len(found['shifts']), 'such pair')} of {found['of']}s).",
        "Rows with equal times did not happen at the same time: key shares over time, peaks, joins and windows across"
        " streams are wrong; counts over the whole trace hold.",
        f'Add the shift at ingest: --time "if({found["of"].upper()} in (...), TIME + interval {by // 60}'
        ' minutes, TIME)".',
        {"behind": late, "seconds": by, "correlation": at_shift, "as_is": as_is, "pairs": len(found["shifts"])},
    )


def few_rows(seen: Evidence) -> Finding | None:
    """Too few rows to know the share of the hottest key."""
    rows = seen.rows
    heaviest = seen.top_keys[0][1] if seen.top_keys else 0
    low, high = top_share_interval(heaviest, heaviest + int(seen.profile["top_missed"]), rows)
    f_max = heaviest / rows
    matters = high >= thresholds.F_MAX_MATTERS
    wide = f_max > 0 and (high - low) / 2 > thresholds.F_MAX_ERROR * f_max
    if rows >= thresholds.FEW_ROWS and not (wide and matters):
        return None
    useful = f"{1 / high:.3g} to {1 / low:.3g}" if low > 0 else f"at least {1 / high:.3g}"
    return Finding(
        "few-rows",
        Severity.WARNING,
        f"The hottest key has {heaviest:,} of {rows:,} rows: at 95 % confidence its share is between"
        f" {percent(low)} and {percent(high)}.",
        f"The best possible imbalance and the useful workers ({useful}) are equally uncertain; differences of that size"
        " between schemes are noise.",
        "Take a longer sample.",
        {"rows": rows, "heaviest": heaviest, "f_max_low": low, "f_max_high": high},
    )


def short_span(seen: Evidence) -> Finding | None:
    """A trace shorter than two days."""
    if seen.span_s >= thresholds.DAYS_S or seen.rows < 2:
        return None
    return Finding(
        "short-span",
        Severity.NOTE,
        f"The trace{' without outlier dates' if seen.outliers.rows else ''} spans {duration(seen.span_s)}, less than"
        " two days.",
        "No time of day occurs twice: results over time (peaks, drift, aging of a plan) may not generalize.",
        "",
        {"span_s": seen.span_s},
    )


def _part(of_all: float) -> str:
    """`all`, or a share of all."""
    return "all" if of_all == 1 else f"{percent(of_all)} of all"


def _short(us: int) -> str:
    """A time rounded to the second."""
    return instant(us // 1_000_000 * 1_000_000)


MINUTE_US = 60_000_000
WIDTHS_US = tuple(minutes * MINUTE_US for minutes in (1, 2, 5, 10))
STEP_S = 1800
WINDOW_S = 3600
"""Trends longer than an hour are removed before streams are compared: daily cycles differ between regions by nature,
not because of a wrong clock."""

FEWEST_S = 2 * CLOCK_LAG_S
"""In a shorter trace, two streams overlap too little at the largest shift."""

FEWEST_OVERLAP = 60
"""Fewest common bins for a correlation."""


@dataclass(frozen=True, slots=True)
class ClockGrid:
    """Time bins for the activity of streams; microseconds."""

    start_us: int
    width_us: int
    bins: int

    @classmethod
    def over(cls, first_us: int, last_us: int) -> "ClockGrid":
        """The finest grid that covers all rows, or else the coarsest."""
        span = last_us - first_us + 1
        width = next((width for width in WIDTHS_US if span <= width * (CLOCK_BINS - 1)), WIDTHS_US[-1])
        start = first_us // width * width
        return cls(start, width, min(CLOCK_BINS, (last_us - start) // width + 1))


@dataclass(frozen=True, slots=True)
class Shift:
    """Two streams that correlate best at a nonzero shift."""

    stream: int  # stream, other: indices of the streams
    other: int
    ahead_s: int  # seconds to add to the times of `stream` so that both agree
    at_shift: float  # correlation of their short-term activity at that shift
    as_is: float  # correlation without a shift


def shifts(activity: Sequence[NDArray[np.int64]], grid: ClockGrid) -> list[Shift]:
    """Pairs of streams with shifted clocks, highest correlation first.

    Compares the square root of the rows of each bin, so that busy and quiet hours count alike, minus its mean over an
    hour.

    Args:
        activity: Rows per bin of each stream; shape (bins,).
    """
    if grid.bins * grid.width_us < FEWEST_S * 1_000_000:
        return []
    window = WINDOW_S * 1_000_000 // grid.width_us + 1
    rough = [_residual(np.sqrt(rows), int(window)) for rows in activity]
    step = STEP_S * 1_000_000 // grid.width_us
    most = CLOCK_LAG_S // STEP_S
    found = []
    for one, other in combinations(range(len(rough)), 2):
        lags = np.arange(-most, most + 1)
        at = np.array([_correlation(rough[one], rough[other], int(lag * step)) for lag in lags])
        best = int(at.argmax())
        elsewhere = np.delete(at, best)
        if at[best] >= CLOCK_CORRELATION and at[best] >= CLOCK_RATIO * elsewhere.max() and lags[best]:
            found.append(Shift(one, other, int(lags[best]) * STEP_S, float(at[best]), float(at[most])))
    return sorted(found, key=lambda shift: (-shift.at_shift, shift.stream, shift.other))


def agreed(names: Sequence[str], activity: Sequence[NDArray[np.int64]], grid: ClockGrid) -> dict[str, Any]:
    """Stream names and the pairs whose clocks differ, as plain data."""
    found = [
        [names[shift.stream], names[shift.other], shift.ahead_s, shift.at_shift, shift.as_is]
        for shift in shifts(activity, grid)
    ]
    return {"names": list(names), "width_s": grid.width_us // 1_000_000, "shifts": found}


def _residual(values: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """Values minus their mean over a centered window, shortened at both ends."""
    half = window // 2
    sums = np.concatenate(([0.0], np.cumsum(values)))
    at = np.arange(len(values))
    low, high = np.maximum(at - half, 0), np.minimum(at + half + 1, len(values))
    return np.asarray(values - (sums[high] - sums[low]) / (high - low))


def _correlation(one: NDArray[np.float64], other: NDArray[np.float64], lag: int) -> float:
    """Correlation of `one`, shifted forward by `lag` bins, with `other` over common bins; 0 if too few."""
    if lag >= 0:
        first, second = one[: len(one) - lag], other[lag:]
    else:
        first, second = one[-lag:], other[:lag]
    if len(first) < FEWEST_OVERLAP:
        return 0.0
    scale = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / scale if scale > 0 else 0.0
