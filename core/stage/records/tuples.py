"""Records of tuples, by place."""

import numpy as np

ROW = np.dtype([("due", np.float64), ("cost", np.float64), ("number", np.int64), ("group", np.int32)])

POOLED = np.dtype(
    [
        ("group", np.int32),
        ("link", np.int32),  # the next tuple of its flow, or free place
        ("number", np.int64),  # among the tuples of its producer, or given by the source
        ("stamp", np.float64),  # arrival time
        ("cost", np.float64),  # CPU seconds; negative if drawn
    ]
)
"""A tuple in the buffer of its producer."""

QUEUED = np.dtype(
    [
        ("group", np.int32),
        ("partition", np.int32),
        ("number", np.int64),
        ("stamp", np.float64),
        ("cost", np.float64),
        ("at", np.float64),  # when it reaches the consumer's end
    ]
)
"""A tuple in a connection."""

SPILLED = np.dtype(
    [
        ("group", np.int32),
        ("producer", np.int32),
        ("number", np.int64),
        ("stamp", np.float64),
        ("cost", np.float64),
        ("taken", np.float64),  # when its consumer took it
        ("link", np.int32),  # the next tuple of its partition, or free place
    ],
    align=True,
)
"""A tuple on disk."""

MIRRORED = np.dtype(
    [
        ("group", np.int32),
        ("partition", np.int32),
        ("producer", np.int32),
        ("link", np.int32),  # the next tuple in line, or free place
        ("number", np.int64),
        ("answer", np.int64),  # of the owner
        ("pairs", np.uint64),  # a digest of its matches, if it is joined
        ("stamp", np.float64),
        ("cost", np.float64),
        ("taken", np.float64),  # when the owner took it
        ("at", np.float64),  # when it reaches the replica
    ]
)
"""A tuple processed by the owner of its partition, but not yet by the replica."""

HELD = np.dtype([("since", np.float64), ("partition", np.int64)])

JOINED = np.dtype(
    [
        ("time", np.int64),  # in the unit of the window
        ("list", np.int32),  # 2 * group + side (0 without a join), or none
        ("held", np.int32),  # whether it is in the state of its group
    ]
)
"""A row of a join, or of a window."""

LINKED = np.dtype(
    [
        ("link", np.int64),  # the next older row of its list, once it is processed
        ("size", np.int64),  # its own bytes of state
    ]
)
"""The rest of such a row, apart so that a window without either reads half as much memory."""

ENTRY = np.dtype(
    [
        ("at", np.float64),
        ("worker", np.int32),
        ("producer", np.int32),
        ("partition", np.int32),
        ("group", np.int32),
        ("number", np.int64),
        ("answer", np.int64),
    ]
)
"""Journal entry of a processed tuple, with its answer."""
