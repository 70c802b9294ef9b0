"""Records of a trace by key and partition, for an audit."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.audit.audit import Audit
from adapt.core.audit.explaining import audit_of
from adapt.core.audit.observed import KeyPartitions
from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.timeline import Panes
from adapt.core.errors import BadInput
from adapt.core.out_of_sample.windows import rows_a_pane
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import Weight
from adapt.core.units.row_or_time_span import Length
from adapt.traces.counting.exact import WEIGHT_COLUMNS, spark_key, weights_of
from adapt.traces.counting.routed_sums import encoded
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.runner import BlockSums, runner_for
from adapt.traces.spark.session import Spark
from adapt.traces.store.trace import PARTITION, Trace, read_pieces

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
        counted: Its counted keys, whose listed ones are all looked at, and whose weight the loads by window have.
        channels: Partitions that the topic is said to have.
    """
    hidden = "hash_keys" in trace.manifest.made.parameters.get("cleaning", {})
    if PARTITION not in trace.columns or hidden:
        return None
    blocks, one_in = trace.blocks(), -(-int(trace.profile["distinct_keys"]) // MOST_KEYS)
    path = str(trace.path)
    rows_each = rows_a_pane(trace.rows) or max(trace.rows, 1)
    grid, weight = Panes(Length(rows_each, in_rows=True)), counted.weight
    columns = ["key", PARTITION, *([] if weight is Weight.COUNT else [WEIGHT_COLUMNS[weight]])]
    kind = np.float64 if weight is Weight.COST else np.int64
    sampler, listed = make_partitioner(Scheme.UNIFORM, max(one_in, 1)), counted.keys

    def work(place: int) -> Iterator[pa.RecordBatch]:
        row = blocks[place].first_row
        for batch in read_pieces(blocks[place].pieces, columns, ["key"]):
            is_known = batch.column(PARTITION).is_valid()
            known = batch.filter(is_known)
            panes = grid.numbers(np.arange(row, row + batch.num_rows))[is_known.to_numpy(zero_copy_only=False)]
            row += batch.num_rows
            partitions = known.column(PARTITION).to_numpy().astype(np.int64)
            number = int(partitions.max(initial=0)) + 1
            if number > MOST_PARTITIONS:
                raise BadInput(f"{path}: {number - 1:,} is not a partition; ingest again with another --partition")
            values, places = encoded(known.column("key"))
            cells, records = np.unique(places.astype(np.int64) * number + partitions, return_counts=True)
            of_key, at = np.divmod(cells, number)
            chosen = (sampler.channels_of(values) == 0) | pc.is_in(values, value_set=listed).to_numpy(False)
            kept = chosen[of_key]
            used, windowed, totals = np.unique(panes * number + partitions, return_inverse=True, return_counts=True)
            weights = weights_of(known, weight)
            loads = np.zeros(len(used), kind)
            np.add.at(loads, windowed, 1 if weights is None else weights)
            panes_used, used = np.divmod(used, number)
            nothing = np.zeros(int(kept.sum()), kind)
            keys = pa.concat_arrays([values.take(pa.array(of_key[kept])), pa.nulls(len(used), values.type)])
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(np.arange(len(keys)) >= kept.sum()),
                    keys,
                    pa.array(np.append(np.zeros_like(at[kept]), panes_used)),
                    pa.array(np.append(at[kept], used)),
                    pa.array(np.append(records[kept], totals)),
                    pa.array(np.append(nothing, loads)),
                    pa.array(np.full(len(keys), place)),
                ],
                names=["whole", "key", "pane", PARTITION, "records", "load", "block"],
            )

    spark_kind = "double" if weight is Weight.COST else "bigint"
    schema = (
        f"whole boolean, key {spark_key(trace.key_type)}, pane bigint, {PARTITION} bigint, records bigint,"
        f" load {spark_kind}, block bigint"
    )
    by, amounts = ["whole", "key", "pane", PARTITION], {"records": Weight.COUNT, "load": weight}
    asked = BlockSums("auditing partitions", len(blocks), work, schema, by, amounts, "block")
    found = runner_for(trace.rows, spark_options, progress).sums(asked)
    whole, cells = found.filter(found["whole"]), found.filter(pc.invert(found["whole"]))
    if not len(whole):
        return None
    at, panes = whole[PARTITION].to_numpy(), whole["pane"].to_numpy()
    loads = np.bincount(at, whole["records"].to_numpy()).astype(np.int64)
    stands_for = np.where(pc.is_in(cells["key"], value_set=listed).to_numpy(), 1.0, float(max(one_in, 1)))
    audit = audit_of(KeyPartitions.from_table(cells, loads, stands_for, trace.key_type), channels, listed)
    windows = np.zeros((audit.partitions, -(-trace.rows // rows_each)))
    windows[at, panes] = whole["load"].to_numpy()
    return replace(audit, window_loads=windows)
