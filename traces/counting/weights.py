"""What the rows of a trace weigh, in Arrow columns and in Spark's."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.stream import KeyType, Weight
from adapt.traces.spark.lazy import Column, F
from adapt.traces.store.trace import Trace

WEIGHT_COLUMNS = {Weight.COST: "cost_us", Weight.BYTES: "bytes"}
"""Where a row's weight stands; a missing weight is nothing."""

SPARK_KEYS = {KeyType.STRING: "string", KeyType.INT64: "bigint", KeyType.BINARY: "binary"}
"""What Spark calls the types of keys."""


def default_weight(trace: Trace) -> Weight:
    """Cost where the trace has costs, else the count of rows (design, section 5)."""
    return Weight.COST if "cost_us" in trace.columns else Weight.COUNT


def chosen_weight(trace: Trace, weight: Weight | None) -> Weight:
    """The weight that was asked for, or the trace's default.

    Raises:
        UsageError: the trace has no column of that weight.
    """
    chosen = weight or default_weight(trace)
    if chosen is not Weight.COUNT and WEIGHT_COLUMNS[chosen] not in trace.columns:
        raise UsageError(f"--weight {chosen}: {trace.path} has no {chosen}; ingest it with --{chosen} COLUMN")
    return chosen


def weights_of(batch: pa.RecordBatch, weight: Weight) -> NDArray[np.int64] | NDArray[np.float64] | None:
    """What each row of a batch weighs, or None for 1 each; a missing weight is 0."""
    if weight is Weight.COUNT:
        return None
    values: NDArray[np.int64] | NDArray[np.float64] = pc.fill_null(batch.column(WEIGHT_COLUMNS[weight]), 0).to_numpy(
        zero_copy_only=False
    )
    return values


def added(column: str, block: str, weight: Weight) -> Column:
    """The sum of a column in a group; whole sums that overflow are null, floats are added in the order of blocks."""
    if weight is not Weight.COST:
        return F.try_sum(column)
    in_order = F.array_sort(F.collect_list(F.struct(F.col(block), F.col(column))))
    return F.aggregate(in_order, F.lit(0.0), lambda so_far, part: so_far + part[column])
