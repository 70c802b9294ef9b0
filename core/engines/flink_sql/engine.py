"""The definition of Flink SQL."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.engines.flink.engine import ENGINE as DATASTREAM
from adapt.core.engines.flink.hash import mixed_codes
from adapt.core.engines.flink_sql.hash import row_codes
from adapt.core.engines.flink_sql.scheme import FlinkSqlPartitioner


def flink_sql_hash(keys: pa.Array | pa.ChunkedArray) -> NDArray[np.int32]:
    """Flink's hash of binary rows, before modulo the key groups."""
    return mixed_codes(row_codes(keys))


ENGINE = replace(
    DATASTREAM,
    title="Flink SQL",
    hash=flink_sql_hash,
    hash_title="`BinaryRowData.hashCode` of a row with the key alone (MurmurHash3, seed 42), mixed by MurmurHash3",
    placement=FlinkSqlPartitioner,
    export=None,
    null_key="The key group of a row with a null.",
    empty_key="The key group of its row.",
)
