"""Hybrid routing against Arrow's `index_in`.

Claims: the hybrid is faster, most of all in batches, and routes more than 20 M keys/s per core. The keys are Zipf(1.2)
and uniform, of each type, with a thousand or a million pinned keys. The reference looks up pinned keys with
`pyarrow.compute.index_in`, which rebuilds its table for each batch, and the others with the same ring. Both get the
column in batches of Spark's size. Keys per second are by CPU time, the best of seven runs."""

import sys
from collections.abc import Callable
from functools import partial
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from ratio import holds, measured

from adapt.core.keys.columns import key_type_of
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner

ROWS = 1_000_000
BATCH = 1 << 16
WANTED_PER_S = 20e6
FASTER = {1_000: 1.3, 1_000_000: 10.0}


def main() -> int:
    """Time both at 10 and 100 channels; 0 if claims hold."""
    random = np.random.default_rng(0)
    skewed, even = random.zipf(1.2, ROWS) % 10**9, random.integers(0, 10**9, ROWS)
    columns = {"skewed": texts(skewed), "even": texts(even), "binary": texts(skewed).cast("binary")}
    columns["int64"] = pa.array(skewed)
    met = [routed(name, column, channels, 1_000) for channels in (10, 100) for name, column in columns.items()]
    met += [routed(name, columns[name], 10, 1_000_000) for name in ("skewed", "int64")]
    return 0 if all(met) else 1


def texts(numbers: np.ndarray) -> pa.Array:
    """Keys such as `user-7`."""
    return pc.binary_join_element_wise("user-", pa.array(numbers).cast(pa.string()), "")


def routed(name: str, column: pa.Array, channels: int, explicit: int) -> bool:
    """Whether a hybrid with this many pinned keys meets both claims."""
    tally = column.value_counts().sort(order="descending", by="counts").field("values")
    others = pa.array(np.arange(10**9, 10**9 + explicit))
    fill = others if key_type_of(column.type) == "int64" else others.cast(pa.string()).cast(column.type)
    keys = pa.concat_arrays([tally[:explicit], fill])[:explicit]
    hybrid = HybridPartitioner(ExplicitMap(keys, np.arange(explicit) % channels), ConsistentHash(channels))
    ratio = measured(partial(in_batches, hybrid.channels_of, column), partial(in_batches, by_arrow(hybrid), column))
    speed = ROWS / min(processor_s(partial(in_batches, hybrid.channels_of, column)) for _ in range(7))
    told = f"{name} keys, N = {channels}, {explicit:,} pinned keys"
    met = holds(f"{told}, against index_in", ratio, FASTER[explicit])
    wanted = WANTED_PER_S if explicit == 1_000 else 0.0
    verdict = "met" if speed >= wanted else "NOT MET"
    print(f"{told}: {speed / 1e6:.1f} M keys/s, claimed {wanted / 1e6:.0f}: {verdict}")
    return met and speed >= wanted


def processor_s(work: Callable[[], None]) -> float:
    """CPU time of some work, in seconds."""
    start = process_time()
    work()
    return process_time() - start


def by_arrow(hybrid: HybridPartitioner) -> Callable[[pa.Array], Channels]:
    """The same lookup with Arrow."""
    known, owners = hybrid.explicit.column, hybrid.explicit.channels

    def channels_of(keys: pa.Array) -> Channels:
        channels = hybrid.base.channels_of(keys)
        rows = np.asarray(pc.index_in(keys, value_set=known).fill_null(-1))
        tracked = rows >= 0
        channels[tracked] = owners[rows[tracked]]
        return channels

    return channels_of


def in_batches(route: Callable[[pa.Array], Channels], column: pa.Array) -> None:
    """Route a column batch by batch."""
    for start in range(0, len(column), BATCH):
        route(column.slice(start, BATCH))


if __name__ == "__main__":
    sys.exit(main())
