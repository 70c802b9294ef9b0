"""Records of workers and partitions of a stage."""

import numpy as np

WORKER = np.dtype(
    [
        ("doing", np.int32),
        ("poll", np.int32),  # the input to look at first
        ("segment", np.int32),  # of the CPU, in force
        ("segments_end", np.int32),
        ("cursor", np.int32),  # in the table of service times
        ("paused", np.int32),  # the next of its pauses
        ("acks", np.int32),  # connections with an acknowledgement to come
        ("quiesced", np.int32),  # whether the last acknowledgement was just read
        ("backlog", np.int32),  # the partition whose spilled input is processed
        ("job", np.int32),  # whether one is to begin
        ("spilling", np.int32),  # whether the tuple in service goes to the spill
        ("job_cpu", np.float64),
        ("job_io", np.float64),
        ("debt", np.float64),  # CPU that the worker's producer has used
        ("taken", np.float64),  # when the tuple in service was taken from its connection
        ("since", np.float64),  # when the consumer began to wait, or to work
        ("idle", np.float64),  # seconds of waiting, but for the wait that lasts
        ("busy", np.float64),  # seconds of work on tuples and jobs, likewise
        ("group", np.int32),  # the tuple in service
        ("partition", np.int32),
        ("producer", np.int32),
        ("mirrored", np.int32),  # whether the tuple in service is for a replica
        ("processed", np.int64),
        ("number", np.int64),
        ("stamp", np.float64),
        ("cost", np.float64),
        ("pause_from", np.float64),  # when it pauses next
        ("shed", np.int64),  # tuples dropped by load shedding
        ("held_first", np.int32),  # the oldest tuple in its buffer
        ("held", np.int32),
        ("held_most", np.int32),  # the most since the controller last looked
        ("refused", np.int32),  # whether the tuple in service is shed
        ("matches", np.int64),  # of the tuple in service, where the stage joins
        ("pairs", np.uint64),  # a digest of them
        ("spill", np.float64),  # seconds to write a tuple to its disk
        ("link", np.float64),  # seconds to send a tuple
        ("sent", np.float64),  # when its link has sent all tuples so far
        ("room", np.int64),  # bytes by which its state may grow
        ("full", np.int32),  # whether it has grown by more: 1, to be reported; 2, reported
    ],
    align=True,
)

CPU = np.dtype(
    [
        ("since", np.float64),  # when it was last left without work, or its idle time counted
        ("idle", np.float64),  # seconds, up to then
        ("turn", np.int32),  # the stage that it serves first
        ("serving", np.int32),  # the stage that it serves; none
    ],
    align=True,
)
"""The CPU of a worker with several stages."""

SEGMENT = np.dtype(
    [
        ("start", np.float64),
        ("run", np.float64),  # seconds of CPU that the operator has in each cycle
        ("burst", np.float64),  # seconds of each cycle that others take
        ("speed", np.float64),
    ]
)

PRODUCER = np.dtype(
    [
        ("random", np.uint64),
        ("generated", np.int64),
        ("row", np.int64),  # the next row
        ("rows_end", np.int64),
        ("free", np.int32),  # the first free place of the pool
        ("held", np.int32),  # tuples in the pool
        ("hungry", np.int32),  # wants rows that are yet to be read (1), or places for them (2)
        ("host", np.int32),  # the worker that reads its input; none while halted
        ("behind", np.float64),  # seconds with a row waiting at the source
        ("behind_until", np.float64),
        ("waited", np.float64),  # longest wait of a row at the source, since last read
        ("seen", np.int64),  # the first row that is not known to have arrived
        ("capped", np.int32),  # its channels with as many tuples in its buffer as they may have
        ("admits", np.int64),  # rows that it may still give to the micro-batch
    ],
    align=True,
)


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
