"""Progress of a run: idle workers, stalls, the end."""

from adapt.core.atomics import fetch_add, give_way, load_atomic, replace, rest_us
from adapt.core.compiled import inlined
from adapt.core.ordered.engine.codes import GOES_ON, STALLED
from adapt.core.ordered.engine.layout import Header, operator_at

_REST_AFTER, _REST_US = 50, 50


@inlined
def _progress(header: Header) -> int:
    """A number that only grows, and grows whenever a tuple goes anywhere."""
    moved = load_atomic(header, "fed")
    for number in range(header.operators):
        operator = operator_at(header, number)
        moved += load_atomic(operator, "head") + load_atomic(operator, "tail") + load_atomic(operator, "next")
    return moved


@inlined
def rest(header: Header, moved: int, rounds: int) -> tuple[int, int]:
    """Give way; when all workers rest and no tuple moves for long, the run has stalled.

    Given and returned are the progress last seen and the rounds since. A worker is counted as resting only here, where
    it holds nothing; one that is merely not run by the machine is none.
    """
    idle = fetch_add(header, "idle", 1) + 1
    now = _progress(header)
    if now != moved:
        moved, rounds = now, 0
    elif idle == header.workers:
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
    """Whether every tuple is out. An operator is done for good if all before it are and it has sent all that came."""
    if load_atomic(header, "fed") < header.rows:
        return False
    for number in range(header.operators):
        operator = operator_at(header, number)
        if load_atomic(operator, "next") != load_atomic(operator, "tail"):
            return False
    return True
