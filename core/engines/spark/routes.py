"""Routes of Spark: an integer for each partition of a shuffle."""

import numpy as np
import pyarrow as pa

from adapt.core.engines.routes import Numbers, least_numbers
from adapt.core.engines.spark.hash import spark_hash


def spark_routes(partitions: int) -> Numbers:
    """The smallest integer >= 0 that Spark maps to each shuffle partition.

    Spark maps a row grouped by an INT column alone to partition pmod(hash(number), partitions).

    Source: users and peers, section 5.1; tested against Spark.
    """

    def place(numbers: Numbers) -> Numbers:
        # An int hashes as its four bytes do.
        words = numbers.astype("<i4").tobytes()
        offsets = np.arange(0, 4 * len(numbers) + 1, 4, dtype=np.int32)
        as_bytes = pa.BinaryArray.from_buffers(
            pa.binary(), len(numbers), [None, pa.py_buffer(offsets), pa.py_buffer(words)]
        )
        return np.mod(spark_hash(as_bytes), np.int32(partitions))

    return least_numbers(partitions, place)
