"""A trace of skewed keys with costs and sizes."""

import numpy as np
import pyarrow as pa

from adapt.core.stream import KeyType
from tests.traces.small_traces import write_trace

ROWS = 2_500
ARROW = {KeyType.STRING: pa.string(), KeyType.BINARY: pa.binary(), KeyType.INT64: pa.int64()}


def skewed_trace(folder, kind=KeyType.STRING):
    """The trace, with keys of a type; one of them is null."""
    draw = np.random.default_rng(3)
    keys = pa.array([None if number == 5 else int(number) for number in draw.zipf(1.2, ROWS) % 300], pa.int64())
    if kind is not KeyType.INT64:
        keys = keys.cast(pa.string()).cast(ARROW[kind])
    rows = {"ts": pa.array(np.arange(ROWS), pa.timestamp("us", "UTC")), "key": keys}
    rows |= {"cost_us": pa.array(draw.exponential(3.0, ROWS)), "bytes": pa.array(draw.integers(0, 1_000, ROWS))}
    return write_trace(folder / "t.trace", pa.table(rows))
