"""What the compiled part of the stage keeps: one array of records for each kind of thing.

Records, and not a column a field, because the simulation jumps from thing to thing: one tuple, one connection, one
partition at a time, each of which is then a single line of cache.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Records: TypeAlias = NDArray[Any]
"""An array of records."""

NONE = -1
"""No tuple, partition or site: the end of a list."""

IDLE, SERVING, IN_JOB, FREE, DEAD, BLOCKED = range(6)
"""What a consumer does: wait for input, process a tuple, do a job, nothing yet, being about to choose (or waiting for a
CPU that it shares), nothing, or wait until the stage after it has room for what it has made."""

REACHED, ROWS_WANTED, QUIESCED, JOB_DONE, BACKLOG_DONE, SPILL_FULL = range(6)
"""Why the compiled part returns: its time is reached; the source must give more rows; all pauses of a site are
acknowledged; a job is done; the spilled input of a partition is processed; the place for spilled tuples is used up."""

POOLED = np.dtype(
    [
        ("group", np.int32),
        ("link", np.int32),  # the next tuple of its flow, or free place
        ("number", np.int64),  # among the tuples of its producer, or what the source calls it
        ("stamp", np.float64),  # when it was to arrive
        ("cost", np.float64),  # seconds of CPU; negative, to be drawn
    ]
)
"""A tuple that its producer holds."""

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

SITE = np.dtype(
    [
        ("doing", np.int32),
        ("poll", np.int32),  # the input to look at first
        ("segment", np.int32),  # of the CPU, in force
        ("segments_end", np.int32),
        ("cursor", np.int32),  # in the table of service times
        ("acks", np.int32),  # connections with an acknowledgement to come
        ("quiesced", np.int32),  # whether the last acknowledgement was just read
        ("backlog", np.int32),  # the partition whose spilled input is processed
        ("job", np.int32),  # whether one is to begin
        ("spilling", np.int32),  # whether the tuple at hand goes to the spill
        ("job_cpu", np.float64),
        ("job_io", np.float64),
        ("debt", np.float64),  # CPU that the site's producer has used
        ("taken", np.float64),  # when the tuple at hand was taken from its connection
        ("since", np.float64),  # when the consumer began to wait, or to work
        ("idle", np.float64),  # seconds of waiting, but for the wait that lasts
        ("busy", np.float64),  # seconds of work on tuples and jobs, likewise
        ("group", np.int32),  # the tuple at hand
        ("partition", np.int32),
        ("producer", np.int32),
        ("mirrored", np.int32),  # whether the tuple at hand is for a twin
        ("processed", np.int64),
        ("number", np.int64),
        ("stamp", np.float64),
        ("cost", np.float64),
        ("shed", np.int64),  # tuples that it would not take
        ("held_first", np.int32),  # the tuple that it has held longest
        ("held", np.int32),
        ("refused", np.int32),  # whether the tuple at hand is shed
        ("matches", np.int64),  # of the tuple at hand, where the stage joins
        ("pairs", np.uint64),  # a digest of them
    ],
    align=True,
)

CPU = np.dtype(
    [
        ("since", np.float64),  # when it was last left without work, or its idle time counted
        ("idle", np.float64),  # seconds, up to then
        ("turn", np.int32),  # the stage that it serves first
        ("left", np.int32),  # what the first stage has made of the tuple at hand, and the second has no room for
        ("value", np.int64),  # of that
        ("bits", np.uint64),  # from which its groups are drawn
    ],
    align=True,
)
"""The CPU of a site that works for two stages."""

PRODUCER = np.dtype(
    [
        ("random", np.uint64),
        ("generated", np.int64),
        ("row", np.int64),  # the next row
        ("rows_end", np.int64),
        ("free", np.int32),  # the first free place of the pool
        ("held", np.int32),  # tuples in the pool
        ("hungry", np.int32),  # whether it has room, and wants rows that are yet to be read
        ("host", np.int32),  # the site whose CPU it uses; none while its input is read nowhere
        ("behind", np.float64),  # seconds with a row due and no room for it
        ("behind_until", np.float64),
        ("lag", np.float64),  # the longest from due to taken, since it was last read
    ],
    align=True,
)

CONNECTION = np.dtype(
    [
        ("first", np.int32),
        ("count", np.int32),
        ("turn", np.int32),  # the partition to send from next, the first of those that wait
        ("last", np.int32),
        ("ack", np.int32),  # tuples ahead of an acknowledgement
    ]
)

FLOW = np.dtype(
    [
        ("head", np.int32),  # the tuples of one partition in the pool of one producer
        ("tail", np.int32),
        ("after", np.int32),  # the next partition that waits for the same connection
    ]
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
        ("twin", np.int32),  # the site of the second copy of a partition
        ("answer_for", np.int32),  # whether its owner commits what a dead twin had not processed
    ]
)

KEPT = np.dtype(
    [
        ("head", np.int32),  # tuples of a flow that were sent and are not acknowledged, in order
        ("tail", np.int32),
        ("pending", np.int32),  # how many of them, the first ones, its twin has and has not processed
    ]
)

LINE = np.dtype(
    [
        ("head", np.int32),  # what the owners of partitions have sent to their twins at one site, in order
        ("tail", np.int32),
        ("count", np.int32),
        ("ack", np.int32),  # tuples ahead of an acknowledgement
    ]
)

MIRRORED = np.dtype(
    [
        ("group", np.int32),
        ("partition", np.int32),
        ("producer", np.int32),
        ("link", np.int32),  # the next tuple in line, or free place
        ("number", np.int64),
        ("answer", np.int64),  # as the owner found it
        ("stamp", np.float64),
        ("cost", np.float64),
        ("taken", np.float64),  # when the owner took it
        ("at", np.float64),  # when it reaches the twin
    ]
)
"""A tuple that the owner of its partition has processed, and its twin has not."""

GROUP = np.dtype(
    [
        ("partition", np.int32),
        ("alias", np.int32),
        ("threshold", np.int64),  # of 2^32, below which a draw stays here
    ]
)

WINDOW = np.dtype(
    [
        ("place", np.int64),  # of the next value
        ("sum", np.int64),
    ]
)

JOINED = np.dtype(
    [
        ("time", np.int64),  # in the unit of the window
        ("link", np.int64),  # the next older row of its list, once it is processed
        ("list", np.int64),  # 2 * group + side, or none
        ("matches", np.int64),  # with rows before it, if all are there
    ]
)
"""A row that is to be joined."""

SEGMENT = np.dtype(
    [
        ("start", np.float64),
        ("run", np.float64),  # seconds of CPU that the operator has in each cycle
        ("burst", np.float64),  # seconds of each cycle that others take
        ("speed", np.float64),
    ]
)

ROW = np.dtype([("due", np.float64), ("cost", np.float64), ("number", np.int64), ("group", np.int32)])

ENTRY = np.dtype(
    [
        ("at", np.float64),
        ("site", np.int32),
        ("producer", np.int32),
        ("partition", np.int32),
        ("group", np.int32),
        ("number", np.int64),
        ("answer", np.int64),
    ]
)
"""A tuple that was processed: when and where, which it was, and its answer."""

LATENCY = np.dtype([("count", np.int64), ("sum", np.float64), ("max", np.float64)])


HELD = np.dtype([("since", np.float64), ("partition", np.int64)])
PART = np.dtype([("shed", np.float64)])
PAST = np.dtype([("value", np.int64)])
REFUSAL = np.dtype([("count", np.int64)])
NEWEST = np.dtype([("at", np.int64)])
BIN = np.dtype([("count", np.int64)])
SERVICE = np.dtype([("seconds", np.float64)])
DUE = np.dtype([("at", np.float64)])
WINNER = np.dtype([("slot", np.int32)])

_SIZES = (
    "sites",
    "partitions",
    "groups",
    "pool",  # tuples that a producer may hold
    "places",  # for these, and with standby for what is not acknowledged
    "credits",  # tuples that a connection may hold
    "window",  # values that a group keeps; 0 computes no answers
    "anywhere",  # whether a tuple may go to any site
    "drawn",  # whether tuples are drawn, not given by rows
    "slots",  # places for events, a power of two
    "services",  # drawn service times, a power of two
    "entries",  # places in the journal
    "processed",
    "hungry",  # producers that are
    "spill_free",  # the first free place of the spill
    "on_disk",  # partitions
    "journalled",
    "standby",  # whether every partition has a twin
    "mirror_free",  # the first free place for tuples in line
    "mirrored",  # tuples that were sent to twins
    "hold",  # tuples that a site can hold; 0 where they do not shed
    "disagreed",  # answers of a twin that differ from the owner's
    "refusals",  # stretches of time in which it is counted what is shed; 0 counts nothing
    "joins",  # whether tuples of two sides are joined
    "apart",  # at most, if they are to match
    "joined_first",  # the rank of the first row that is kept
    "answers",  # matches of the tuples that were processed
)
_TIMES = (
    "now",
    "last",  # when a tuple was last processed
    "horizon",  # no row that is still to come is due before
    "latency",  # that a tuple is on its way
    "produce",  # CPU to make a tuple
    "spill",  # to write a tuple to the spill
    "held_for",  # seconds that a site holds a tuple
    "selectivity",  # tuples of this stage for each of the one before
    "match",  # CPU for a match
    "watched_from",  # when the first of the stretches begins in which it is counted what is shed
    "refusal_s",  # how long they are
)

KINDS = {
    "site": SITE,
    "cpu": CPU,  # where the sites work for two stages, kept with the first
    "producer": PRODUCER,
    "connection": CONNECTION,  # by site, then producer
    "queued": QUEUED,  # `credits` places for each connection, used in a ring
    "flow": FLOW,  # by producer, then partition
    "pooled": POOLED,  # `places` for each producer
    "partition": PARTITION,
    "group": GROUP,
    "window": WINDOW,  # of each group; with standby then those of the twins
    "past": PAST,  # the values in the window of each group, likewise
    "joined": JOINED,  # by rank
    "newest": NEWEST,  # by 2 * group + side: the rank of its newest row that was processed
    "segment": SEGMENT,
    "row": ROW,  # those of each producer together, in order
    "spilled": SPILLED,
    "pair": PAIR,  # of each partition; the four of pairs are empty without standby
    "kept": KEPT,  # by producer, then partition
    "line": LINE,  # of each site
    "mirror": MIRRORED,
    "entry": ENTRY,
    "latency": LATENCY,  # from taken to processed, from due to processed
    "bin": BIN,  # of the first kind of latency, then of the second
    "service": SERVICE,
    "due": DUE,  # the next event of each site, then of each producer
    "held": HELD,  # `hold` places for each site, used in a ring
    "refusal": REFUSAL,  # what was shed, stretch by stretch
    "part": PART,  # that is shed by the number of tuples held
    "winner": WINNER,  # of the tournament over `due`: 1 is the earliest slot, the first of those that tie
}
"""What is kept in an array of its own, and of which records."""

WORLD = np.dtype(
    [(name, np.int64) for name in _SIZES]
    + [(name, np.float64) for name in _TIMES]
    + [("draws", np.uint64), ("pairs", np.uint64)]  # the seed of shedding; a digest of the answers
    + [(f"{name}_at", np.int64) for name in KINDS]
)
"""Sizes, costs, the time, and the address of every array."""

World: TypeAlias = Any
"""A record of kind `WORLD`."""


class Arrays:
    """All that the compiled part keeps, by the names of `KINDS`, and the one record of kind `WORLD` that finds it.

    The record holds addresses, so an array is replaced only by `put`.
    """

    def __init__(self, **arrays: Records) -> None:
        """Arrays by their names, all of `KINDS`; sizes and costs in the world are 0."""
        self.worlds = np.zeros(1, WORLD)
        self._arrays: dict[str, Records] = {}
        for name in KINDS:
            self.put(name, arrays[name])

    @property
    def world(self) -> World:
        """The one record, to read and to change."""
        return self.worlds[0]

    def __getitem__(self, name: str) -> Records:
        """The array of a name."""
        return self._arrays[name]

    def share(self, worlds: Records) -> None:
        """Be found from now on by another record, which must say what the present one does."""
        self.worlds = worlds

    def put(self, name: str, array: Records) -> None:
        """Put an array in the place of one."""
        self._arrays[name] = kept = np.ascontiguousarray(array, KINDS[name])
        self.worlds[f"{name}_at"] = kept.ctypes.data
