"""Sending: outputs of a batch pass through the reorder buffer."""

from adapt.core.atomics import apart, exchange, fixed, give_way, load_atomic, publish, release
from adapt.core.compiled import inlined
from adapt.core.ordered.engine.kernel.codes import LOCK, RETRY
from adapt.core.ordered.engine.kernel.layout import Header, Operator, Tally, slot_at
from adapt.core.ordered.engine.kernel.progress import rest
from adapt.core.ordered.engine.kernel.reorder_buffer import drain_apart, send_ready
from adapt.core.ordered.engine.kernel.tuples import copy_words, outputs_at


@inlined
def _await_room(header: Header, tally: Tally, operator: Operator, end: int) -> None:
    """Wait until the ring buffer has room for the serial numbers before `end`: the paper's blocked worker."""
    apart()
    moved, rounds = -1, 0
    while end > load_atomic(operator, "next") + header.ring and not load_atomic(header, "stop"):
        tally.retries += 1
        drain_apart(header, tally, operator)
        moved, rounds = rest(header, moved, rounds)


@inlined
def send(
    header: Header, tally: Tally, operator: Operator, serial: int, tuples: int, outputs: int, held: int, block: int
) -> None:
    """Put a batch into the ring buffer, and send what is ready.

    If its outputs are in a block, the ring buffer gets the block's address.
    """
    reorder = fixed(header, "reorder")
    if reorder == RETRY:
        _await_room(header, tally, operator, serial + tuples)
        if load_atomic(header, "stop"):
            release(block)
            return
        if not block:
            copy_words(outputs, outputs_at(operator, serial), held * fixed(operator, "out_words"))
    if reorder == LOCK:
        while exchange(operator, "sending", 1):
            if load_atomic(header, "stop"):
                release(block)
                return
            give_way()
    slot = slot_at(operator, serial)
    slot.tuples = tuples
    slot.outputs = held
    slot.block = block
    publish(slot, "ticket", serial + 1)
    if reorder == LOCK:
        send_ready(header, tally, operator)
        exchange(operator, "sending", 0)
    else:
        drain_apart(header, tally, operator)
