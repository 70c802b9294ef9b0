"""Progress of a run: idle workers, stalls and the end."""

from adapt.core.atomics import clock_ns, fetch_add, fixed, give_way, load, load_atomic, replace, rest_us
from adapt.core.compiled import inlined
from adapt.core.ordered.engine.kernel.codes import GOES_ON, STALLED
from adapt.core.ordered.engine.kernel.egress import awaits_taking
from adapt.core.ordered.engine.kernel.feeding import is_empty
from adapt.core.ordered.engine.kernel.layout import Header, operator_at

_REST_AFTER, _REST_US = 50, 50
"""Rounds without progress of any worker, or without work, after which a worker sleeps; and the length of the sleep."""

WAKING_US, LONGEST_US = 100, 1000
"""How much earlier than the next arrival an idle worker wakes, since systems wake it late; and its longest sleep."""


@inlined
def _progress(header: Header) -> int:
    """A number that grows whenever a tuple moves."""
    moved = load_atomic(header, "fed")
    for number in range(header.operators):
        operator = operator_at(header, number)
        moved += load_atomic(operator, "head") + load_atomic(operator, "tail") + load_atomic(operator, "next")
    return moved


@inlined
def _awaits_arrival(header: Header) -> bool:
    """Whether rows are still to arrive, and have room."""
    first = operator_at(header, 0)
    filled = load_atomic(first, "tail") - load_atomic(first, "next")
    return fixed(header, "arrivals_at") != 0 and load_atomic(header, "fed") < header.rows and filled <= first.queue_mask


@inlined
def _pause_us(header: Header) -> int:
    """Time until the next row arrives, less the time to wake up.

    At most 0 if there is something to do.
    """
    fed = load_atomic(header, "fed")
    if not fixed(header, "arrivals_at") or fed >= header.rows or not is_empty(header):
        return 0
    due_ns = load(fixed(header, "arrivals_at"), fed) - (clock_ns() - fixed(header, "start_ns"))
    return min(due_ns // 1000 - WAKING_US, LONGEST_US)


@inlined
def rest(header: Header, moved: int, rounds: int, unused: int) -> tuple[int, int]:
    """Yield to other threads, and detect a stalled run.

    The run ends as stalled if all workers are idle and no tuple moves for a while. `unused` are the rounds since this
    worker had work; where rows arrive, it does not sleep for that, so that it notices them in time.

    A worker counts as idle only here, where it holds nothing, and not while it is descheduled.

    Returns:
        The progress, and the rounds since it last changed; arguments of the next call.
    """
    idle = fetch_add(header, "idle", 1) + 1
    now = _progress(header)
    if now != moved:
        moved, rounds = now, 0
    elif idle == header.workers and not awaits_taking(header) and not _awaits_arrival(header):
        rounds += 1
        if rounds > header.patience:
            replace(header, "stop", GOES_ON, STALLED)
    pause_us = _pause_us(header)
    if rounds >= _REST_AFTER or (unused >= _REST_AFTER and not fixed(header, "arrivals_at")):
        pause_us = _REST_US
    if pause_us > 0:
        rest_us(pause_us)
    else:
        give_way()
    fetch_add(header, "idle", -1)
    return moved, rounds


@inlined
def is_finished(header: Header) -> bool:
    """Whether every tuple has left the chain."""
    return load_atomic(header, "fed") >= header.rows and is_empty(header)
