"""Advice as tables: how work divides and what divides better, and what heavy keys ask for."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from adapt.core.advice.division import Division, better_units, better_workers, even_units
from adapt.core.advice.salts import MOST_SALTS, salts_needed
from adapt.core.engines.engine import WorkUnits
from adapt.core.keys.partitioner import Partitioner
from adapt.core.table import Column, Kind, Table

MOST_UNITS = 1_000_000
"""The most units that are named where the engine sets no limit."""

LOSS = Column("loss", Kind.SHARE, about="what the busiest has beyond the mean, however even the keys are")


def division_table(engine: str, units: WorkUnits, workers: int, number: int | None) -> Table:
    """How an engine's units of work divide over workers: as asked, by its default, and the nearest that divide better.

    Args:
        number: The units; None, what the engine takes by default for so many workers.
    """
    default = units.default(workers) if units.default else None
    asked = Division(number or default or 0, workers)
    rows = [("as asked" if number else f"{engine}'s default", asked)]
    if default is not None and default != asked.units:
        rows.append((f"{engine}'s default", Division(default, workers)))
    rows += _better(asked, units.most or MOST_UNITS, f"more {units.short}")
    if units.most is not None and asked.units < units.most:
        rows.append((f"most {units.short}", Division(units.most, workers)))
    columns = (
        Column("case"),
        Column(units.count, Kind.COUNT),
        Column(units.name.replace(" ", "_"), Kind.COUNT),
        Column("busiest", Kind.COUNT, about=f"{units.short} of the busiest"),
        Column("least", Kind.COUNT, about=f"{units.short} of the one with fewest"),
        Column("idle", Kind.COUNT, about=f"{units.workers} without any"),
        LOSS,
    )
    cells = [(case, each.workers, each.units, each.busiest, each.least, each.idle, each.loss) for case, each in rows]
    default_note = f" A default that no one sets is {default} at {workers} {units.workers}." if default else ""
    return Table.from_rows(f"{engine}: {units.name} over {units.workers}", columns, cells, units.note + default_note)


def _better(asked: Division, most: int, more_units: str) -> list[tuple[str, Division]]:
    """The nearest changes of one number that lose at most half, and the nearest that loses nothing."""
    fewer, more = better_workers(asked)
    named = [
        ("fewer workers", fewer),
        ("more workers", more),
        (more_units, better_units(asked, most)),
        ("even", even_units(asked, most) if asked.loss else None),
    ]
    found: list[tuple[str, Division]] = []
    for name, division in named:
        if division is not None and division not in [known for _, known in found]:
            found.append((name, division))
    return found


@dataclass(frozen=True, slots=True)
class HeavyKey:
    """A key as text, with what it surely weighs and what it weighs at most."""

    key: str
    low: int
    high: int


def keys_table(
    keys: Sequence[HeavyKey], total: int, parallelism: int, engine: str, partitioner: Partitioner, tolerance: Fraction
) -> Table:
    """What heavy keys ask for, each by the most that it may weigh."""
    columns = (
        Column("key"),
        Column("share", Kind.SHARE, about="of the whole load, at most"),
        Column("alone", Kind.RATIO, about="load of its channel over the mean, if nothing else lay there"),
        Column("salts", Kind.COUNT, about="keys to split it into where each can be placed by hand"),
        Column("salts_hashed", Kind.COUNT, about=f"where {engine} hashes KEY#0, KEY#1, ..."),
        Column("merged", Kind.COUNT, about="channels whose partial results are then merged"),
    )
    rows: list[tuple[Any, ...]] = []
    for each in keys:
        salts = salts_needed(each.key, each.high, total, partitioner, tolerance)
        share = each.high / total
        rows.append((each.key, share, share * parallelism, salts.placed, salts.hashed, salts.merged))
    note = (
        f"1 salt is the key as it is. Salts keep the key alone within {float(tolerance):g} times the mean of"
        f" {parallelism} channels; none up to {MOST_SALTS:,} do where a dash stands."
    )
    return Table.from_rows("Heavy keys: salts", columns, rows, note)


def useful_table(heaviest: HeavyKey, total: int, parallelism: int) -> Table:
    """How many channels can be busy at all as long as the heaviest key stays whole."""
    most = total / heaviest.low if heaviest.low else None
    columns = (
        Column("heaviest"),
        Column("share", Kind.SHARE),
        Column("useful_channels", Kind.NUMBER, about="1 / f_max: beyond it further channels only wait"),
        Column("imbalance_floor", Kind.RATIO, about=f"least imbalance at {parallelism} channels, by this key"),
    )
    row = (heaviest.key, heaviest.low / total, most, max(1.0, heaviest.low / total * parallelism))
    return Table.from_rows("Channels that are useful", columns, [row])
