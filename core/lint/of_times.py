"""What is odd about the times of a trace: their grain, one minute of the hour, outliers, order, clocks, length."""

from adapt.core.counting.share_interval import top_share_interval
from adapt.core.labels import count, label
from adapt.core.lint import thresholds
from adapt.core.lint.evidence import Evidence
from adapt.core.lint.finding import Finding, Severity
from adapt.core.values import duration, instant, share


def granularity(seen: Evidence) -> Finding | None:
    """Times on whole minutes, hours or days."""
    grain = seen.grain
    if grain is None:
        return None
    instants = seen.lint["instants"]
    on_grain = instants["whole"][grain] / seen.rows
    mean = seen.rows / instants["distinct"]
    return Finding(
        "granularity",
        Severity.NOTE if grain == "minute" else Severity.WARNING,
        f"{_part(on_grain).capitalize()} times fall on a whole {grain}: {mean:,.3g} rows an instant on average,"
        f" {count(instants['most'])} at most.",
        f"Nothing is known of what happens within {'an' if grain == 'hour' else 'a'} {grain}: rows of one instant come"
        " as a burst in a replay, in the order of the source, and peak rates, queues and latencies are those of these"
        " bursts.",
        "Give --time an expression with the finer part of the time, if the source has one.",
        {"grain": grain, "share": on_grain, "rows_an_instant": mean, "most_an_instant": instants["most"]},
    )


def minute_of_hour(seen: Evidence) -> Finding | None:
    """One minute of the hour with far more than its share."""
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
        f"Minute {minute:02d} of the hour has {_part(of_rows)} rows, in {count(minutes['hours'])} hours; its share"
        f" would be {share(1 / 60)}.",
        f"Rates are wrong by up to a factor of {60 * of_rows:.0f}: the stream stands still for most of each hour and"
        " comes in bursts that the publisher, or a job on the hour, made. Peak rate, latency, lag and autoscaling over"
        " time do not hold; shares of keys do.",
        "Do not read bursts within an hour as natural; take periods of whole hours, or spread rows over the hour with"
        " --time.",
        {"minute": minute, "share": of_rows, "hours": minutes["hours"]},
    )


def outlier_dates(seen: Evidence) -> Finding | None:
    """A handful of rows far away from all others."""
    found = seen.outliers
    if not found.rows:
        return None
    instants = seen.lint["instants"]
    first, last = instants["head"][0], instants["tail"][-1]
    whole_s, span_s = (last - first) / 1e6, seen.span_s
    return Finding(
        "outlier-dates",
        Severity.SEVERE,
        f"{count(found.rows)} of {count(seen.rows)} rows ({found.before} before, {found.after} after) are dated far"
        f" from all others, which lie between {_short(found.first_us)} and {_short(found.last_us)}; the first is of"
        f" {_short(first)}, the last of {_short(last)}.",
        f"The span is {duration(whole_s)} instead of {duration(span_s)}: mean rates are too low by a factor of"
        f" {whole_s / max(span_s, 1e-6):.3g}, and periods and panes are mostly empty. {_as_it_lies(seen)}".rstrip(),
        f"Leave them out: --time \"if(TIME between '{instant(found.first_us)}' and '{instant(found.last_us)}', TIME,"
        ' null)".',
        {
            "rows": found.rows,
            "before": found.before,
            "after": found.after,
            "first_us": found.first_us,
            "last_us": found.last_us,
        },
    )


def _as_it_lies(seen: Evidence) -> str:
    """What outliers do to who reads the source in its order."""
    source = seen.lint.get("source") or {}
    late, without = (source.get(name) for name in ("all", "without_outliers"))
    if not late or not without or late["late"] < 2 * max(without["late"], 1):
        return ""
    return (
        f"Read in the order of the source, line {late['last_rise']:,} makes {share(late['late'] / late['rows'])} late."
    )


