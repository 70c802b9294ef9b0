"""Records of the queues between producers and consumers."""

import numpy as np

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
