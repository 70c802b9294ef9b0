"""Time series of a replay: intervals, workers, moves and crashes."""

from collections.abc import Sequence
from dataclasses import replace

from adapt.core.stage.input.offered_load import Bounds
from adapt.core.stage.outcome import Outcome
from adapt.core.table import Column, Kind, Table

CASE = Column("case", about="static (do nothing: no moves), or the rebalancing policy")


def series_tables(outcomes: Sequence[Outcome], bounds: Bounds) -> dict[str, Table]:
    """Tables `intervals` (with capacity), `workers`, `moves` and `crashes` of all cases."""
    tables = [(outcome.case, outcome.simulated.tables()) for outcome in outcomes]
    names = ("intervals", "workers", "moves", "crashes")
    joined = {name: _joined([(case, each[name]) for case, each in tables]) for name in names}
    intervals = joined["intervals"]
    possible = [
        (bounds.capacity.by(one.end_s) - bounds.capacity.by(one.start_s)) / bounds.row_s / (one.end_s - one.start_s)
        for outcome in outcomes
        for one in outcome.simulated.intervals
    ]
    column = Column("capacity", Kind.NUMBER, "rows/s", "of all workers, for rows of mean cost")
    rows = [(*row, rate) for row, rate in zip(intervals.rows, possible, strict=True)]
    return joined | {"intervals": replace(intervals, columns=(*intervals.columns, column), rows=tuple(rows))}


def _joined(tables: Sequence[tuple[str, Table]]) -> Table:
    """Concatenated tables, with the case as the first column."""
    first = tables[0][1]
    rows = tuple((case, *row) for case, table in tables for row in table.rows)
    return replace(first, columns=(CASE, *first.columns), rows=rows)
