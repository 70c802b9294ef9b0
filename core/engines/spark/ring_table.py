"""Rings as lookup tables by the leading bits of a hash."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.schemes.consistent import ConsistentHash


@dataclass(frozen=True, slots=True)
class RingTable:
    """Channels by bucket of 64-bit hashes with equal leading bits.

    A hash h of the bucket belongs to channel_0 if h <= bound_0, else to channel_1 if h <= bound_1, and so on, else to
    the last channel. Hashes and bounds compare as signed numbers, since a bucket has one sign.
    """

    shift: int  # a hash's bucket is the hash, unsigned, shifted right by this
    bounds: NDArray[np.int64]  # shape (buckets, steps), ascending; 2^63 - 1 without a further bound
    channels: NDArray[np.int32]  # shape (buckets, steps + 1)

    def table(self) -> pa.Table:
        """The same as columns: `bucket`, then `channel_0`, `bound_0`, `channel_1`, `bound_1`, ... `channel_<steps>`."""
        columns: dict[str, pa.Array] = {"bucket": pa.array(np.arange(len(self.channels), dtype=np.int64))}
        for step in range(self.bounds.shape[1]):
            columns[f"channel_{step}"] = pa.array(np.ascontiguousarray(self.channels[:, step]))
            columns[f"bound_{step}"] = pa.array(np.ascontiguousarray(self.bounds[:, step]))
        last = self.bounds.shape[1]
        columns[f"channel_{last}"] = pa.array(np.ascontiguousarray(self.channels[:, last]))
        return pa.table(columns)


def ring_table(ring: ConsistentHash) -> RingTable:
    """The table of an xxhash64 ring, with about one bucket per arc."""
    bounds, owners = _arcs(ring.positions.high, ring.owners)
    bits = max(1, len(bounds).bit_length())
    shift = 64 - bits
    firsts = np.searchsorted(bounds, np.arange(2**bits, dtype=np.uint64) << np.uint64(shift), side="left")
    counts = np.diff(np.append(firsts, len(bounds)))
    steps = int(counts.max())
    rows = firsts[:, None] + np.arange(steps + 1)
    # Beyond its last bound, a row repeats its last channel.
    channels = owners[np.minimum(rows, (firsts + counts)[:, None])].astype(np.int32)
    absent = np.arange(steps) >= counts[:, None]
    padded = np.append(bounds, np.uint64(0))[np.minimum(rows[:, :steps], len(bounds))].view(np.int64)
    return RingTable(shift, np.where(absent, np.int64(2**63 - 1), padded), channels)


def _arcs(high: NDArray[np.uint64], owners: Channels) -> tuple[NDArray[np.uint64], Channels]:
    """The last position of each arc but the last, and the channel of each arc; neighbors of one channel are joined."""
    around = np.append(owners, owners[0])  # the ring wraps around
    ends = around[1:] != around[:-1]
    return high[ends], np.append(around[:-1][ends], around[-1])
