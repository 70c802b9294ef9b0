"""Counted keys as tables."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from adapt.core.counting.frequencies import Counts, Frequencies
from adapt.core.keys.key_text import key_to_text
from adapt.core.metrics import columns_named
from adapt.core.stream import Key, Weight
from adapt.core.table import Cell, Column, Kind, Table

NULL_STREAM = "(none)"
"""The name of rows without a stream."""

NULL_KEY = "(null)"
"""The text of the null key."""

MOST_KEYS = 10_000
"""The most keys in a table; the artefact has all."""


def heaviest_key(frequencies: Frequencies) -> str:
    """The text of the top key."""
    return key_shown(frequencies.keys[0].as_py() if len(frequencies.keys) else "")


def key_shown(key: Key) -> str:
    """A key as text for tables."""
    return NULL_KEY if key is None else key_to_text(key)


def counted_tables(frequencies: Frequencies) -> list[Table]:
    """The counts and the top keys."""
    return [counts_table(frequencies), heaviest_table(frequencies)]


def counts_table(frequencies: Frequencies) -> Table:
    """Totals and accuracy of the counts, in one row."""
    kind = kind_of(frequencies.weight)
    columns = (
        *columns_named("keys rows"),
        Column("weight", about="what a row weighs"),
        Column("total", kind, about="weight of all rows"),
        Column("counts", about="exact, or lossy: with bounds for each key"),
        Column("epsilon", Kind.NUMBER, about="largest undercount, as a share of the total; 0: exact"),
        Column("listed", Kind.COUNT, about="keys with known counts"),
        Column("listed_share", Kind.SHARE, about="share of the total on listed keys, at least"),
        Column("complete_above", Kind.NUMBER, about="every key above this is listed"),
        Column("peak_entries", Kind.COUNT, about="most keys that a counter kept; each counts a block of rows"),
        Column("peak_buffer", Kind.COUNT, about="most keys that it held before dropping rare ones"),
    )
    row = (
        frequencies.distinct,
        frequencies.rows,
        frequencies.weight.value,
        _amount(frequencies.total, frequencies.weight),
        frequencies.as_counted()["counts"],
        frequencies.epsilon,
        len(frequencies.keys),
        float(frequencies.count_low.sum()) / frequencies.total if frequencies.total else None,
        frequencies.complete_above,
        *frequencies.memory_as_data().values(),
    )
    return Table.from_rows("Counted keys", columns, [row], _guarantee(frequencies))


def _guarantee(frequencies: Frequencies) -> str:
    """The guarantee of lossy counts, in words."""
    if frequencies.exact:
        omitted = frequencies.complete_above
        return f"Counts are exact, and every key above {omitted:,.6g} is listed." if omitted else ""
    if frequencies.complete_above == 0:
        return "The stream is short enough that no key was dropped: the counts are exact."
    return (
        f"Counts are too low by at most {frequencies.epsilon:.3g} of the total, and every key above"
        f" {frequencies.complete_above:,.6g} is listed. The number of keys is an estimate, within a few percent."
    )


def heaviest_table(frequencies: Frequencies, most: int = MOST_KEYS) -> Table:
    """Top keys with bounds on weights, and shares of measured columns."""
    kind = kind_of(frequencies.weight)
    columns = (
        Column("rank", Kind.COUNT),
        Column("key"),
        Column("count_low", kind, about="lower bound"),
        Column("count_high", kind, about="upper bound"),
        Column("share", Kind.SHARE, about="count_low / total"),
        *(
            Column(f"{column.source}_share", Kind.SHARE, about="share of the measured column")
            for column in frequencies.measured
        ),
    )
    keys = frequencies.keys.slice(0, most)
    low, high = frequencies.count_low[:most], frequencies.count_high[:most]
    shares = [(column.values[:most] / (column.total or 1.0)).tolist() for column in frequencies.measured]
    intervals = _interval_rows(frequencies, keys, low, high)
    rows = [(at + 1, *row, *(share[at] for share in shares)) for at, row in enumerate(intervals)]
    hidden = len(frequencies.keys) - len(rows)
    return Table.from_rows("Top keys", columns, rows, f"and {hidden:,} more keys" if hidden else "")


def asked_keys_table(frequencies: Frequencies, keys: pa.Array) -> Table:
    """Requested keys, listed or not, with bounds on their weights."""
    kind = kind_of(frequencies.weight)
    columns = (
        Column("key"),
        Column("count_low", kind, about="lower bound"),
        Column("count_high", kind, about="upper bound"),
        Column("share", Kind.SHARE, about="count_low / total"),
    )
    rows = _interval_rows(frequencies, keys, *frequencies.intervals(keys))
    return Table.from_rows("Requested keys", columns, rows)


def streams_counted_table(streams: Mapping[str | None, Frequencies]) -> Table:
    """Each stream with its top key."""
    columns = (
        Column("stream"),
        *columns_named("rows keys"),
        Column("top_key"),
        Column("top_share_low", Kind.SHARE, about="share of the top key, lower bound"),
        Column("top_share_high", Kind.SHARE, about="share of the top key, upper bound"),
        Column("complete_above", Kind.NUMBER, about="every key above this is listed"),
    )
    rows = []
    for name, counted in streams.items():
        top = asked_keys_table(counted, counted.keys[:1]).rows
        high = float(counted.count_high[0]) / counted.total if top and counted.total else None
        shown, (key, _, _, share) = NULL_STREAM if name is None else name, top[0] if top else (None,) * 4
        rows.append((shown, counted.rows, counted.distinct, key, share, high, counted.complete_above))
    return Table.from_rows("Streams", columns, rows)


def _interval_rows(frequencies: Frequencies, keys: pa.Array, low: Counts, high: Counts) -> list[list[Cell]]:
    return [
        [key_shown(key), least.item(), most.item(), float(least) / frequencies.total if frequencies.total else None]
        for key, least, most in zip(keys.to_pylist(), low, high, strict=True)
    ]


def rank_share_table(frequencies: Frequencies, most: int = 1000) -> Table:
    """Share of the total by key rank, for certain ranks.

    All of the first `most` ranks, then about 50 per decade.
    """
    columns = (Column("rank", Kind.COUNT), Column("share", Kind.SHARE))
    certain = int(np.sum(frequencies.count_low >= frequencies.complete_above)) if frequencies.total else 0
    ranks = np.arange(1, min(certain, most) + 1)
    if certain > most:
        beyond = np.geomspace(most, certain, 2 + int(50 * np.log10(certain / most)))
        ranks = np.union1d(ranks, np.rint(beyond).astype(np.int64))
    shares = frequencies.count_low[ranks - 1] / (frequencies.total or 1)
    return Table.from_rows("Share by rank", columns, zip(ranks.tolist(), shares.tolist(), strict=True))


def kind_of(weight: Weight) -> Kind:
    """The column kind of amounts of a weight."""
    return {Weight.COUNT: Kind.COUNT, Weight.COST: Kind.NUMBER, Weight.BYTES: Kind.BYTES}[weight]


def _amount(total: float, weight: Weight) -> float | int:
    return total if weight is Weight.COST else int(total)
