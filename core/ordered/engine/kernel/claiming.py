"""Claims of tuples from a work queue by compare-and-swap."""

from adapt.core.atomics import fixed, load_atomic, replace
from adapt.core.compiled import flattened, inlined, record_after
from adapt.core.ordered.engine.kernel.codes import MOST_CHUNK, RETRY
from adapt.core.ordered.engine.kernel.layout import Header, Operator, Tally
from adapt.core.ordered.engine.kernel.running import count_ahead, run_claimed, send

SHARED_SLICE = 64
"""Part of a slice from which on a chunk is shared: to share less costs more than it saves."""


@flattened
def claimable_before(header: Header, operator: Operator) -> int:
    """The first serial number that may not be claimed yet.

    Later tuples have not arrived or have no room in the ring buffer.

    With `RETRY` those of a work queue may be, whatever the ring buffer, but none while the next operator has enough.
    """
    end = load_atomic(operator, "tail")
    if fixed(header, "reorder") != RETRY:
        return min(end, load_atomic(operator, "next") + fixed(operator, "ring_mask") + 1)
    if fixed(operator, "number") < fixed(header, "operators") - 1:
        down = record_after(operator, 1)
        if load_atomic(down, "tail") - load_atomic(down, "next") >= fixed(header, "queue"):
            return 0
    return min(end, load_atomic(operator, "next") + fixed(header, "queue"))


@flattened
def chunk_of(header: Header, claimable: int, quota: int) -> int:
    """Tuples to claim at once; below 1 if none can be.

    A worker never waits for a chunk to fill: it claims what has arrived. A chunk that adapts to cost takes no longer
    than a slice, and leaves the other workers their share of what takes longer than a small part of one.
    """
    chunk = fixed(header, "chunk")
    if not chunk:
        share = max(claimable // fixed(header, "workers") + 1, quota // SHARED_SLICE)
        chunk = min(quota, MOST_CHUNK, share)
    return min(claimable, chunk)


@inlined
def take_shared(header: Header, tally: Tally, scratch: int, operator: Operator, quota: int) -> int:
    """Process tuples of an operator without partitions; returns their number."""
    done = 0
    while done < quota and not load_atomic(header, "stop"):
        head = load_atomic(operator, "head")
        tuples = chunk_of(header, claimable_before(header, operator) - head, quota)
        if tuples <= 0:
            break
        if not replace(operator, "head", head, head + tuples):
            continue
        count_ahead(tally, operator, head + tuples)
        run_claimed(header, tally, scratch, operator, 0, 0, head, tuples)
        send(header, tally, operator)
        done += tuples
    return done
