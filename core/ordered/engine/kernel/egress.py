"""Egress: tuples that leave are counted, hashed and timed."""

import numpy as np

from adapt.core.atomics import apart, clock_ns, fetch_add, fixed, give_way, load, load_atomic, publish, replace, rest_us
from adapt.core.compiled import flattened, inlined, record_at
from adapt.core.ordered.chain.mixing import FOLD
from adapt.core.ordered.engine.kernel.codes import GOES_ON, STALLED
from adapt.core.ordered.engine.kernel.feeding import current_ns, is_empty
from adapt.core.ordered.engine.kernel.layout import TIMED, Header, Operator, operator_at
from adapt.core.ordered.engine.kernel.work_queue import COPY, MARK, PUNCTUATION, copy_words


@inlined
def _time_leaving(header: Header, mark: int) -> None:
    """Record when a timed tuple leaves."""
    apart()
    number = (mark & (COPY - 1)) - 1
    record_at(header.marks_at, TIMED, number).left = current_ns(header)


@inlined
def _keep(header: Header, left: int, fields: int, words: int) -> None:
    """Keep a tuple that leaves."""
    apart()
    copy_words(fields, fixed(header, "kept_at") + 8 * (left & fixed(header, "kept_mask")) * words, words)


@inlined
def awaits_taking(header: Header) -> bool:
    """Whether tuples cannot leave until kept ones are taken out."""
    return fixed(header, "waits") != 0 and load_atomic(header, "egress_tuples") >= load_atomic(header, "keep")


@flattened
def _folded(operator: Operator, fold: np.uint64, place: int) -> np.uint64:
    """The hash with another tuple."""
    at = 1
    # Atomic, or the loop would be unrolled, which is slower for a few words.
    while at < load_atomic(operator, "out_words"):
        fold = (fold ^ np.uint64(load(place, at))) * np.uint64(FOLD)
        fold = fold ^ (fold >> np.uint64(32))
        at += 1
    return fold


@inlined
def leave_plain(header: Header, operator: Operator, outputs: int, count: int) -> int:
    """`leave` for outputs without marks."""
    apart()
    size, left, keep = fixed(operator, "out_words"), header.egress_tuples, load_atomic(header, "keep")
    if fixed(header, "waits"):
        count = max(min(count, keep - left), 0)
    for number in range(min(count, keep - left)):
        _keep(header, left + number, outputs + 8 * (number * size + 1), size - 1)
    fold, place, end = np.uint64(header.egress_hash), outputs, outputs + 8 * count * size
    while place < end:
        fold = _folded(operator, fold, place)
        place += 8 * size
    header.egress_hash = np.int64(fold)
    publish(header, "egress_tuples", left + count)
    return count


@inlined
def leave(header: Header, operator: Operator, outputs: int, count: int) -> int:
    """Emit outputs of the last operator.

    As many as may leave; returns their number.
    """
    size = fixed(operator, "out_words")
    fold = np.uint64(header.egress_hash)
    left = header.egress_tuples
    keep, waits = load_atomic(header, "keep"), fixed(header, "waits")
    gone = 0
    while gone < count:
        place = outputs + 8 * gone * size
        mark = load(place, MARK)
        if waits and left >= keep and mark < PUNCTUATION:
            break
        gone += 1
        if mark & (COPY - 1):
            _time_leaving(header, mark)
        if mark >= PUNCTUATION:
            continue
        fold = _folded(operator, fold, place)
        if left < keep:
            _keep(header, left, place + 8, size - 1)
        left += 1
    header.egress_hash = np.int64(fold)
    publish(header, "egress_tuples", left)
    return gone


_REST_AFTER, _REST_US = 50, 50
"""Rounds without progress of any worker, or without work, after which a worker sleeps; and the length of the sleep."""

_ROUND = 1 << 16
"""More than all workers."""

WAKING_US, LONGEST_US = 100, 1000
"""How much earlier than the next arrival an idle worker wakes, since systems wake it late; and its longest sleep."""


@inlined
def _progress(header: Header) -> int:
    """A number that grows whenever a tuple moves, or is found waiting for something outside of the chain."""
    moved = load_atomic(header, "fed") + load_atomic(header, "delays")
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
def rest(header: Header, moved: int, since: int, counted: int, unused: int) -> tuple[int, int, int]:
    """Yield to other threads, and detect a stalled run.

    Only workers move tuples. So a run has stalled where each of them has looked for work in vain after all others had,
    and no tuple has moved: the round after next would do, and `patience` rounds leave a margin. A worker that the
    system does not let run completes no round, however long that takes. Rounds do not count while tuples wait for rows
    to arrive, or for kept ones to be taken. `unused` are the rests since this worker had work; where rows arrive, it
    does not sleep for that, so that it notices them in time.

    Returns:
        The progress, the round from which on there was none, and the round in which this worker counts; arguments of
        the next call.
    """
    seen = load_atomic(header, "vain")
    turn, now = seen // _ROUND, _progress(header)
    if now != moved:
        moved, since = now, turn + 1
    elif awaits_taking(header) or _awaits_arrival(header):
        fetch_add(header, "delays", 1)
    elif turn - since > header.patience:
        replace(header, "stop", GOES_ON, STALLED)
    elif turn != counted:
        more = seen + 1
        if more % _ROUND == header.workers:
            more = (turn + 1) * _ROUND
        if replace(header, "vain", seen, more):
            counted = turn
    pause_us = _pause_us(header)
    if turn - since >= _REST_AFTER or (unused >= _REST_AFTER and not fixed(header, "arrivals_at")):
        pause_us = _REST_US
    if pause_us > 0:
        rest_us(pause_us)
    else:
        give_way()
    return moved, since, counted


@inlined
def is_finished(header: Header) -> bool:
    """Whether every tuple has left the chain."""
    return load_atomic(header, "fed") >= header.rows and is_empty(header)
