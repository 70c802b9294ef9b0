"""Row weights of a trace, as Arrow and Spark columns."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.stream import KeyType, Weight
from adapt.traces.store.trace import Trace

WEIGHT_COLUMNS = {Weight.COST: "cost_us", Weight.BYTES: "bytes"}
"""The column of each weight; a null weighs 0."""

_SPARK_KEYS = {KeyType.STRING: "string", KeyType.INT64: "bigint", KeyType.BINARY: "binary"}


def spark_key(key_type: KeyType) -> str:
    """Spark's name of the type of the column that holds such keys."""
    return _SPARK_KEYS[key_type.storage]


def default_weight(trace: Trace) -> Weight:
    """Cost if the trace has costs, else the count of rows."""
    return Weight.COST if "cost_us" in trace.columns else Weight.COUNT


def chosen_weight(trace: Trace, weight: Weight | None) -> Weight:
    """The requested weight, or the trace's default."""
    chosen = weight or default_weight(trace)
    if chosen is not Weight.COUNT and WEIGHT_COLUMNS[chosen] not in trace.columns:
        raise UsageError(f"--weight {chosen}: {trace.path} has no {chosen} column; ingest it with --{chosen} COLUMN")
    return chosen


def weights_of(batch: pa.RecordBatch, weight: Weight) -> NDArray[np.int64] | NDArray[np.float64] | None:
    """The weight of each row; None if each weighs 1."""
    if weight is Weight.COUNT:
        return None
    values: NDArray[np.int64] | NDArray[np.float64] = pc.fill_null(batch.column(WEIGHT_COLUMNS[weight]), 0).to_numpy(
        zero_copy_only=False
    )
    return values
