"""Layout of the memory that the workers of a run share.

Every field is a word of 64 bits. A word that one worker writes while others read has a cache line to itself: the
fields of a record are grouped by lines of 64 bytes. Fields whose names end in `_at` are addresses.

What orders the words that several workers touch, by who writes and who reads (see `atomics`):

- `tail` of an operator: released by its one sender after the tuples and their lanes, acquired before these are read.
- `head`: claimed by `replace`; lanes are read before it, since their places may be reused after it.
- Tickets: released after the outputs (of a whole run), acquired by the sender before it reads them.
- `next`: released after the outputs were read, acquired before their places are written again.
- `sending`, `feeding`, `owned`: taken and given back by `exchange`, so that the fields of the one sender or feeder
  (`seen_next`, `sent`, `copied`, `load`, the tails of lanes, the hash) need no order of their own.
- `waiting` of a lane: `fetch_add` from 0 enters, back to 0 leaves; the state of its keys and its `head` pass between.
- `working`: entered by `replace`, left by `fetch_add`; passes the state where only one worker may enter.
- `stop`, `keep`, `fed`, `egress_tuples`: released or replaced once, acquired by all who look.
- `idle`, `inputs`, `outputs`, `time_ns`: sums that pass nothing on.

Numeric codes of settings and run outcomes in kernels.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.atomics import fixed
from adapt.core.compiled import Record, inlined, record_at

LINE = 64
"""Bytes of a cache line."""


def _on_lines(*groups: Sequence[str | tuple[str, int]]) -> np.dtype[np.void]:
    """A record whose groups of fields each begin on a cache line; a field may be a name and a number of words."""
    names, formats, offsets, end = list[str](), list[Any](), list[int](), 0
    for group in groups:
        for field in group:
            name, words = field if isinstance(field, tuple) else (field, 1)
            names.append(name)
            formats.append((np.int64, words) if words > 1 else np.int64)
            offsets.append(end)
            end += 8 * words
        end = -(-end // LINE) * LINE
    layout: Any = {"names": names, "formats": formats, "offsets": offsets, "itemsize": end}
    kind: np.dtype[np.void] = np.dtype(layout, align=True)
    return kind


def of_words(*names: str) -> np.dtype[np.void]:
    """A record of consecutive words."""
    return np.dtype([(name, np.int64) for name in names], align=True)


LINE_OF_WORDS = of_words(*(f"word{at}" for at in range(LINE // 8)))
"""A cache line of memory that is read as it comes."""

HEADER = _on_lines(
    (
        "stop",  # why the run ends (`GOES_ON` while it does not)
    ),
    (
        "vain",  # rounds in which each worker looked for work in vain, and workers that have in this round
        "delays",  # times that a worker found tuples waiting for something outside of the chain
    ),
    ("fed",),  # rows taken in
    ("arrived",),  # rows that have arrived, if they have arrival times
    (
        "feeding",  # whether a worker is taking rows in
        "punctuation_row",  # the next row that is a punctuation
        "punctuation_rows_at",  # the row of the one after it
    ),
    (  # What never changes in a run.
        "operators_at",
        "operators",
        "workers",
        "rows",
        "ingress_at",
        "arrivals_at",  # when each row arrives, in nanoseconds from the start; 0 if all are there at the start
        "start_ns",  # when the run starts; 0 in a model
        "tallies_at",
        "reorder",
        "chunk",  # most tuples to claim at once; 0 to adapt it to their cost
        "queue",  # configured tuples of a work queue
        "heuristic",
        "lp_minimum",  # tuples that `LP` waits for
        "batch",  # most rows of a micro-batch; 0 without
        "barred_at",  # of each worker, a bit for each operator that it may not enter
        "mark_every",
        "marks_at",
        "checked",
        "patience",  # rounds in vain after which a run has stalled
        "scratch_at",  # room of a worker: a tuple's outputs, or the partitions of a chunk
        "scratch_words",
        "room_words",  # of them, those of a tuple's outputs
        "kept_at",  # the first tuples that left
        "kept_mask",
        "waits",  # whether tuples wait to be kept
        "model_workers_at",  # 0 on threads
    ),
    ("keep",),  # tuples to keep; grows as they are taken out
    ("window_start",),
    ("slice_ns", "window_ns", "qst_size"),
    ("egress_hash", "egress_tuples"),
    ("fault_operator", "fault"),  # the operator whose function failed, and its return value
    (  # Of the model; see `Contention`.
        "seed",
        "jitter",
        "send_ns",
        "lock_handover_ns",
        "query_ps",  # for a worker to ask the scheduler, in picoseconds
        "contended_query_ps",  # added to that by each other worker with work
        "dues_at",  # time of the next event of each worker
        "now_ns",
        "events",
        "idlers",  # workers that wait for work
    ),
)

OPERATOR = _on_lines(
    (  # What never changes in a run.
        "number",
        "here",  # address of this record
        "work_queue",
        "function",  # address of the loop over chunks that calls its function
        "words_at",  # what the function is given in addition to a tuple
        "in_words",
        "out_words",
        "most_outputs",  # outputs that a tuple has room for
        "keeps_state",
        "queue_at",
        "queue_mask",
        "slots_at",
        "ring_mask",
        "outputs_at",
        "slot_output_words",
        "partitions",
        "partitions_at",
        "lanes",  # bits of a partition's number that are its lane's: partitions that one worker at a time processes
        "key_at",  # the place of the key in a tuple; -1 if it has none
        "partition_of_at",  # the partition of each key; 0 for a hash
        "routes_at",  # what it does with the tuples of each stream of a graph; 0 in a chain
        "replicas",  # to each of which a lane is bound, so that tuples are split statically; 0 without
        "partition_queues_at",  # of each lane
        "master_at",  # the partition of each tuple in the queue; 0 without partitions
        "most_workers",
        "closing",  # address of the function for punctuations, or 0
        "guessed_ns",
        "guessed_outputs",  # times 2^20
    ),
    ("head",),  # tuples claimed
    (
        "tail",  # tuples that arrived
        "seen_next",  # their sender's last view of `next`
        "copied",  # copies of a punctuation that arrived, if not all did
    ),
    (
        "next",  # tuples whose outputs were sent
        "sent",  # outputs already sent of a tuple whose outputs are sent in part
    ),
    ("sending",),  # whether a worker sends
    ("working",),  # workers inside
    ("inputs", "outputs", "time_ns"),  # what its cost and selectivity are estimated from
    ("window_time_ns",),  # time of workers in this window
    (  # Of the model.
        "cost_ns",
        "cost_at",  # the field with the cost; -1 for `cost_ns`
        "crowd_ps",  # added to a tuple's cost by each other worker on the operator, in picoseconds
        "output_ps",  # to send an output
        "whole",  # outputs of every tuple
        "share",  # share of 2^64: tuples with one output more
        "lock_queue_at",  # workers that wait for the lock
        "lock_head",
        "lock_tail",
    ),
)

PARTITION = _on_lines(
    (  # Of a lane, but for the load.
        "waiting",  # tuples claimed and not done
        "head",  # tuples taken from its queue
        "inside",  # workers, in checked runs
        "last",  # the serial number after that of its last tuple, in checked runs
        "owned",
    ),
    (  # Of who sends.
        "tail",  # tuples put into its queue
        "load",  # tuples of the partition in total
    ),
)

TIMED = of_words("fed", "entered", "left", "lag", "served", "worker")
"""When a timed tuple arrived, was started, and left; and how late its arrival was noticed. In the model also when the
first operator was done with it, and which worker ran that."""

TALLY = _on_lines(
    (
        "done",
        "made",
        "busy_ns",
        "slices",  # slices that it began
        "delegated",
        "retries",
        "blocked",
        "waited_ns",  # for room in the ring buffer or the lock
        "overlaps",
        "disorders",
        "fullest",
        "cursor",  # the partition to start with, or its replica
        "bare_done",  # tuples without fields, among those done and made
        "bare_made",
        ("in_use", 32),  # chunks by the bit length of the tuples from the next to be sent to their end
    )
)
"""Counters of one worker for one operator."""


class Header(Record):
    """A record of the kind `HEADER`."""


class Operator(Record):
    """A record of the kind `OPERATOR`."""


class Partition(Record):
    """A record of the kind `PARTITION`."""


class Tally(Record):
    """A record of the kind `TALLY`."""

    in_use: NDArray[np.int64]


@inlined
def operator_at(header: Header, number: int) -> Operator:
    """An operator by its number."""
    found: Operator = record_at(fixed(header, "operators_at"), OPERATOR, number)
    return found


@inlined
def partition_at(operator: Operator, partition: int) -> Partition:
    """A partition of an operator by its number."""
    found: Partition = record_at(fixed(operator, "partitions_at"), PARTITION, partition)
    return found


@inlined
def tally_at(header: Header, worker: int, number: int) -> Tally:
    """Counters of a worker for an operator."""
    found: Tally = record_at(fixed(header, "tallies_at"), TALLY, worker * fixed(header, "operators") + number)
    return found


GOES_ON, FINISHED, STALLED, FAULTY, DEAD = range(5)
"""How a run ends: not yet; all tuples left; stalled; a function failed; a worker died."""

SHARED_QUEUE, HYBRID, PARTITIONED = range(3)
"""Work queue of an operator: without partitions; hybrid; partitioned."""

CLAIM, RETRY, LOCK = range(3)
"""Reorder buffers, see `Reorder`."""

CT, LP, ET, QST, CT_LITERAL = range(5)
"""Scheduling heuristics, see `Heuristic`."""
