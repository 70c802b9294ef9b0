"""Charts of load by rank, by hot key and by channel."""

from collections.abc import Mapping, Sequence

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.charts.axes import DASHED, INK, PALETTE, Real, column_of, is_real, log_spaced, named, powers, ticks, up
from adapt.core.charts.chart import Chart, Records, chart, written_bars
from adapt.core.labels import distinct, label
from adapt.core.table import Cell, Column, Kind, Table
from adapt.core.values import human

MOST_RANKS = 300
MOST_BARS = 20
MOST_CHANNELS = 64
_MOST_DOTS = 30
_MOST_ROWS = 40
"""Keys of a heat map."""


def rank_frequency(
    table: Table,
    law: Table | None = None,
    thresholds: Mapping[str, Real] | None = None,
) -> Chart:
    """Share of the key at each rank, on log-log scales.

    Args:
        law: The fitted Zipf law in one row (`zipf_table`), drawn over its range.
        thresholds: Named shares, drawn as horizontal lines.
    """
    pairs = [(at, weight) for at, weight in _weighed(table, "rank", "share") if is_real(at) and at > 0 and weight > 0]
    pairs.sort()
    kept = [pairs[at] for at in log_spaced([at for at, _ in pairs], MOST_RANKS)]
    column = column_of(table, "share")
    points: Records = [
        {
            "x": at,
            "y": weight,
            "part": "dot" if number < _MOST_DOTS else "",
            "d": f"rank {at}: {human(weight, column)}",
        }
        for number, (at, weight) in enumerate(kept)
    ]
    sentence = f"The {named(table, 'share')} of the key at each rank, on log-log scales. Steeper is more skewed."
    if len(kept) < len(pairs):
        sentence += f" The chart shows {len(kept):,} of {len(pairs):,} ranks."
    if kept:
        fitted, fit_text = _fitted(law)
        crossed, rule_text = _crossed(thresholds or {}, kept, column)
        points += [*fitted, *crossed]
        sentence += fit_text + rule_text
    log = {"scale": {"type": "log"}}
    heights = [point["y"] for point in points]
    encoding = {
        "x": {"field": "x", "type": "quantitative", **log, "axis": ticks(table, "rank") | powers(at for at, _ in kept)},
        "y": {**up(table, "share"), **log, "axis": ticks(table, "share") | powers(heights)},
    }
    dots = {
        "mark": {"type": "circle", "size": 26, "opacity": 1, "color": PALETTE[0]},
        "transform": [{"filter": "datum.part == 'dot'"}],
        "encoding": {"description": {"field": "d"}},
    }
    line = {
        "mark": {"type": "line", "color": PALETTE[0]},
        "transform": [{"filter": "datum.part == 'dot' || datum.part == ''"}],
    }
    fit = {"mark": DASHED, "transform": [{"filter": "datum.part == 'fit'"}]}
    rules = {
        "mark": {"type": "rule", "color": PALETTE[1], "strokeWidth": 1.2, "aria": False},
        "transform": [{"filter": "datum.part == 'rule'"}],
        "encoding": {"x": None},
    }
    names = {
        "mark": {"type": "text", "align": "right", "dy": -6, "color": INK, "fontSize": 10.5, "aria": False},
        "transform": [{"filter": "datum.part == 'rule'"}],
        "encoding": {"x": {"value": "width"}, "text": {"field": "t"}},
    }
    return chart(
        "Rank-frequency plot", {"encoding": encoding, "layer": [line, fit, rules, names, dots]}, points, sentence, table
    )


def _fitted(law: Table | None) -> tuple[Records, str]:
    """Both ends of the law's line, scaled to the share of its range, and a sentence about it."""
    row = law.records()[0] if law is not None and law.rows else {}
    exponent, first, last, carried = (
        row.get(name) for name in ("zipf_exponent", "zipf_first_rank", "zipf_last_rank", "zipf_share")
    )
    if not (is_real(exponent) and is_real(first) and is_real(last) and is_real(carried)):
        return [], ""
    scale = carried / float(np.sum(np.arange(first, last + 1, dtype=float) ** -exponent))
    points: Records = [{"x": at, "y": scale * float(at) ** -exponent, "part": "fit"} for at in (first, last)]
    ranks = f"ranks {int(first):,} to {int(last):,}"
    return points, f" The dashed line is the Zipf law rank^-{exponent:.2f}, fitted to {ranks}."


