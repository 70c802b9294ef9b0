"""Charts of a verdict: channels before and after, the life-lines of hot keys, skew over time."""

from dataclasses import replace

from adapt.core.charts.axes import across, colours, column_of, up
from adapt.core.charts.chart import Chart, Records, chart
from adapt.core.charts.over_time import imbalance_per_period
from adapt.core.charts.theme import PALETTE
from adapt.core.labels import count, distinct, label
from adapt.core.table import Column, Kind, Table
from adapt.core.values import human

MOST_CHANNELS = 32
MOST_LINES = 8
_LOW = 70
"""The height of a small chart."""


def channels_before_after(table: Table) -> Chart:
    """Two bars a channel: its load over the average before and after, those that were fullest first."""
    names = ("before", "after")
    kept = table.records()[:MOST_CHANNELS]
    labels = distinct([label(str(row["channel"])) for row in kept])
    column = Column("", Kind.RATIO)
    points: Records = [
        {"k": text, "y": row[name], "series": name, "d": f"channel {text}: {human(row[name], column)} {name}"}
        for text, row in zip(labels, kept, strict=True)
        for name in names
        if row[name] is not None
    ]
    sentence = f"{table.note} The fullest before come first"
    if len(kept) < len(table.rows):
        sentence += f"; {count(len(kept))} of {count(len(table.rows))} channels are drawn"
    y = up(table, "before", zero=True)
    axis = {"title": "channel", "labelAngle": 0, "labelOverlap": True}
    encoding = {
        "x": {"field": "k", "type": "ordinal", "sort": None, "axis": axis},
        "xOffset": {"field": "series", "sort": list(names)},
        "y": y | {"axis": y["axis"] | {"title": "load over the average"}},
        "color": colours(names),
        "description": {"field": "d"},
    }
    return chart(table.title, {"mark": "bar", "encoding": encoding}, points, f"{sentence}.", table)


def skew_over_time(table: Table) -> Chart:
    """The imbalance of each pane as placed today, and the floor under it."""
    return replace(imbalance_per_period(table, at="pane"), title=table.title)


def life_lines(table: Table) -> list[Chart]:
    """A small chart for each of the heaviest keys: its share of each pane.

    Args:
        table: Rows of key, pane, start and share, key by key (`HotKeys.lines_table`).
    """
    by_key: dict[str, Records] = {}
    for row in table.records():
        by_key.setdefault(str(row["key"]), []).append(row)
    kept = list(by_key.items())[:MOST_LINES]
    return [
        _life_line(title, line, table)
        for title, (_, line) in zip(distinct([label(key) for key, _ in kept]), kept, strict=True)
    ]


def _life_line(title: str, line: Records, table: Table) -> Chart:
    start, share = column_of(table, "start"), column_of(table, "share")
    points: Records = [
        {"x": row["pane"], "y": row["share"], "d": f"{human(row['start'], start)}: {human(row['share'], share)}"}
        for row in line
    ]
    peak = max(line, key=lambda row: float(row["share"]))
    since = human(peak["start"] // 1_000_000 * 1_000_000, start)
    sentence = f"Its share of each pane; the most, {human(peak['share'], share)}, from {since} on."
    # One area: a description of each point would part it into as many, stacked.
    encoding = {"x": across(table, "pane"), "y": {**up(table, "share", zero=True), "stack": None}}
    mark = {"type": "area", "interpolate": "step", "color": PALETTE[0], "opacity": 0.75}
    return chart(title, {"height": _LOW, "mark": mark, "encoding": encoding}, points, sentence, table)
