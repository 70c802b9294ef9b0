"""Metrics of split keys: loads, replication, merge messages."""

from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.metrics import columns_named
from adapt.core.partitioning.measures.metrics import Metrics, metrics_of
from adapt.core.partitioning.measures.resources import Resources, load_of
from adapt.core.partitioning.splitting.messages import Messages
from adapt.core.partitioning.splitting.split import Split


@dataclass(frozen=True, slots=True)
class MergeCost:
    """Cost of splitting keys.

    Source: docs/theory.md, the verdict: each further worker of a split key costs a message per window.
    """

    # mean number of channels with state of a key, over keys and periods; None without messages
    channels_per_key: float | None
    merge_tuples: int  # merge messages: one per key, channel beyond its first, and period


WHOLE = MergeCost(1.0, 0)
"""Merge cost of schemes that do not split keys."""

MERGE_COLUMNS = (*columns_named("channels_per_key merge_tuples"),)
"""How `MergeCost` is shown."""


def merge_cost(done: Split) -> MergeCost:
    """The merge cost of a split."""
    return MergeCost(done.channels_per_key, done.merge_tuples)


def split_loads(done: Split, resources: Resources) -> Floats:
    """L_k(i) of every channel, from what each key sent.

    Shape (3, channels).

    A constant function counts the keys on a channel, so that a split key counts on each of its channels.
    """
    used = done.weights > 0
    owners, weights = done.places.channels[used], done.weights[used]
    costs = (load_of(load, weights) for load in resources.loads)
    return np.stack([np.bincount(owners, each, done.channels) for each in costs])


def measure_split(done: Split, messages: Messages, resources: Resources) -> Metrics:
    """The metrics of a split.

    Floors are those of whole keys; splitting can go below them.

    Loads exclude the merge messages, which go to the merger; each channel that received a key holds a part of its
    state. There is no migration: keys are not assigned to channels.
    """
    if resources.sources:
        raise UsageError(
            "schemes that split keys cannot be compared by measured resources; omit --measure, and columns of"
            f" --resources (got {resources.sources[0]!r}), or omit these schemes"
        )
    whole = np.bincount(messages.rows, weights=messages.weights, minlength=len(messages.keys))
    keys = np.sort(load_of(resources.network, whole[whole > 0]))[::-1]
    return metrics_of(
        split_loads(done, resources),
        resources,
        total=float(keys.sum()),
        heavy=keys,
        pair_floor=None,
        pinned_keys=0,
        moved=None,
    )
