"""Tables of a time, a unit and a value."""

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.traces.counting.counts_table import TIMES, read_counts
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.sources.sniff import offered_columns
from adapt.traces.units.kinds import UNIT_LABELS, VALUES, is_wide
from adapt.traces.units.samples import Amount, Samples, Unit


def _read_wide(path: Path) -> Samples:
    """The samples of a table with a column for each unit, as CloudWatch writes."""
    try:
        table = csv.read_csv(path)
        times = table.column(0).cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
        values = {name: table[name].cast(pa.float64()).to_numpy() for name in table.column_names[1:]}
    except pa.ArrowException as error:
        raise BadInput(f"{path}: {error}; write times as 2024-05-01 10:00:00, and numbers") from None
    series = [(Unit(name), times[~np.isnan(each)], each[~np.isnan(each)]) for name, each in values.items()]
    return Samples.of_series("value", Amount.SUM, series, notes=["a column for each unit"])


def read_table(path: Path, value: str = "", unit: str = "") -> Samples:
    """The samples of a table.

    Values of one unit and time are added.

    Args:
        value: Column of values; empty to guess.
        unit: Column of units; empty to guess.
    """
    columns = offered_columns([str(path)])
    if is_wide(columns) and not (value or unit):
        return _read_wide(path)
    for option, name in (("count", value), ("key", unit)):
        if name and name not in columns:
            raise UsageError(f"--{option} {name}: {path} has no such column{did_you_mean(name, columns)}")
    lower = {name.lower(): name for name in columns}
    named = unit or next(lower[label.lower()] for label in UNIT_LABELS if label.lower() in lower)
    left = [name for name in columns if name != named and not TIMES.fullmatch(name.lower())]
    found = [value] if value else [name for name in left if VALUES.fullmatch(name.lower())]
    if len(found) != 1:
        raise UsageError(f"{path}: {' and '.join(map(repr, found))} may each be the values; choose one with --count")
    table = read_counts(path, mapping=Mapping(named), count=found[0])
    amount = Amount.LEVEL if "lag" in found[0].lower() else Amount.SUM
    panes = [(pane.start_us, pane.frequencies) for pane in table.panes] or [(0, table.frequencies)]
    by_unit: dict[str, list[tuple[int, float]]] = {}
    for start, counts in panes:
        for name, number in zip(counts.keys.to_pylist(), counts.count_low.tolist(), strict=True):
            by_unit.setdefault(str(name), []).append((start, number))
    series = [
        (Unit(name), np.array([start for start, _ in each], np.int64), np.array([number for _, number in each], float))
        for name, each in by_unit.items()
    ]
    notes = [f"unit from {named}, value from {found[0]}"]
    return Samples.of_series(found[0], amount, series, is_timed=bool(table.panes), notes=notes)
