"""Best scheme of a comparison, and its table at one channel count."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapt.core.engines.names import SCHEMES_BY_NAME
from adapt.core.labels import as_today, today_in
from adapt.core.metrics import column_named
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.splitting.names import PlannedSplitting, Splitting
from adapt.core.phrases import counted
from adapt.core.table import Cell, Column, Table
from adapt.core.verdict.verdict import Verdict
from adapt.core.verdict.verdict_class import VerdictClass

Row = Mapping[str, Any]

_WHOLE = SCHEMES_BY_NAME.keys()
_SPLIT = frozenset(way.value for way in (*PlannedSplitting, *Splitting) if way is not Splitting.ONE_CHOICE)

FIRST = ("imbalance", "best_possible", "times_best_possible", "state_moved", "pinned_keys", "merge_tuples")
"""Columns displayed by default."""


def at_channels(compared: Table, channels: int) -> Table:
    """Schemes at one channel count, with the columns displayed by default.

    Args:
        compared: Rows of a comparison (`Comparison.table`).
        channels: Channel count; the last one compared if no row has it.
    """
    counts = compared.values("channels")
    shown = channels if channels in counts else (counts[-1] if counts else channels)
    rows = [row for row in compared.records() if row["channels"] == shown]
    known = {column.name: column for column in compared.columns}
    gap = column_named("times_best_possible")
    columns = [known.get(name, gap) for name in FIRST if name in known or name == "times_best_possible"]
    today = today_in(compared)
    cells = [
        [
            as_today(today) if row["scheme"] == today else named(row),
            *(_gap(row) if column is gap else row[column.name] for column in columns),
        ]
        for row in rows
    ]
    others = " and number of workers" if len(set(counts)) > 1 else ""
    note = (
        "best_possible is the best possible imbalance without splitting keys; times_best_possible is imbalance over"
        f" that. --all shows every column{others}."
    )
    return Table.from_rows(f"Schemes compared at {shown:,} channels", [Column("scheme"), *columns], cells, note)


def best_sentences(compared: Table, verdict: Verdict | None) -> list[str]:
    """Best scheme within the limit of a verdict, in words.

    With what to prefer to it, as it is the best of all rows, in-sample. Empty without a verdict.
    """
    best = "" if verdict is None else best_sentence(compared, verdict.channels, verdict.max_imbalance)
    return [f"In-sample, of the schemes compared: {best}{_instead(verdict)}"] if verdict and best else []


def _instead(verdict: Verdict) -> str:
    """What to do instead of taking the best scheme."""
    tested = "" if verdict.out_of_sample is None else " and was judged on later windows"
    match verdict.verdict_class:
        case VerdictClass.BALANCED:
            return " Today's placement is within the limit: keep it."
        case VerdictClass.UNKNOWN:
            return " Later windows do not confirm any of them: change nothing yet." if tested else ""
        case _ if not verdict.pins_nothing:
            return f" Prefer the verdict's plan: it pins {counted(verdict.keys_to_pin or 0, 'key')}{tested}."
        case _:
            return ""


def best_plan(plans: Sequence[Plan], channels: int, limit: float) -> Plan | None:
    """The plan of whole keys that `best_sentence` names; None without plans."""
    whole = [plan for plan in plans if plan.channels == channels and not plan.splits]
    known = [plan for plan in whole if plan.metrics.get("imbalance") is not None]
    even = [plan for plan in known if _imbalance(plan.metrics) <= limit]
    if even:
        return min(even, key=lambda plan: _least_migration(plan.metrics))
    return min(known, key=lambda plan: _imbalance(plan.metrics), default=None)


def best_sentence(compared: Table, channels: int, limit: float) -> str:
    """Best scheme at a channel count, in words; empty without load.

    Among schemes that keep keys whole and stay within the limit, the one that migrates least; doing nothing only if
    there is no other. If none does, the most balanced of them, and the most balanced scheme that splits keys, with its
    cost.
    """
    records: list[Row] = list(compared.records())
    rows = [row for row in records if row["channels"] == channels and row["imbalance"] is not None]
    whole, split = ([row for row in rows if row["scheme"] in names] for names in (_WHOLE, _SPLIT))
    whole = [row for row in whole if row["scheme"] != today_in(compared)] or whole
    even = [row for row in whole if _imbalance(row) <= limit]
    if even:
        chosen = min(even, key=_least_migration)
        pinned = f" with {counted(chosen['pinned_keys'], 'pinned key')}" if chosen["pinned_keys"] else ""
        least = ", the least migration within the limit" if chosen["m"] and len(even) > 1 else ""
        return f"best is {named(chosen)}, imbalance {chosen['imbalance']:.3f}{pinned}{least}."
    best = [
        f"best without splitting keys is {named(row)}, imbalance {row['imbalance']:.3f}."
        for row in sorted(whole, key=_imbalance)[:1]
    ]
    for row in sorted(split, key=_imbalance)[:1]:
        messages = counted(row["merge_tuples"], "merge message")
        best.append(
            f"Best with splitting is {named(row)}, imbalance {row['imbalance']:.3f}, {row['channels_per_key']:.2f}"
            f" workers per key; needs a mergeable aggregate and adds {messages}."
        )
    return " ".join(best)


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
