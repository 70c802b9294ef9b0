"""Records of partitions and of their groups."""

import numpy as np

PARTITION = np.dtype(
    [
        ("owner", np.int32),
        ("stalled", np.int32),
        ("on_disk", np.int32),
        ("in_flight", np.int32),  # sent, and not processed or spilled
        ("spill_head", np.int32),
        ("spill_tail", np.int32),
        ("spilled", np.int64),
        ("processed", np.int64),
        ("digest", np.int64),  # of its answers in their order
    ]
)

PAIR = np.dtype(
    [
        ("twin", np.int32),  # the worker of the partition's replica
    ]
)

GROUP = np.dtype(
    [
        ("partition", np.int32),
        ("alias", np.int32),
        ("threshold", np.int64),  # of 2^32, below which a draw stays here
    ]
)

WINDOW = np.dtype([("place", np.int64), ("sum", np.int64)])  # the place is that of the next value

PAST = np.dtype([("value", np.int64)])

STATE = np.dtype([("bytes", np.int64)])

LIVE = np.dtype([("rows", np.int64)])

NEWEST = np.dtype([("at", np.int64)])

RING = np.dtype([("following", np.int32)])

TURN = np.dtype([("part", np.int32)])

RANK = np.dtype([("place", np.int32)])

TOTAL = np.dtype([("count", np.int64), ("sum", np.int64), ("least", np.int64), ("most", np.int64)])
