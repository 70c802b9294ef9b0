"""Comparing ways of splitting keys: each on the same messages, under the names by which partitioners are judged."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adapt.core.errors import UsageError
from adapt.core.hashing.names import HashName
from adapt.core.partitioners.splitting.messages import Messages
from adapt.core.partitioners.splitting.names import Splitting
from adapt.core.partitioners.splitting.split import CHOICES, Split, split
from adapt.core.resources.floors import imbalance_floor, r_floor
from adapt.core.resources.functions import Floats, Resources
from adapt.core.resources.imbalance import empty_channels, max_over_mean, max_over_min, relative_imbalance
from adapt.core.resources.metrics import METRIC_COLUMNS
from adapt.core.table import Column, Kind, Table

SCHEMA = "adapt.splitting/1"
"""The format of a comparison as data."""

SHARED = ("imbalance", "imbalance_floor", "r_s", "r_c", "r_n", "r_floor", "b", "empty_channels")
"""The metrics of partitioners that say something of split keys: all but those of migration and of explicit maps."""

COLUMNS = (
    Column("scheme"),
    Column("channels", Kind.COUNT),
    *(column for column in METRIC_COLUMNS if column.name in SHARED),
    Column("choices", Kind.COUNT, about="channels that a heavy key may use"),
    Column("head_keys", Kind.COUNT, about="keys that are heavy: above 1/(5N) of the stream"),
    Column("channels_per_key", Kind.RATIO, about="channels with state of a key, on average over keys and periods"),
    Column("most_channels", Kind.COUNT, about="channels of the key that is on most"),
    Column("merge_tuples", Kind.COUNT, about="one a key, extra channel and period, for whoever merges partial results"),
    Column("merge_share", Kind.SHARE, about="merge tuples over messages"),
)

NOTE = (
    "Floors are those of whole keys, which splitting may pass. Loads are without the merge tuples, which go to whoever"
    " merges; each channel that has met a key holds a part of its state."
)


@dataclass(frozen=True, slots=True)
class SplitRow:
    """One way of splitting keys over one number of channels.

    Attributes:
        split: Where the messages went.
        loads: State, computation and network of each channel, shape (3, channels).
        data: The numbers of the row by column name.
    """

    split: Split
    loads: Floats
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SplitComparison:
    """Ways of splitting keys, compared.

    Attributes:
        rows: By way, then in the order of the channel counts.
    """

    rows: tuple[SplitRow, ...]

    def table(self) -> Table:
        """The rows, each ratio beside its floor."""
        return Table.of("Key splitting compared", COLUMNS, [list(row.data.values()) for row in self.rows], note=NOTE)

    def as_data(self) -> dict[str, Any]:
        """The comparison as JSON data."""
        return {"schema": SCHEMA, "rows": [row.data for row in self.rows]}

    def _repr_html_(self) -> str:
        """The table, for a notebook."""
        return self.table()._repr_html_()


def compare_splitting(
    messages: Messages,
    channels: Sequence[int],
    *,
    splittings: Sequence[Splitting] = tuple(Splitting),
    resources: Resources | None = None,
    choices: int = CHOICES,
    sources: int = 1,
    hash: HashName = HashName.MURMUR3,
) -> SplitComparison:
    """Split the keys of a stream in every way for every channel count.

    Args:
        messages: The stream.
        channels: The channel counts.
        splittings: What to compare.
        resources: Load functions and tolerances; "LLL" and 1.2 if not given.
        choices: d of d-choices, from 2.
        sources: How many senders there are, from 1.
        hash: Places keys.

    Raises:
        UsageError: no channel count or way is given, a number is out of its range, or a resource was measured.
    """
    if not channels or not splittings:
        raise UsageError("a comparison needs at least one way of splitting and one channel count")
    weighed = resources or Resources()
    if weighed.sources:
        raise UsageError(
            f"key splitting is judged by functions of counts; leave out what is measured: {weighed.sources[0]}"
        )
    return SplitComparison(
        tuple(
            _row(split(messages, way, count, choices=choices, sources=sources, hash=hash), messages, weighed)
            for way in splittings
            for count in channels
        )
    )


def split_loads(done: Split, resources: Resources) -> Floats:
    """L_k(i) of every channel, shape (3, channels): beta of what each key sent there, if it sent anything.

    A constant function counts the keys on a channel, so that a split key counts on each of its channels.
    """
    used = done.weights > 0
    owners, weights = done.places.channels[used], done.weights[used]
    return np.stack(
        [np.bincount(owners, weights=function.of(weights), minlength=done.channels) for function in resources.functions]
    )


def _row(done: Split, messages: Messages, resources: Resources) -> SplitRow:
    loads = split_loads(done, resources)
    ratios = [max_over_min(load) for load in loads]
    whole = np.bincount(messages.rows, weights=messages.weights, minlength=len(messages.keys))
    keys = np.sort(resources.functions[2].of(whole[whole > 0]))[::-1]
    total = float(keys.sum())
    sent = len(messages.rows)
    data = {
        "scheme": done.splitting.value,
        "channels": done.channels,
        "imbalance": max_over_mean(loads[2]),
        "imbalance_floor": imbalance_floor(float(keys[0]), total, done.channels) if len(keys) else None,
        "r_s": ratios[0],
        "r_c": ratios[1],
        "r_n": ratios[2],
        "r_floor": r_floor(keys[: done.channels], total, done.channels),
        "b": relative_imbalance(ratios, resources.tolerance),
        "empty_channels": empty_channels(loads[2]),
        "choices": done.choices,
        "head_keys": done.head_keys,
        "channels_per_key": done.channels_per_key,
        "most_channels": done.most_channels_per_key,
        "merge_tuples": done.merge_tuples,
        "merge_share": done.merge_tuples / sent if sent else None,
    }
    return SplitRow(done, loads, data)
