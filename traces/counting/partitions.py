"""Records of a trace by key and partition, for an audit."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.audit.audit import Audit
from adapt.core.audit.explaining import audit_of
from adapt.core.audit.observed import KeyPartitions
from adapt.core.counting.frequencies import Frequencies
from adapt.core.errors import BadInput
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import Weight
from adapt.traces.counting.routed_sums import encoded
from adapt.traces.counting.weights import SPARK_KEYS
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.runner import BlockSums, runner_for
from adapt.traces.spark.session import Spark
from adapt.traces.store.trace import Trace, read_pieces

PARTITION = "partition"
"""Column of the partition that a row lies in."""

MOST_PARTITIONS = 1 << 20
"""More than any topic has; a higher number is not that of a partition."""

MOST_KEYS = 1 << 18
"""About how many keys an audit looks at, besides the listed ones; of more, a sample by hash."""


def audited(
    trace: Trace, counted: Frequencies, channels: int, *, spark_options: Spark = None, progress: Progress = silent
) -> Audit | None:
    """Audit the topic of a trace.

    None if the trace has no partitions, or hashed keys.

    Args:
        counted: Its counted keys, whose listed ones are all looked at.
        channels: Partitions that the topic is said to have.

    Raises:
        BadInput: a number is too high for a partition, or the trace is damaged.
    """
    hidden = "hash_keys" in trace.manifest.made.parameters.get("cleaning", {})
    if PARTITION not in trace.columns or hidden:
        return None
    blocks, one_in = trace.blocks(), -(-int(trace.profile["distinct_keys"]) // MOST_KEYS)
    path = str(trace.path)
    sampler, listed = make_partitioner(Scheme.UNIFORM, max(one_in, 1)), counted.keys

    def work(place: int) -> Iterator[pa.RecordBatch]:
        for batch in read_pieces(blocks[place].pieces, ["key", PARTITION], ["key"]):
            known = batch.filter(batch.column(PARTITION).is_valid())
            partitions = known.column(PARTITION).to_numpy().astype(np.int64)
            number = int(partitions.max(initial=0)) + 1
            if number > MOST_PARTITIONS:
                raise BadInput(f"{path}: {number - 1:,} is not a partition; ingest again with another --partition")
            values, places = encoded(known.column("key"))
            cells, records = np.unique(places.astype(np.int64) * number + partitions, return_counts=True)
            of_key, at = np.divmod(cells, number)
            chosen = (sampler.channels_of(values) == 0) | pc.is_in(values, value_set=listed).to_numpy(False)
            kept = chosen[of_key]
            totals = np.bincount(partitions)
            used = np.flatnonzero(totals)
            keys = pa.concat_arrays([values.take(pa.array(of_key[kept])), pa.nulls(len(used), values.type)])
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(np.arange(len(keys)) >= kept.sum()),
                    keys,
                    pa.array(np.append(at[kept], used)),
                    pa.array(np.append(records[kept], totals[used])),
                    pa.array(np.full(len(keys), place)),
                ],
                names=["whole", "key", PARTITION, "records", "block"],
            )

    schema = f"whole boolean, key {SPARK_KEYS[trace.key_type]}, {PARTITION} bigint, records bigint, block bigint"
    by, amounts = ["whole", "key", PARTITION], {"records": Weight.COUNT}
    asked = BlockSums("auditing partitions", len(blocks), work, schema, by, amounts, "block")
    found = runner_for(trace.rows, spark_options, progress).sums(asked)
    whole, cells = found.filter(found["whole"]), found.filter(pc.invert(found["whole"]))
    if not len(whole):
        return None
    loads = np.zeros(pc.max(whole[PARTITION]).as_py() + 1, np.int64)
    loads[whole[PARTITION].to_numpy()] = whole["records"].to_numpy()
    stands_for = np.where(pc.is_in(cells["key"], value_set=listed).to_numpy(), 1.0, float(max(one_in, 1)))
    return audit_of(KeyPartitions.from_table(cells, loads, stands_for), channels, listed)
