"""The manifest and profile of a trace as tables."""

from typing import Any

from adapt.core.counting.tables import NULL_KEY
from adapt.core.lint.evidence import LINT
from adapt.core.metrics import column_named
from adapt.core.table import Column, Kind, Table
from adapt.traces.store.trace import Trace

SCHEMA = "adapt.trace/1"


def trace_tables(trace: Trace) -> list[Table]:
    """The tables of a trace in a notebook: overview and top keys."""
    return [overview(trace), top_keys_table(trace)]


def overview(trace: Trace) -> Table:
    """The overview of a trace, in one row."""
    profile, summary = trace.profile, trace.manifest.summary
    span_s = (summary["last_us"] - summary["first_us"]) / 1e6
    rates = profile["rates"]
    facts = profile["facts"]
    top = profile["rank_counts"]
    cells: list[tuple[Column, Any]] = [
        (Column("trace"), trace.path.name),
        (Column("rows", Kind.COUNT), trace.rows),
        (
            column_named("rejected"),
            summary["rejects"]["rows"],
        ),
        (Column("first", Kind.TIME), summary["first_us"]),
        (Column("last", Kind.TIME), summary["last_us"]),
        (Column("rows_per_s", Kind.NUMBER, "rows/s", "mean rate"), trace.rows / span_s if span_s else None),
        (
            Column("peak_rows_per_s", Kind.NUMBER, "rows/s", "rate of the busiest time bin"),
            profile["peak"]["rows"] / (rates["width_us"] / 1e6),
        ),
        (Column("keys", Kind.COUNT, about=_exactness(profile)), profile["distinct_keys"]),
        (Column("key_type"), summary["key_type"]),
        (Column("top_share", Kind.SHARE, about="share of the hottest key"), top[0] / trace.rows if top else None),
        (Column("null_keys", Kind.COUNT), facts["null_keys"]),
        (Column("empty_keys", Kind.COUNT), facts["empty_keys"]),
    ]
    if "cost_us" in profile["totals"]:
        cells.append((Column("cost_us", Kind.NUMBER, "us", "total cost"), profile["totals"]["cost_us"]))
    if "bytes" in profile["totals"]:
        cells.append((Column("bytes", Kind.BYTES, about="total size"), int(profile["totals"]["bytes"])))
    cells += _of_source(trace, span_s)
    return Table.from_rows("Trace", [column for column, _ in cells], [[cell for _, cell in cells]], _note(profile))


def _of_source(trace: Trace, span_s: float) -> list[tuple[Column, Any]]:
    """Columns about the source of a trace that is a sample of its keys; empty without a sample."""
    sample = trace.profile.get(LINT, {}).get("sample")
    if sample is None:
        return []
    rows = trace.rows + sample["left_out"]
    top = trace.profile["rank_counts"]
    return [
        (
            Column("sample", Kind.SHARE, about="of the source's keys; the columns after it are about the source"),
            sample["share"],
        ),
        (Column("source_rows", Kind.COUNT), rows),
        (Column("source_rows_per_s", Kind.NUMBER, "rows/s"), rows / span_s if span_s else None),
        (
            Column("source_keys", Kind.NUMBER, about="estimated from the sample"),
            trace.profile["distinct_keys"] / sample["share"],
        ),
        (Column("source_top_share", Kind.SHARE, about="of the hottest sampled key"), top[0] / rows if top else None),
    ]


def refused(trace: Trace) -> Table:
    """Why rows of the source were rejected."""
    return trace.reading.rejects.table()


def rate_table(trace: Trace) -> Table:
    """Rows per time bin."""
    rates = trace.profile["rates"]
    width = rates["width_us"]
    columns = (Column("time", Kind.TIME, about="start of the bin"), Column("rows", Kind.COUNT))
    rows = [(rates["start_us"] + at * width, count) for at, count in enumerate(rates["rows"])]
    return Table.from_rows("Rows over time", columns, rows, f"bins of {_span(width)}")


def top_keys_table(trace: Trace) -> Table:
    """The keys with the most rows, each with bounds on its count."""
    profile = trace.profile
    missed = profile["top_missed"]
    columns = (
        Column("key"),
        Column("count", Kind.COUNT, about="lower bound"),
        Column("count_high", Kind.COUNT, about="upper bound"),
        Column("share", Kind.SHARE, about="count / rows"),
    )
    rows = [
        (NULL_KEY if key is None else key, count, count + missed, count / trace.rows)
        for key, count in profile["top_keys"]
    ]
    return Table.from_rows("Top keys", columns, rows)


def rank_table(trace: Trace) -> Table:
    """Share of the stream by key rank, hottest first."""
    columns = (Column("rank", Kind.COUNT), Column("share", Kind.SHARE))
    counts = trace.profile["rank_counts"]
    rows = [(rank, count / trace.rows) for rank, count in enumerate(counts, start=1)]
    return Table.from_rows("Share by rank", columns, rows)


def streams_table(trace: Trace) -> Table | None:
    """Rows per stream; None without streams."""
    streams = trace.profile["streams"]
    if not streams:
        return None
    columns = (Column("stream"), Column("rows", Kind.COUNT), Column("share", Kind.SHARE))
    return Table.from_rows("Streams", columns, [(name, rows, rows / trace.rows) for name, rows in streams.items()])


def trace_document(trace: Trace) -> dict[str, Any]:
    """A trace's facts as one JSON document."""
    summary = dict(trace.manifest.summary)
    return {"schema": SCHEMA, "path": str(trace.path), "content_hash": trace.manifest.content_hash, **summary}


def _exactness(profile: dict[str, Any]) -> str:
    return "distinct keys" if profile["distinct_exact"] else "distinct keys, estimated within about 2 %"


def _note(profile: dict[str, Any]) -> str:
    return "" if profile["distinct_exact"] else "keys is an estimate, standard error about 2 %"


def _span(width_us: int) -> str:
    for unit, size in (("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000)):
        if width_us % size == 0:
            return f"{width_us // size} {unit}"
    return f"{width_us / 1000:g} ms"
