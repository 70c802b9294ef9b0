"""Records of a simulated stage: its tuples, workers and world."""

from typing import Any, TypeAlias

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


_SIZES = (
    "workers",
    "partitions",
    "groups",
    "pool",  # tuples that a producer may hold
    "places",  # for these, and with standby for what is not acknowledged; 0 where all producers share them
    "credits",  # tuples that a connection may hold
    "packet",  # tuples whose credits return together
    "links",  # whether workers have finite bandwidth for tuples
    "window",  # values per group; 0, no answers
    "anywhere",  # whether a tuple may go to any worker
    "drawn",  # whether tuples are drawn, not given by rows
    "slots",  # places for events, a power of two
    "services",  # drawn service times, a power of two
    "pauses",  # drawn pauses of a worker, used in a ring
    "entries",  # places in the journal
    "processed",
    "lag",  # rows that have arrived, as producers know, and are not processed
    "lag_max",  # its maximum since last read
    "hungry",  # producers that are, and finished micro-batches and checkpoints
    "spill_free",  # the first free place of the spill
    "on_disk",  # partitions
    "journalled",
    "standby",  # whether every partition has a twin
    "mirror_free",  # the first free place for tuples in line
    "mirrored",  # tuples that were sent to twins
    "hold",  # tuples that a worker can hold; 0 where they do not shed
    "disagreed",  # answers of a twin that differ from the owner's
    "refusals",  # time slots of the shed log; 0, no log
    "joins",  # whether tuples of two sides are joined
    "apart",  # largest distance of matching tuples
    "joined_first",  # the rank of the first row that is kept
    "joined_last",  # the last place of the table of rows, a power of two less 1
    "answers",  # matches of the tuples that were processed
    "grows",  # whether state grows with the tuples that are processed
    "ranked",  # whether its rows are in the table of rows
    "sized",  # whether each has its own size too
    "group_bytes",  # state of a group with rows
    "row_bytes",  # state of a row, besides its own size
    "keeps",  # last rows that a group keeps; 0, all in the window
    "expired",  # the rank of the first row that has not expired
    "splits",  # partitions of the source, the others being parts; 0 where none is split
    "ranks",  # places for the groups of a part
    "edges",  # of a DAG of stages, at its first stage
    "edges_first",  # the first edge from this stage
    "edges_end",
    "shared",  # whether places are given to producers when they need them; 0 if not, or if there are no more
    "lines",  # whether tuples are sent in order, not by partition in turn
    "fetch",  # tuples that are taken in turn from one connection
    "cap",  # tuples that a producer may hold for one worker; 0, no limit
    "barriers",  # whether barriers stop channels now
    "unaligned",  # workers to which barriers are to come
    "batched",  # whether tuples are processed in micro-batches
    "batch",  # tuples of the micro-batch that are processed
    "batch_left",  # tuples of it that are not
)
_TIMES = (
    "now",
    "last",  # when a tuple was last processed
    "horizon",  # lower bound of arrival times not yet read
    "latency",  # of a packet
    "produce",  # CPU to make a tuple
    "held_for",  # seconds that a worker holds a tuple
    "match",  # CPU for a match
    "watched_from",  # start of the first time slot of the shed log
    "refusal_s",  # length of a time slot
    "read",  # CPU of a worker to read a tuple from a log
)

KINDS = {
    "worker": WORKER,
    "cpu": CPU,  # of workers with several stages; this and the next two are kept with the first stage
    "edge": EDGE,  # by source
    "outbox": OUTBOX,  # by edge, then worker
    "producer": PRODUCER,
    "connection": CONNECTION,  # by worker, then producer
    "channel": CHANNEL,  # by worker, then producer; this and the next two are empty with Flux's queues
    "barrier": BARRIER,  # of each worker: barriers to come
    "stamp": STAMP,  # arrival times of the processed tuples of the micro-batch
    "queued": QUEUED,  # `credits` places for each connection, used in a ring
    "flow": FLOW,  # by producer, then partition
    "pooled": POOLED,  # `places` for each producer
    "partition": PARTITION,
    "state": STATE,  # of each partition
    "live": LIVE,  # of each group, if state grows
    "group": GROUP,
    "window": WINDOW,  # of each group; with standby then those of the twins
    "past": PAST,  # the values in the window of each group, likewise
    "joined": JOINED,  # by rank, used in a ring
    "linked": LINKED,  # likewise; empty unless rows are joined or have sizes
    "newest": NEWEST,  # by 2 * group + side: the rank of its newest row that was processed
    "ring": RING,  # of each partition: the next part of the same; this and the next three are empty without splits
    "turn": TURN,  # by producer, then partition: the part for the next tuple
    "rank": RANK,  # of each group, within its partition
    "total": TOTAL,  # of each group; then `ranks` places for each part
    "segment": SEGMENT,
    "row": ROW,  # those of each producer together, in order
    "spilled": SPILLED,
    "pair": PAIR,  # of each partition; the four of pairs are empty without standby
    "kept": KEPT,  # by producer, then partition
    "line": LINE,  # of each worker
    "mirror": MIRRORED,
    "entry": ENTRY,
    "latency": LATENCY,  # operator latency, total latency
    "bin": BIN,  # of the first kind of latency, then of the second
    "service": SERVICE,
    "pause": PAUSE,  # `pauses` for each worker
    "due": DUE,  # the next event of each worker, then of each producer
    "held": HELD,  # `hold` places for each worker, used in a ring
    "refusal": REFUSAL,  # shed tuples by time slot
    "part": PART,  # drop probability by occupancy
    "winner": WINNER,  # of the tournament over `due`: 1 is the earliest slot, the first of those that tie
}
"""Arrays and their record types."""

WORLD = np.dtype(
    [(name, np.int64) for name in _SIZES]
    + [(name, np.float64) for name in _TIMES]
    + [("draws", np.uint64), ("pairs", np.uint64)]  # the seed of shedding; a digest of the answers
    + [(f"{name}_at", np.int64) for name in KINDS]
)
"""Sizes, costs, time and the address of every array."""

World: TypeAlias = Any
"""A record of kind `WORLD`."""
