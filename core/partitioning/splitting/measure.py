"""What splitting keys loads, replicates and merges, under the names by which partitioners are judged."""

from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.partitioning.measures.metrics import Metrics, metrics_of
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.splitting.messages import Messages
from adapt.core.partitioning.splitting.split import Split
from adapt.core.table import Column, Kind


@dataclass(frozen=True, slots=True)
class MergeCost:
    """What it costs that a key is on several channels.

    Attributes:
        channels_per_key: Channels that hold state of a key, on average over keys and periods; None without messages.
        merge_tuples: Partial results to be merged: one a key, channel beyond its first, and period.

    Source: design, section 5.
    """

    channels_per_key: float | None
    merge_tuples: int


WHOLE = MergeCost(1.0, 0)
"""Of schemes that keep keys whole."""

MERGE_COLUMNS = (
    Column("channels_per_key", Kind.RATIO, about="channels with state of a key, on average"),
    Column("merge_tuples", Kind.COUNT, about="partial results to merge: one a key and channel beyond its first"),
)
"""How `MergeCost` is shown."""


def merge_cost(done: Split) -> MergeCost:
    """What a split costs in merging."""
    return MergeCost(done.channels_per_key, done.merge_tuples)


def split_loads(done: Split, resources: Resources) -> Floats:
    """L_k(i) of every channel, shape (3, channels): beta of what each key sent there, if it sent anything.

    A constant function counts the keys on a channel, so that a split key counts on each of its channels.
    """
    used = done.weights > 0
    owners, weights = done.places.channels[used], done.weights[used]
    costs = (function.costs(weights) for function in resources.functions)
    return np.stack([np.bincount(owners, each, done.channels) for each in costs])


def measure_split(done: Split, messages: Messages, resources: Resources) -> Metrics:
    """Judge a split as partitioners are judged; the floors are those of whole keys, which splitting may pass.

    Loads are without the merge tuples, which go to whoever merges; each channel that has met a key holds a part of its
    state. There is no migration: keys are not kept anywhere.

    Raises:
        UsageError: a resource was measured.
    """
    if resources.sources:
        raise UsageError(
            f"key splitting is judged by functions of counts; leave out what is measured: {resources.sources[0]}"
        )
    whole = np.bincount(messages.rows, weights=messages.weights, minlength=len(messages.keys))
    keys = np.sort(resources.functions[2].costs(whole[whole > 0]))[::-1]
    return metrics_of(
        split_loads(done, resources),
        resources,
        total=float(keys.sum()),
        heavy=keys[: done.channels],
        pair_floor=None,
        explicit_keys=0,
        moved=None,
    )
