"""Stalls of the model's workers, drawn by worker and number."""

import numpy as np

from adapt.core.atomics import load, store
from adapt.core.compiled import flattened, inlined
from adapt.core.ordered.chain.mixing import FOLD
from adapt.core.ordered.engine.kernel.layout import Header
from adapt.core.ordered.model.events import WAITS, ModelWorker
from adapt.core.random_bits import mixed

_STREAMS = 1 << 40
"""Draws of a worker start at its number times this."""


@inlined
def _even(header: Header, me: ModelWorker, worker: int) -> float:
    """The worker's next draw, uniform between 0 and 1."""
    me.draws += 1
    word = mixed(np.uint64(header.seed) ^ (np.uint64(_STREAMS * (worker + 1) + me.draws) * np.uint64(FOLD)))
    return (float(word >> np.uint64(11)) + 0.5) / 9007199254740992.0


@flattened
def draw_stall(header: Header, me: ModelWorker, worker: int, after_ns: int) -> None:
    """Draw the next stall, after an exponential time."""
    me.stall_at = after_ns + int(-np.log(_even(header, me, worker)) * header.stall_gap_ns)
    me.stall_ns = load(header.stalls_at, int(_even(header, me, worker) * header.stalls))


@inlined
def lateness_ns(header: Header, me: ModelWorker, worker: int) -> int:
    """How late the worker wakes up after a long sleep."""
    return int(load(header.lates_at, int(_even(header, me, worker) * header.lates)))


@inlined
def is_postponed(header: Header, me: ModelWorker, worker: int, due_ns: int) -> bool:
    """Whether a stall began before the worker's event.

    The event is then later by what the stall took of its time.
    """
    start = me.stall_at
    if start > due_ns:
        return False
    end = start + me.stall_ns
    draw_stall(header, me, worker, end)
    if me.state == WAITS:
        store(me.due_at, 0, max(end, due_ns))
    else:
        store(me.due_at, 0, due_ns + max(end - max(start, me.since_ns), 0))
    return True
