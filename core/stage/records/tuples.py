"""Records of tuples, of their queues, of costs and counts."""

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


CONNECTION = np.dtype(
    [
        ("first", np.int32),
        ("count", np.int32),
        ("owed", np.int32),  # tuples taken whose credits have not returned
        ("turn", np.int32),  # the partition to send from next, the first of those that wait
        ("last", np.int32),
        ("ack", np.int32),  # tuples ahead of an acknowledgement
    ]
)

CHANNEL = np.dtype(
    [
        ("head", np.int32),  # tuples in the buffer of the producer, in order
        ("tail", np.int32),
        ("waiting", np.int32),  # how many they are, where that is limited
        ("fetched", np.int32),  # tuples taken in turn
        ("ahead", np.int32),  # tuples ahead of a barrier
        ("stopped", np.int32),  # whether its barrier waits for those of other channels
    ]
)
"""A connection of an engine other than Flux."""

BARRIER = np.dtype([("missing", np.int32)])

STAMP = np.dtype([("at", np.float64)])

FLOW = np.dtype(
    [
        ("head", np.int32),  # the tuples of one partition in the pool of one producer
        ("tail", np.int32),
        ("after", np.int32),  # the next partition that waits for the same connection
    ]
)

KEPT = np.dtype(
    [
        ("head", np.int32),  # tuples of a flow that were sent and are not acknowledged, in order
        ("tail", np.int32),
        ("pending", np.int32),  # how many of them, the first ones, its twin has and has not processed
    ]
)

EDGE = np.dtype(
    [
        ("source", np.int64),  # stages
        ("target", np.int64),
        ("selectivity", np.float64),  # tuples of the target for each of the source
        ("open", np.int64),  # whether tuples are emitted to the target
    ]
)

OUTBOX = np.dtype(
    [
        ("left", np.int64),  # emitted tuples that wait for room
        ("value", np.int64),  # of the tuple that they were made of
        ("bits", np.uint64),  # from which their groups are drawn
    ]
)

LINE = np.dtype(
    [
        ("head", np.int32),  # what the owners of partitions have sent to their twins at one worker, in order
        ("tail", np.int32),
        ("count", np.int32),
        ("ack", np.int32),  # tuples ahead of an acknowledgement
    ]
)


SERVICE = np.dtype([("seconds", np.float64)])

PAUSE = np.dtype([("lasts", np.float64), ("gap", np.float64)])
"""A pause of a worker, and the time from its end to the next."""

PART = np.dtype([("shed", np.float64)])

LATENCY = np.dtype([("count", np.int64), ("sum", np.float64), ("max", np.float64)])

BIN = np.dtype([("count", np.int64)])

REFUSAL = np.dtype([("count", np.int64)])

DUE = np.dtype([("at", np.float64)])

WINNER = np.dtype([("slot", np.int32)])