def source_order(seen: Evidence) -> Finding | None:
    """Rows of the source that are out of time order."""
    source = seen.lint.get("source")
    if not source:
        return None
    told = source["without_outliers"] or source["all"]
    if told["late"] < thresholds.LATE_SHARE * told["rows"]:
        return None
    latest_s = told["latest_us"] / 1e6
    is_jitter = latest_s < thresholds.LATE_SPAN * seen.span_s
    files = f" in {count(told['files'])} files" if told["files"] > 1 else ""
    first = "first " if source["all"]["rows"] < seen.rows else ""  # a long source is looked at in part
    back = "time steps back " + ("once" if told["steps_back"] == 1 else f"{count(told['steps_back'])} times")
    return Finding(
        "source-order",
        Severity.NOTE if is_jitter else Severity.WARNING,
        f"{count(told['late'])} of the {first}{count(told['rows'])} rows of the source{files} are late, by up to"
        f" {duration(latest_s)}; {back}: "
        + ("it is in time order but for that." if is_jitter else _order_of(told["steps_back"], told["rows"])),
        "The trace is sorted by time, so counts, plans and rates hold; lateness, watermarks and the order of rows of"
        " one instant are not those of production"
        + ("." if is_jitter else ", and what reads the source as it lies sees another stream."),
        "",
        {
            "late": told["late"],
            "share": told["late"] / told["rows"],
            "latest_s": latest_s,
            "steps_back": told["steps_back"],
        },
    )


def _order_of(steps_back: int, rows: int) -> str:
    """In what order a source is that is in no time order."""
    if steps_back * 10 < rows:
        return f"it consists of {count(steps_back + 1)} blocks, each in time order."
    return "it is in the order of something else than time."


def clocks(seen: Evidence) -> Finding | None:
    """Streams that run by different clocks."""
    told = seen.lint["clocks"]
    if not told or not told["shifts"]:
        return None
    name, other, ahead_s, at_shift, as_is = told["shifts"][0]
    behind = name if ahead_s > 0 else other
    against = other if ahead_s > 0 else name
    by = abs(ahead_s)
    pairs = [shift for shift in told["shifts"] if abs(shift[2]) == by]
    late = sorted({shift[0] if shift[2] > 0 else shift[1] for shift in pairs}, key=told["names"].index)
    named = ", ".join(label(each) for each in late)
    return Finding(
        "clocks",
        Severity.SEVERE,
        f"The clock of {named} is {duration(by)} behind that of others: ups and downs of {label(behind)} and"
        f" {label(against)} correlate at {at_shift:.2f} with {duration(by)} added to the former, at {as_is:.2f} as they"
        f" stand ({len(told['shifts'])} such pairs of {told['of']}s).",
        "What the trace has at one time did not happen at one time: shares of keys over time, peaks, joins and windows"
        " across streams do not hold; counts over the whole trace do.",
        f'Add it where the times are read: --time "if({told["of"].upper()} in (...), TIME + interval {by // 60}'
        ' minutes, TIME)".',
        {"behind": late, "seconds": by, "correlation": at_shift, "as_is": as_is, "pairs": len(told["shifts"])},
    )


def few_rows(seen: Evidence) -> Finding | None:
    """Too few rows, or too few of the heaviest key, for its share to be known."""
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
        f"{count(rows)} rows, of which the heaviest key has {count(heaviest)}: its share lies between {share(low)} and"
        f" {share(high)} (95 %).",
        f"The floor of the imbalance and the useful channels ({useful}) are as uncertain; differences between schemes"
        " of that size are chance.",
        "Take a longer sample.",
        {"rows": rows, "heaviest": heaviest, "f_max_low": low, "f_max_high": high},
    )


def short_span(seen: Evidence) -> Finding | None:
    """Less than two days."""
    if seen.span_s >= thresholds.DAYS_S or seen.rows < 2:
        return None
    return Finding(
        "short-span",
        Severity.NOTE,
        f"All rows{' but outliers' if seen.outliers.rows else ''} lie within {duration(seen.span_s)}, less than two"
        " days.",
        "No time of day was seen twice: what is said over time (peaks, drift, how a plan ages) is of this one stretch.",
        "",
        {"span_s": seen.span_s},
    )


def _part(of_all: float) -> str:
    """What part of all it is, in words where it is all of them."""
    return "all" if of_all == 1 else f"{share(of_all)} of all"


def _short(us: int) -> str:
    """A time to the second."""
    return instant(us // 1_000_000 * 1_000_000)
