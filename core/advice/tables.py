"""Advice as tables: how work divides and what divides better, and what heavy keys ask for."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from adapt.core.advice.division import Division, better_units, better_workers, even_units
from adapt.core.advice.salts import MOST_SALTS, salts_needed
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.schemes.key_groups import MOST_GROUPS, default_max_parallelism
from adapt.core.table import Column, Kind, Table

MOST_PARTITIONS = 1_000_000

LOSS = Column("loss", Kind.SHARE, about="what the busiest has beyond the mean, however even the keys are")


def flink_table(parallelism: int, max_parallelism: int | None) -> Table:
    """How key groups divide over subtasks: as asked, as Flink's default, and the nearest that divide better."""
    default = default_max_parallelism(parallelism)
    asked = Division(max_parallelism or default, parallelism)
    rows = [("as asked" if max_parallelism else "Flink's default", asked)]
    if max_parallelism and default != max_parallelism:
        rows.append(("Flink's default", Division(default, parallelism)))
    rows += _better(asked, MOST_GROUPS, "more groups")
    if asked.units < MOST_GROUPS:
        rows.append(("most groups", Division(MOST_GROUPS, parallelism)))
    note = (
        "A running job keeps its max parallelism: state that was written with another is not restored."
        f" A default that no one sets is {default} at {parallelism} subtasks."
    )
    return _table("Flink: key groups over subtasks", ("parallelism", "key_groups", "groups"), rows, note)


def kafka_table(consumers: int, partitions: int) -> Table:
    """How partitions divide over consumers, and the nearest numbers that divide better."""
    asked = Division(partitions, consumers)
    rows = [("as asked", asked), *_better(asked, MOST_PARTITIONS, "more partitions")]
    note = (
        "Range, round-robin and sticky assignment all deal one topic so; range deals every further topic of as many"
        " partitions the same way, to the same consumers. More partitions give keys other partitions."
    )
    return _table("Kafka: partitions over consumers", ("consumers", "partitions", "partitions"), rows, note)


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


def _table(title: str, names: tuple[str, str, str], rows: Sequence[tuple[str, Division]], note: str) -> Table:
    workers, units, short = names
    columns = (
        Column("case"),
        Column(workers, Kind.COUNT),
        Column(units, Kind.COUNT),
        Column("busiest", Kind.COUNT, about=f"{short} of the busiest"),
        Column("least", Kind.COUNT, about=f"{short} of the one with fewest"),
        Column("idle", Kind.COUNT, about=f"{workers} without any"),
        LOSS,
    )
    cells = [(case, each.workers, each.units, each.busiest, each.least, each.idle, each.loss) for case, each in rows]
    return Table.of(title, columns, cells, note)


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
    return Table.of("Heavy keys: salts", columns, rows, note)


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
    return Table.of("Channels that are useful", columns, [row])
