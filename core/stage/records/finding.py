"""Access to records in kernels, by the addresses in the world record.

Passing the arrays themselves to kernels would update some thirty reference counts per call, which costs more than the
work.
"""

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np.numpy_support import from_dtype

from adapt.core.stage.records.world import KINDS


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
