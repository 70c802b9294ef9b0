"""Advice as tables: division of work, useful workers, salts of hot keys."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from adapt.core.advice.division import Division, better_units, better_workers, even_units
from adapt.core.advice.salts import MOST_SALTS, salts_needed
from adapt.core.engines.engine import WorkUnits
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.measures.floors import imbalance_floor
from adapt.core.table import Column, Kind, Table

MOST_UNITS = 1_000_000
"""Most units that are suggested where the engine has no limit."""

EXCESS = Column("excess", Kind.SHARE, about="load of the busiest above the mean, however balanced the keys")


def division_table(engine: str, units: WorkUnits, workers: int, number: int | None) -> Table:
    """Division of an engine's units of work, and better numbers nearby.

    Args:
        number: The units. None: the engine's default for this number of workers.
    """
    default = units.default(workers) if units.default else None
    asked = Division(number or default or 0, workers)
    rows = [("requested" if number else f"{engine}'s default", asked)]
    if default is not None and default != asked.units:
        rows.append((f"{engine}'s default", Division(default, workers)))
    rows += _better(asked, units.most or MOST_UNITS, f"more {units.short}")
    if units.most is not None and asked.units < units.most:
        rows.append((f"max {units.short}", Division(units.most, workers)))
    columns = (
        Column("case"),
        Column(units.count, Kind.COUNT),
        Column(units.name.replace(" ", "_"), Kind.COUNT),
        Column("busiest", Kind.COUNT, about=f"{units.short} of the busiest worker"),
        Column("fewest", Kind.COUNT, about=f"{units.short} of the least busy worker"),
        Column("idle", Kind.COUNT, about=f"{units.workers} without {units.short}"),
        EXCESS,
    )
    cells = [(case, each.workers, each.units, each.busiest, each.fewest, each.idle, each.excess) for case, each in rows]
    default_note = f" The default for {workers} {units.workers} is {default}." if default else ""
    return Table.from_rows(f"{engine}: {units.name} over {units.workers}", columns, cells, units.note + default_note)


def _better(asked: Division, most: int, more_units: str) -> list[tuple[str, Division]]:
    """The nearest numbers that at least halve the excess, and the nearest that divides evenly."""
    fewer, more = better_workers(asked)
    named = [
        ("fewer workers", fewer),
        ("more workers", more),
        (more_units, better_units(asked, most)),
        ("even", even_units(asked, most) if asked.excess else None),
    ]
    found: list[tuple[str, Division]] = []
    for name, division in named:
        if division is not None and division not in [known for _, known in found]:
            found.append((name, division))
    return found


@dataclass(frozen=True, slots=True)
class HotKey:
    """A key as text, with bounds of its load."""

    key: str
    low: int
    high: int


def keys_table(
    keys: Sequence[HotKey], total: int, parallelism: int, engine: str, partitioner: Partitioner, max_imbalance: Fraction
) -> Table:
    """Salts of hot keys, by the upper bounds of their loads."""
    columns = (
        Column("key"),
        Column("share", Kind.SHARE, about="upper bound of its share of the load"),
        Column("alone", Kind.RATIO, about="load of its worker over the mean, if it is the only key there"),
        Column("salts", Kind.COUNT, about="number of salted keys if you assign each to a worker"),
        Column("salts_hashed", Kind.COUNT, about=f"number of salted keys if {engine} hashes KEY#0, KEY#1, ..."),
        Column("partials", Kind.COUNT, about="partial results to merge per result, with salts_hashed"),
    )
    rows: list[tuple[Any, ...]] = []
    for each in keys:
        salts = salts_needed(each.key, each.high, total, partitioner, max_imbalance)
        share = each.high / total
        rows.append((each.key, share, share * parallelism, salts.placed, salts.hashed, salts.partials))
    note = (
        f"1 salt: no need to split. With these salts the key alone puts no worker above {float(max_imbalance):g} times"
        f" the mean load. A dash: more than {MOST_SALTS:,} salts."
    )
    return Table.from_rows("Salts of hot keys", columns, rows, note)


def useful_table(keys: Sequence[HotKey], total: int, parallelism: int) -> Table:
    """Workers that can be busy while the hottest key stays whole."""
    hottest = keys[0]
    most = total / hottest.low if hottest.low else None
    columns = (
        Column("hottest_key"),
        Column("share", Kind.SHARE),
        Column("useful_workers", Kind.NUMBER, about="1 / share: more workers than that cannot all be busy"),
        Column("imbalance_floor", Kind.RATIO, about=f"lower bound of the imbalance at {parallelism} workers"),
    )
    row = (hottest.key, hottest.low / total, most, imbalance_floor([each.low for each in keys], total, parallelism))
    return Table.from_rows("Useful workers", columns, [row])
