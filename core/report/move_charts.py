"""Chart of state moved between channels."""

from adapt.core.charts.axes import PALETTE, column_of, is_real
from adapt.core.charts.chart import Chart, Records, chart
from adapt.core.table import Table
from adapt.core.values import human

MOST_CHANNELS = 40
"""Most channels on each side; those that move most state are kept."""


def migration_matrix(moves: Table) -> Chart:
    """One square per pair of channels; darker squares move more state.

    Args:
        moves: Rows of from, to, keys and state.
    """
    rows = [row for row in moves.records() if is_real(row["state"])]
    kept = {side: _busiest(rows, side) for side in ("from", "to")}
    state, keys = column_of(moves, "state"), column_of(moves, "keys")
    points: Records = [
        {"from": row["from"], "to": row["to"], "y": row["state"]}
        | {"d": f"{row['from']} to {row['to']}: {human(row['keys'], keys)} keys, state {human(row['state'], state)}"}
        for row in rows
        if row["from"] in kept["from"] and row["to"] in kept["to"]
    ]
    shown = {"type": "ordinal", "axis": {"labelAngle": 0, "labelOverlap": True, "grid": False}}
    encoding = {
        "x": {"field": "to", **shown, "axis": {**shown["axis"], "title": "to worker"}},  # type: ignore[dict-item]
        "y": {"field": "from", **shown, "axis": {**shown["axis"], "title": "from worker"}},  # type: ignore[dict-item]
        "opacity": {"field": "y", "type": "quantitative", "legend": None, "scale": {"zero": True, "range": [0.08, 1]}},
        "description": {"field": "d"},
    }
    sentence = "State moved from one worker to another; stronger colors mean more state."
    if len(points) < len(rows):
        sentence += f" The chart shows {len(points):,} of {len(rows):,} pairs, of the workers that move most state."
    height = max(150, min(360, 26 * len({point["from"] for point in points})))
    body = {"height": height, "mark": {"type": "rect", "color": PALETTE[0]}, "encoding": encoding}
    return chart("Migration between channels", body, points, sentence, moves)


def _busiest(rows: Records, side: str) -> set[int]:
    """The channels of a side that send, or receive, most state."""
    moved: dict[int, float] = {}
    for row in rows:
        moved[row[side]] = moved.get(row[side], 0.0) + row["state"]
    return set(sorted(moved, key=lambda channel: (-moved[channel], channel))[:MOST_CHANNELS])
