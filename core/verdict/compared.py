"""What a comparison shows first: the best of what was compared, and its table at the channels judged."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapt.core.engines.names import SCHEMES_BY_NAME
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.table import Cell, Column, Kind, Table
from adapt.core.verdict.verdict import Verdict

Row = Mapping[str, Any]

_WHOLE = SCHEMES_BY_NAME.keys()
_SPLIT = frozenset(way.value for way in Splitting if way is not Splitting.ONE_CHOICE)

FIRST = ("imbalance", "imbalance_floor", "gap", "migrated_state", "explicit_keys", "merge_tuples")
"""What people are shown of each scheme, if they do not ask for all."""


def at_channels(compared: Table, channels: int) -> Table:
    """The rows of one channel count with what people need first of each scheme.

    Args:
        compared: Rows of a comparison (`Comparison.table`).
        channels: The count; the last one compared where no row has it.
    """
    counts = compared.values("channels")
    shown = channels if channels in counts else (counts[-1] if counts else channels)
    rows = [row for row in compared.records() if row["channels"] == shown]
    known = {column.name: column for column in compared.columns}
    gap = Column("gap", Kind.RATIO, about="imbalance over imbalance_floor")
    columns = [known.get(name, gap) for name in FIRST if name in known or name == "gap"]
    cells = [[named(row), *(_gap(row) if column is gap else row[column.name] for column in columns)] for row in rows]
    left_out = " and the other channel counts" if len(set(counts)) > 1 else ""
    note = (
        "No placement of whole keys has less imbalance than imbalance_floor; gap is how far a scheme is from it."
        f" --all shows every column{left_out}."
    )
    return Table.from_rows(f"Schemes compared at {shown:,} channels", [Column("scheme"), *columns], cells, note)


def told_of(compared: Table, verdict: Verdict | None) -> list[str]:
    """The sentence on what was compared, if there is a verdict to put it to."""
    told = "" if verdict is None else best_sentence(compared, verdict.channels, verdict.tolerance)
    return [told] if told else []


def best_plan(plans: Sequence[Plan], channels: int, limit: float) -> Plan | None:
    """Of the plans for a channel count, the one that `best_sentence` names; None if there is none."""
    known = [plan for plan in plans if plan.channels == channels and plan.metrics.get("imbalance") is not None]
    even = [plan for plan in known if _imbalance(plan.metrics) <= limit]
    if even:
        return min(even, key=lambda plan: _least_migration(plan.metrics))
    return min(known, key=lambda plan: _imbalance(plan.metrics), default=None)


def best_sentence(compared: Table, channels: int, limit: float) -> str:
    """Which of the schemes compared does best at a channel count, in words; nothing where none has a load.

    Of those of whole keys that keep the limit it is the one that migrates least; where none does, the best of them, and
    the best that splits keys with its cost.
    """
    records: list[Row] = list(compared.records())
    rows = [row for row in records if row["channels"] == channels and row["imbalance"] is not None]
    whole, split = ([row for row in rows if row["scheme"] in names] for names in (_WHOLE, _SPLIT))
    even = [row for row in whole if _imbalance(row) <= limit]
    if even:
        chosen = min(even, key=_least_migration)
        mapped = f" with {chosen['explicit_keys']:,} keys mapped one by one" if chosen["explicit_keys"] else ""
        least = ", migrating least of those within the limit" if chosen["m"] and len(even) > 1 else ""
        return f"Of the schemes compared, {named(chosen)} reaches {chosen['imbalance']:.3f}{mapped}{least}."
    told = [f"{named(row)} reaches {row['imbalance']:.3f}" for row in sorted(whole, key=_imbalance)[:1]]
    for row in sorted(split, key=_imbalance)[:1]:
        told.append(
            f"{named(row)}, which splits keys, {row['imbalance']:.3f} at {row['channels_per_key']:.2f} channels a key"
            f" on average and {row['merge_tuples']:,} merge tuples"
        )
    return f"Of the schemes compared, {'; '.join(told)}." if told else ""


def named(row: Row) -> str:
    """A scheme with its construction, if it has one."""
    return f"{row['scheme']} ({row['construction']})" if row["construction"] else str(row["scheme"])


def _imbalance(row: Row) -> float:
    return float(row["imbalance"])


def _least_migration(row: Row) -> tuple[float, float]:
    """By which those within the limit are chosen: migration, and of equals imbalance."""
    return float(row.get("m") or 0.0), _imbalance(row)


def _gap(row: Row) -> Cell:
    imbalance, floor = row["imbalance"], row["imbalance_floor"]
    return None if imbalance is None or floor is None else float(imbalance) / float(floor)
