"""Random service times and outputs, by serial number, independent of the schedule."""

import numpy as np

from adapt.core.atomics import load, store
from adapt.core.compiled import inlined
from adapt.core.ordered.chain.mixing import FOLD
from adapt.core.ordered.engine.kernel.layout import Header, Operator, Tally
from adapt.core.ordered.engine.kernel.punctuation import count_bare, hand_on
from adapt.core.ordered.engine.kernel.running import fail, run_one
from adapt.core.ordered.engine.kernel.work_queue import (
    BARE,
    MARK,
    MARKED,
    PUNCTUATION,
    copy_of,
    copy_words,
    only_passes,
    outputs_at,
    ticket_of,
    tuple_at,
)
from adapt.core.ordered.functions.routed import cost_place, edge_of
from adapt.core.random_bits import mixed


@inlined
def _drawn(header: Header, operator: Operator, what: int, serial: int) -> np.uint64:
    """Random bits of a tuple, for its cost (0) or its outputs (1), from SplitMix64."""
    return mixed(np.uint64(header.seed + 2 * operator.number + what) + np.uint64(serial + 1) * np.uint64(FOLD))


@inlined
def service_ps(header: Header, operator: Operator, serial: int, tuples: int) -> int:
    """Service time of a batch in picoseconds, with what other workers add."""
    at, share = operator.cost_at, header.jitter / 1048576.0
    crowd_ps, total, added = operator.crowd_ps * (operator.working - 1), 0.0, 0
    for number in range(serial, serial + tuples):
        given = tuple_at(operator, number)
        if load(given, MARK) >= PUNCTUATION:
            continue
        cost = 0.0
        if not only_passes(operator, given + 8):
            place = at
            if at >= 0 and operator.routes_at:
                place = cost_place(edge_of(operator.routes_at, given + 8))
            cost = float(operator.cost_ns if place < 0 else load(given, 1 + place))
        if share > 0:
            even = (float(_drawn(header, operator, 0, number) >> np.uint64(11)) + 0.5) / 9007199254740992.0
            cost *= 1.0 - share - share * np.log(even)
        total += cost
        added += crowd_ps
    return 1000 * int(total + 0.5) + added


@inlined
def _put(operator: Operator, serial: int, ticket: int) -> None:
    """Put a tuple's outputs into the ring buffer."""
    store(operator.slots_at, serial & operator.ring_mask, ticket)


@inlined
def _run_function(header: Header, tally: Tally, operator: Operator, partition: int, serial: int, tuples: int) -> None:
    """Run the operator's function on a batch."""
    for number in range(serial, serial + tuples):
        if operator.master_at:  # a replica has several partitions
            partition = load(operator.master_at, number & operator.queue_mask)
        ticket = run_one(header, tally, operator, partition, number, outputs_at(operator, number))
        if ticket < 0:
            fail(header, operator, ticket)
            return
        _put(operator, number, ticket)


@inlined
def _copied(header: Header, tally: Tally, operator: Operator, serial: int) -> int:
    """Write a tuple's outputs as copies, as many as are drawn; returns their number."""
    size, outputs = operator.out_words, outputs_at(operator, serial)
    given, share, count = tuple_at(operator, serial), np.uint64(operator.share), 0
    mark = load(given, MARK)
    if PUNCTUATION <= mark < BARE:
        count_bare(tally)
        if copy_of(mark) == operator.partitions - 1:
            tally.bare_made += 1
            hand_on(given, outputs, mark, size)
            count = 1
        return count
    if mark < BARE:
        count = operator.whole
        if share and _drawn(header, operator, 1, serial) < share:
            count += 1
    else:
        count_bare(tally)
    for output in range(count):
        store(outputs, output * size, 0)
        copy_words(given + 8, outputs + 8 * (output * size + 1), size - 1)
    if mark and count:
        store(outputs, (count - 1) * size, mark)
    elif mark:
        tally.bare_made += 1
        store(outputs, 0, mark | BARE)
        count = 1
    return count


@inlined
def put_outputs(header: Header, tally: Tally, operator: Operator, partition: int, serial: int, tuples: int) -> None:
    """Put a batch's outputs into the ring buffer.

    Those of its function, or copies by drawn selectivity.
    """
    if operator.function:
        _run_function(header, tally, operator, partition, serial, tuples)
        return
    for number in range(serial, serial + tuples):
        held = _copied(header, tally, operator, number)
        tally.made += held
        _put(operator, number, ticket_of(number) | MARKED | held)
    tally.done += tuples
