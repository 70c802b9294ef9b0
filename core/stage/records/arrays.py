"""Arrays of the records of a stage, and how they are found."""

from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np.numpy_support import from_dtype
from numpy.typing import NDArray

from adapt.core.stage.records.world import KINDS, WORLD, World

NONE = -1
"""No tuple, partition or worker; end of a list."""

ANSWERED = 2
"""A tuple in service at a replica that its owner has committed already."""

UNUSED = 2**62
"""Number at a free place of the spill; bytes by which state may grow without a limit."""

IDLE, SERVING, IN_JOB, FREE, DEAD, BLOCKED = range(6)
"""State of a consumer: waiting for input, processing a tuple, running a job, about to choose (or waiting for a shared
CPU), dead, or blocked until the next stage has room."""

REACHED, ROWS_WANTED, QUIESCED, JOB_DONE, BACKLOG_DONE, SPILL_FULL, GROWN = range(7)
"""Why the compiled engine returns: its time is reached; more rows are needed; all pauses of a worker are acknowledged;
a job is finished; the spilled input of a partition is processed; the space for spilled tuples is full; the state of a
worker exceeds its room."""


Records: TypeAlias = NDArray[Any]
"""An array of records."""


class Arrays:
    """Arrays of the compiled engine, and the record that locates them.

    Arrays have the names of `KINDS`, and the record is a `WORLD`. The record holds addresses, so replace an array only
    by `put`.
    """

    def __init__(self) -> None:
        """Store an empty array of each of `KINDS`, with zero sizes and costs."""
        self.share(np.zeros(1, WORLD))
        self._arrays: dict[str, Records] = {}
        for name in KINDS:
            self.fill(name, 0)

    @property
    def world(self) -> World:
        """The world record, mutable."""
        return self.worlds[0]

    @property
    def now_s(self) -> float:
        """Current simulated time."""
        return self._now.item()

    def __getitem__(self, name: str) -> Records:
        """Array by name."""
        return self._arrays[name]

    def share(self, worlds: Records) -> None:
        """Use another record, which must hold the same values."""
        self.worlds = worlds
        self._now: NDArray[np.float64] = worlds["now"]

    def put(self, name: str, array: Records) -> None:
        """Replace an array."""
        self._arrays[name] = kept = np.ascontiguousarray(array, KINDS[name])
        self.worlds[f"{name}_at"] = kept.ctypes.data

    def fill(self, name: str, size: int, **fields: object) -> None:
        """Replace an array by records with these fields; others are zero."""
        records = np.zeros(size, KINDS[name])
        for field, value in fields.items():
            records[field] = value
        self.put(name, records)


def _found(name: str) -> Any:
    """Accessor of the n-th record of a named array, given the world record."""
    kind: Any = from_dtype(KINDS[name])

    def find(_: Any, world: Any, number: Any) -> Any:  # noqa: ARG001 (numba counts the parameters)
        def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
            record, index = arguments
            word, offset = ir.IntType(64), [ir.IntType(32)(0), ir.IntType(32)(world.offset(f"{name}_at"))]
            first = builder.load(builder.bitcast(builder.gep(record, offset), word.as_pointer()))
            address = builder.add(first, builder.mul(index, ir.Constant(word, kind.size)))
            return builder.inttoptr(address, context.get_value_type(kind))

        return kind(world, types.int64), generate

    return intrinsic(find)


bin_at = _found("bin")
barrier_at = _found("barrier")
channel_at = _found("channel")
connection_at = _found("connection")
cpu_at = _found("cpu")
due_at = _found("due")
edge_at = _found("edge")
entry_at = _found("entry")
flow_at = _found("flow")
group_at = _found("group")
held_at = _found("held")
joined_at = _found("joined")
kept_at = _found("kept")
latency_at = _found("latency")
line_at = _found("line")
linked_at = _found("linked")
live_at = _found("live")
mirrored_at = _found("mirror")
newest_at = _found("newest")
outbox_at = _found("outbox")
pair_at = _found("pair")
part_at = _found("part")
partition_at = _found("partition")
pause_at = _found("pause")
past_at = _found("past")
pooled_at = _found("pooled")
producer_at = _found("producer")
queued_at = _found("queued")
rank_at = _found("rank")
refusal_at = _found("refusal")
ring_at = _found("ring")
row_at = _found("row")
segment_at = _found("segment")
service_at = _found("service")
worker_at = _found("worker")
spilled_at = _found("spilled")
stamp_at = _found("stamp")
state_at = _found("state")
total_at = _found("total")
turn_at = _found("turn")
window_at = _found("window")
winner_at = _found("winner")
