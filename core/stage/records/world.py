"""World record of a stage: sizes, costs, time and array addresses.

Arrays hold one record per object rather than one column per field, since the simulation jumps between single tuples,
connections and partitions: each access then touches one cache line.
"""

from typing import Any, TypeAlias

import numpy as np

from adapt.core.stage.records.tuples import (
    BARRIER,
    BIN,
    CHANNEL,
    CONNECTION,
    DUE,
    EDGE,
    ENTRY,
    FLOW,
    HELD,
    JOINED,
    KEPT,
    LATENCY,
    LINE,
    LINKED,
    MIRRORED,
    OUTBOX,
    PART,
    PAUSE,
    POOLED,
    QUEUED,
    REFUSAL,
    ROW,
    SERVICE,
    SPILLED,
    STAMP,
    WINNER,
)
from adapt.core.stage.records.workers import (
    CPU,
    GROUP,
    LIVE,
    NEWEST,
    PAIR,
    PARTITION,
    PAST,
    PRODUCER,
    RANK,
    RING,
    SEGMENT,
    STATE,
    TOTAL,
    TURN,
    WINDOW,
    WORKER,
)

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
