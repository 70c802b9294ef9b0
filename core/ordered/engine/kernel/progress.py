"""Progress of a run: idle workers, stalls and the end."""

from adapt.core.atomics import fetch_add, fixed, give_way, load_atomic, replace, rest_us
from adapt.core.compiled import inlined
from adapt.core.ordered.engine.kernel.codes import GOES_ON, STALLED
from adapt.core.ordered.engine.kernel.egress import awaits_taking
from adapt.core.ordered.engine.kernel.layout import Header, operator_at

_REST_AFTER, _REST_US = 50, 50
"""Rounds without progress after which a worker sleeps, and the length of the sleep."""


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
    """Whether a feeder has rows left, and room for them."""
    first = operator_at(header, 0)
    filled = load_atomic(first, "tail") - load_atomic(first, "next")
    return fixed(header, "arrivals_at") != 0 and load_atomic(header, "fed") < header.rows and filled <= first.queue_mask


@inlined
def rest(header: Header, moved: int, rounds: int) -> tuple[int, int]:
    """Yield to other threads, and detect a stalled run.

    The run ends as stalled if all workers are idle and no tuple moves for a while.

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
    if rounds < _REST_AFTER:
        give_way()
    else:
        rest_us(_REST_US)
    fetch_add(header, "idle", -1)
    return moved, rounds


@inlined
def is_finished(header: Header) -> bool:
    """Whether every tuple has left the chain."""
    if load_atomic(header, "fed") < header.rows:
        return False
    for number in range(header.operators):
        operator = operator_at(header, number)
        if load_atomic(operator, "next") != load_atomic(operator, "tail"):
            return False
    return True
