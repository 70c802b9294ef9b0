"""The table of a comparison at one number of workers."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapt.core.engines.names import SCHEMES_BY_NAME
from adapt.core.labels import as_today, today_in
from adapt.core.metrics import column_named
from adapt.core.table import Cell, Column, Table
from adapt.core.verdict.remedies import Remedy

Row = Mapping[str, Any]

_WHOLE = SCHEMES_BY_NAME.keys()

FIRST = ("imbalance", "best_possible", "times_best_possible", "state_moved", "pinned_keys", "merge_tuples")
"""Columns displayed by default."""


def at_channels(compared: Table, channels: int, limit: float | None = None, combined: Remedy | None = None) -> Table:
    """Schemes at one number of workers, with the columns displayed by default.

    Args:
        compared: Rows of a comparison (`Comparison.table`).
        channels: Number of workers; the last one compared if no row has it.
        limit: Tolerated imbalance. Of the schemes of whole keys within it, the one that
            migrates least is then marked; if none is, the most even.
        combined: Pre-aggregation, as a last row.
    """
    counts = compared.values("channels")
    shown = channels if channels in counts else (counts[-1] if counts else channels)
    rows = [row for row in compared.records() if row["channels"] == shown]
    known = {column.name: column for column in compared.columns}
    gap = column_named("times_best_possible")
    columns = [known.get(name, gap) for name in FIRST if name in known or name == "times_best_possible"]
    today = today_in(compared)
    whole = [row for row in rows if row["scheme"] in _WHOLE and row["imbalance"] is not None]
    best = None if limit is None else _best([row for row in whole if row["scheme"] != today] or whole, limit)
    cells = [
        [
            (as_today(today) if row["scheme"] == today else named(row)) + (" *" if row is best else ""),
            *(_gap(row) if column is gap else row[column.name] for column in columns),
        ]
        for row in rows
    ]
    if combined is not None:
        cells.append([combined.words, *(combined.imbalance if each.name == FIRST[0] else None for each in columns)])
    others = " and number of workers" if len(set(counts)) > 1 else ""
    note = (
        "best_possible is the best possible imbalance without splitting keys; times_best_possible is imbalance over"
        f" that. --all shows every column{others}."
    )
    marked = "" if best is None else " (* best of these on all rows, keys whole)"
    return Table.from_rows(f"Schemes compared at {shown:,} workers{marked}", [Column("scheme"), *columns], cells, note)


def _best(rows: Sequence[Row], limit: float) -> Row | None:
    even = [row for row in rows if _imbalance(row) <= limit]
    return min(even, key=_least_migration) if even else min(rows, key=_imbalance, default=None)


def named(row: Row) -> str:
    """A scheme with its construction, if any."""
    return f"{row['scheme']} ({row['construction']})" if row["construction"] else str(row["scheme"])


def _imbalance(row: Row) -> float:
    return float(row["imbalance"])


def _least_migration(row: Row) -> tuple[float, float]:
    """Sort key of schemes within the limit: migration, then imbalance."""
    return float(row.get("m") or 0.0), _imbalance(row)


def _gap(row: Row) -> Cell:
    imbalance, floor = row["imbalance"], row["best_possible"]
    return None if imbalance is None or floor is None else float(imbalance) / float(floor)