def _crossed(thresholds: Mapping[str, Real], kept: Sequence[tuple[Real, Real]], column: Column) -> tuple[Records, str]:
    """Horizontal lines at shares within the plotted range, and sentences about them."""
    low, high = min(weight for _, weight in kept) / 2, max(weight for _, weight in kept) * 4
    points: Records = []
    text = ""
    for name, level in thresholds.items():
        if low <= level <= high:
            points.append({"y": level, "part": "rule", "t": name, "d": f"{name}: {human(level, column)}"})
            text += f" The line at {human(level, column)} is {name}."
    return points, text


def top_keys(table: Table, key: str = "key", share: str = "share", most: int = MOST_BARS) -> Chart:
    """The hottest keys as bars, labeled with their shares."""
    pairs = sorted(_weighed(table, key, share), key=lambda pair: -pair[1])
    labels = distinct([label(name) for name, _ in pairs[:most]])
    sentence = f"The {named(table, share)} of the hottest {key}s"
    sentence += f": {most:,} of {len(pairs):,} in the table." if len(pairs) > most else "."
    drawn = [(text, weight) for text, (_, weight) in zip(labels, pairs, strict=False)]
    return written_bars("Hot keys", drawn, column_of(table, share), sentence, table)


def channel_loads(table: Table, channel: str = "channel", load: str = "load") -> Chart:
    """Load of each channel, and the mean."""
    pairs = _weighed(table, channel, load)
    mean = sum(height for _, height in pairs) / len(pairs) if pairs else 0.0
    sentence = f"The {named(table, load)} of each worker; the dashed line is the mean."
    if mean > 0:
        sentence += f" The busiest worker has {max(height for _, height in pairs) / mean:.3f} times the mean."
    if len(pairs) > MOST_CHANNELS:
        sentence += f" The chart shows the {MOST_CHANNELS} busiest of {len(pairs):,} workers."
        pairs = sorted(pairs, key=lambda pair: -pair[1])[:MOST_CHANNELS]
    column = column_of(table, load)
    points: Records = [
        {"k": text, "y": height, "mean": mean, "d": f"{channel} {text}: {human(height, column)}"}
        for text, (_, height) in zip(distinct([label(name) for name, _ in pairs]), pairs, strict=True)
    ]
    across = {
        "field": "k",
        "type": "ordinal",
        "sort": None,
        "axis": {"title": "worker", "labelAngle": 0, "labelOverlap": "greedy", "labelSeparation": 4},
    }
    bars = {"mark": "bar", "encoding": {"x": across, "y": up(table, load, zero=True), "description": {"field": "d"}}}
    line = {
        "mark": {**DASHED, "type": "rule"},
        "encoding": {"y": {"aggregate": "max", "field": "mean", "type": "quantitative"}},
    }
    return chart("Load per worker", {"layer": [bars, line]}, points, sentence, table)


def _weighed(table: Table, name: str, weight: str) -> list[tuple[Cell, Real]]:
    """Pairs of a name and a numeric weight."""
    pairs = zip(table.values(name), table.values(weight), strict=True)
    return [(cell, load) for cell, load in pairs if is_real(load)]


def keys_over_time(names: Sequence[str], starts: Table, loads: Floats) -> Chart:
    """Load of the hottest keys in each window, as a heat map.

    Args:
        names: The keys, hottest first.
        starts: The start of each window, in its first column.
        loads: Load over the mean of all keys; shape (keys, windows).
    """
    column, shown = starts.columns[0], distinct([label(name) for name in names[:_MOST_ROWS]])
    times = [human(row[0], column)[:19] for row in starts.rows]
    points: Records = [
        {"x": time, "k": name, "y": round(float(load), 3), "d": f"{name}, {time}: {load:.2f} times the mean"}
        for name, row in zip(shown, loads, strict=False)
        for time, load in zip(times, row, strict=True)
    ]
    encoding = {
        "x": {"field": "x", "type": "ordinal", "sort": None, "axis": {"title": "window", "labelOverlap": True}},
        "y": {"field": "k", "type": "nominal", "sort": None, "axis": {"title": None}},
        "color": {"field": "y", "type": "quantitative", "scale": {"scheme": "blues", "domainMin": 0}},
        "description": {"field": "d"},
    }
    columns = (column, *(Column(name, Kind.RATIO) for name in shown))
    rows = [(row[0], *map(float, loads[: len(shown), at])) for at, row in enumerate(starts.rows)]
    table = Table.from_rows("Load over time", columns, rows)
    sentence = "Load of each key in each window, over the mean of all keys; the hottest keys first."
    body = {"height": {"step": 16}, "mark": "rect", "encoding": encoding}
    return chart("Load over time", body, points, sentence, table)
