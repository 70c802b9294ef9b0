"""Units of migration: pinned keys, and hashed keys that move together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.keys.partitioner import ByColumn, Channels, Partitioner
from adapt.core.partitioning.measures.cells import Hasher, base_of, cells_of
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.stage.input.mini_partitions import MOST, MiniPartitions


@dataclass(frozen=True, slots=True)
class Bases(ByColumn):
    """Numbers keys by their base channels, for several channel counts.

    Keys with one number share their base channel at each count, so they move together: arcs of the ring, or sets of
    partitions of an engine.
    """

    each: tuple[Hasher, ...]

    @property
    def channels(self) -> int:
        """How many numbers there are."""
        return math.prod(base.channels for base in self.each)

    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The number of each key; shape (keys,)."""
        return cells_of([base.channels_of(keys) for base in self.each], self.each, len(keys)).astype(np.int32)


@dataclass(frozen=True, slots=True)
class Units:
    """The units of migration of some plans, as partitions of a stage.

    A key that a plan pins is a unit of its own, also while it is hashed. The other keys are a unit if they have the
    same base channels. They come after the pinned keys.
    """

    own: ExplicitMap  # the keys that any plan pins, numbered in key order
    bases: Bases  # the base of each channel count
    partitions: MiniPartitions  # the units as partitions of a pool of workers; some of the last have no keys

    @classmethod
    def from_plans(cls, plans: Sequence[Partitioner], key_type: pa.DataType, pool: int) -> "Units":
        """The units that these plans move among a pool of workers.

        Args:
            key_type: Of the keys.
        """
        own = _ever_pinned(plans, key_type)
        of_count = {plan.channels: base_of(plan) for plan in plans}
        bases = Bases(tuple(of_count[channels] for channels in sorted(of_count)))
        units = len(own) + bases.channels
        if units > MOST:
            raise UsageError(
                f"the schedule has too many numbers of channels: {', '.join(map(str, sorted(of_count)))} divide the"
                f" keys into {units:,} units of migration, at most {MOST:,} are possible; give fewer numbers"
            )
        return cls(own, bases, MiniPartitions(pool, -(-units // pool), partitioner=bases, own=own))

    @property
    def count(self) -> int:
        """Partitions, with or without keys."""
        return self.partitions.count

    def owners(self, plan: Partitioner) -> NDArray[np.int32]:
        """The worker of each unit by a plan.

        Shape (count,); 0 for units without keys.
        """
        owners: NDArray[np.int32] = np.zeros(self.count, np.int32)
        owners[: len(self.own)] = plan.channels_of(self.own.column)
        sizes = [base.channels for base in self.bases.each]
        at = sizes.index(plan.channels)
        numbers = np.arange(self.bases.channels)
        owners[len(self.own) : len(self.own) + len(numbers)] = numbers // math.prod(sizes[at + 1 :]) % sizes[at]
        return owners


def _ever_pinned(plans: Sequence[Partitioner], key_type: pa.DataType) -> ExplicitMap:
    """All keys that some plan pins, numbered in key order."""
    pinned = [plan.explicit.column for plan in plans if isinstance(plan, HybridPartitioner) and len(plan.explicit)]
    keys = pa.chunked_array(pinned, type=None if pinned else key_type).unique()
    return ExplicitMap(ExplicitMap(keys, np.zeros(len(keys))).column, np.arange(len(keys)))
