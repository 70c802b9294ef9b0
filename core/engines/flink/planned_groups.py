"""Plans as Flink key groups in the ranges of their subtasks."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.engines.exporter import ExportablePlan
from adapt.core.engines.flink.hash import flink_hash
from adapt.core.engines.names import Engine
from adapt.core.errors import BadInput, UsageError
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.schemes.key_groups import MOST_GROUPS, channels_of_groups, groups_for
from adapt.core.stream import Key

Groups: TypeAlias = NDArray[np.int32]
"""Key groups, shape (rows,), each in [0, max parallelism)."""

_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """The key group of each key.

    At a parallelism of the plan's N channels, a key's subtask is its channel. Groups do not change with the
    parallelism, and subtasks have contiguous ranges of them, so a rescale moves whole groups, as in Flink without a
    plan.
    """

    plan: ExportablePlan
    groups: int  # the max parallelism of the job
    explicit: Groups  # the group of each pinned key, in the order of the plan; shape (keys,)

    def groups_of(self, keys: pa.Array | pa.ChunkedArray) -> Groups:
        """The group of each key of a column.

        A pinned key has its own. Of other keys, Flink's hash takes each to a group: over base flink of all groups, as
        without a plan, else of the range of its channel.
        """
        if self.plan.hashing is Engine.FLINK:
            groups = np.mod(flink_hash(keys), np.int32(self.groups))
        else:
            channels, starts = self.plan.partitioner().channels_of(keys), self.starts()
            groups = (starts[channels] + flink_hash(keys) % np.diff(starts)[channels]).astype(np.int32)
        rows = self.plan.explicit.rows_of(keys)
        known = rows >= 0
        groups[known] = self.explicit[rows[known]]
        return groups

    def group_of(self, key: Key) -> int:
        """The group of one key."""
        return int(self.groups_of(pa.array([key], self.plan.explicit.column.type))[0])

    def subtasks_of(self, keys: pa.Array | pa.ChunkedArray, parallelism: int) -> Channels:
        """The subtask of each key at a parallelism."""
        return channels_of_groups(self.groups_of(keys), parallelism, self.groups)

    def starts(self) -> NDArray[np.int64]:
        """First groups of channels, then their number; shape (channels + 1,)."""
        return group_starts(self.plan.channels, self.groups)


def group_plan(plan: ExportablePlan, max_parallelism: int | None = None) -> GroupPlan:
    """The key groups of a plan.

    Pinned keys of one channel get distant groups within its range, so that a larger parallelism separates them.

    Args:
        max_parallelism: The key groups of the job (default: those of the plan, else Flink's default).
    """
    if plan.scheme is Engine.FLINK:
        raise BadInput("scheme flink is Flink's own placement by keyBy(key); it needs no export")
    if plan.key_type is not plan.key_type.storage:
        raise BadInput(
            f"the groups of {plan.key_type} keys are not planned; make the key a Long or a String in the job, and"
            " ingest it as bigint(...) or string(...)"
        )
    own = plan.max_parallelism
    if own is not None and max_parallelism not in (None, own):
        raise UsageError(f"--max-parallelism must be {own}, the key groups of the plan (got {max_parallelism})")
    groups = groups_for(plan.channels, max_parallelism if own is None else own, MOST_GROUPS)
    starts = group_starts(plan.channels, groups)
    return GroupPlan(plan, groups, _spread(plan.explicit.channels, starts))


def group_starts(channels: int, groups: int) -> NDArray[np.int64]:
    """First groups of subtasks, then their number; shape (channels + 1,).

    Subtask c has the groups g with floor(g N / groups) = c: from ceil(c groups / N) on.
    """
    return -(-np.arange(channels + 1, dtype=np.int64) * groups // channels)


def _spread(channels: Channels, starts: NDArray[np.int64]) -> Groups:
    """A group for each pinned key: the i-th of a channel at the fraction i phi of its range."""
    order = np.argsort(channels, kind="stable")
    ranked = channels[order]
    rank = np.arange(len(order)) - np.searchsorted(ranked, ranked)
    widths = np.diff(starts)[ranked]
    groups = np.empty(len(channels), np.int32)
    groups[order] = starts[ranked] + np.floor((0.5 + rank * _GOLDEN) % 1.0 * widths).astype(np.int64)
    return groups
