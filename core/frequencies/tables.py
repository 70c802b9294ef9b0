"""Counted keys as tables."""

from adapt.core.frequencies.frequencies import Frequencies
from adapt.core.partitioners.key_text import key_to_text
from adapt.core.stream import Weight
from adapt.core.table import Column, Kind, Table

NULL_KEY = "(null)"
"""How the null key is shown among keys that have a text."""

MOST_KEYS = 10_000
"""A table lists no more keys; there may be a billion, and who needs all reads the artefact."""


def counts_table(frequencies: Frequencies) -> Table:
    """What was counted, in one row."""
    columns = (
        Column("keys", Kind.COUNT, about="distinct keys"),
        Column("rows", Kind.COUNT),
        Column("weight", about="what a row weighs"),
        Column("total", _kind(frequencies.weight), about="weight of all rows"),
        Column("epsilon", Kind.NUMBER, about="most that a count is too low, as a share of the total; 0: exact"),
        Column("complete_above", Kind.NUMBER, about="every key heavier than this is listed"),
        Column("top_share", Kind.SHARE, about="share of the heaviest key"),
        Column("useful_workers", Kind.NUMBER, about="1 / top_share: more channels than this cannot all be busy"),
    )
    top = float(frequencies.count_high[0]) / frequencies.total if len(frequencies.keys) and frequencies.total else None
    row = (
        frequencies.distinct,
        frequencies.rows,
        frequencies.weight.value,
        _amount(frequencies.total, frequencies.weight),
        frequencies.epsilon,
        frequencies.complete_above,
        top,
        1 / top if top else None,
    )
    return Table.of("Counted keys", columns, [row])


def heaviest_table(frequencies: Frequencies, most: int = MOST_KEYS) -> Table:
    """The heaviest keys, each with the interval that holds its true weight."""
    kind = _kind(frequencies.weight)
    columns = (
        Column("rank", Kind.COUNT),
        Column("key"),
        Column("count_low", kind, about="it weighs no less"),
        Column("count_high", kind, about="it weighs no more"),
        Column("share", Kind.SHARE, about="count_low over the total"),
    )
    keys = frequencies.keys.slice(0, most).to_pylist()
    rows = [
        (
            at + 1,
            NULL_KEY if key is None else key_to_text(key),
            frequencies.count_low[at].item(),
            frequencies.count_high[at].item(),
            float(frequencies.count_low[at]) / frequencies.total if frequencies.total else None,
        )
        for at, key in enumerate(keys)
    ]
    hidden = len(frequencies.keys) - len(rows)
    return Table.of("Heaviest keys", columns, rows, f"and {hidden:,} lighter keys" if hidden else "")


def rank_share_table(frequencies: Frequencies, most: int = 1000) -> Table:
    """Share of the total by rank of the key, heaviest first."""
    columns = (Column("rank", Kind.COUNT), Column("share", Kind.SHARE))
    shares = (frequencies.count_low[:most] / frequencies.total).tolist() if frequencies.total else []
    return Table.of("Share by rank", columns, list(enumerate(shares, start=1)))


def _kind(weight: Weight) -> Kind:
    return {Weight.COUNT: Kind.COUNT, Weight.COST: Kind.NUMBER, Weight.BYTES: Kind.BYTES}[weight]


def _amount(total: float, weight: Weight) -> float | int:
    return total if weight is Weight.COST else int(total)
