"""Random service times and outputs, by serial number, independent of the schedule."""

import numpy as np

from adapt.core.atomics import load, store
from adapt.core.compiled import inlined
from adapt.core.ordered.chain.mixing import FOLD
from adapt.core.ordered.engine.kernel.layout import Header, Operator, Tally
from adapt.core.ordered.engine.kernel.punctuation import count_bare, hand_on
from adapt.core.ordered.engine.kernel.running import fail, run_one
from adapt.core.ordered.engine.kernel.tuples import (
    BARE,
    MARK,
    MARKED,
    PUNCTUATION,
    copy_of,
    copy_words,
    outputs_at,
    ticket_of,
    tuple_at,
)
from adapt.core.ordered.engine.kernel.work_queue import only_passes
from adapt.core.ordered.functions.routed import cost_place, edge_of, key_place
from adapt.core.ordered.model.events import ModelWorker
from adapt.core.random_bits import mixed


@inlined
def _drawn(header: Header, operator: Operator, what: int, serial: int) -> np.uint64:
    """Random bits of a tuple, for its cost (0) or its outputs (1), from SplitMix64."""
    return mixed(np.uint64(header.seed + 2 * operator.number + what) + np.uint64(serial + 1) * np.uint64(FOLD))


@inlined
def _added_ps(header: Header, operator: Operator, me: ModelWorker, tuples: int) -> int:
    """What the engine adds to a tuple in picoseconds.

    Its share of its chunk, or of a full one if tuples are claimed one by one, but no larger than what waits.
    """
    others, awake = operator.working - 1, header.workers - header.idlers - header.parked
    added_ps = operator.added_ps + operator.crowd_ps * others
    claim_ps = operator.claim_ps + operator.crowd_claim_ps * others
    if awake > operator.working:
        added_ps += operator.passed_ps
        claim_ps += operator.passed_claim_ps
    if claim_ps or operator.lane_ps:
        chunk = me.chunk
        if header.chunk:
            chunk = min(operator.full_chunk, max(operator.tail - operator.head, 0) + tuples)
        lanes = operator.modeled_lanes
        if lanes:
            met = lanes * (1.0 - (1.0 - 1.0 / lanes) ** chunk)
            claim_ps += int(met * (operator.lane_ps + operator.crowd_lane_ps * others))
        added_ps += claim_ps // chunk
    return added_ps


@inlined
def _state_ps(operator: Operator, fields: int, worker: int) -> int:
    """Time for the state of a tuple's key, which is then this worker's.

    `worker` is any number above 0 that no other worker has.
    """
    place, key = operator.owner_key_at, 0
    if place >= 0 and operator.routes_at:
        place = key_place(edge_of(operator.routes_at, fields))
    if place >= 0:
        key = load(fields, place)
    last = load(operator.owners_at, key)
    store(operator.owners_at, key, worker)
    return operator.moved_ps if last and last != worker else operator.here_ps


@inlined
def service_ps(header: Header, operator: Operator, me: ModelWorker, serial: int, tuples: int) -> int:
    """Service time of a batch in picoseconds, with what the engine adds."""
    at, share = operator.cost_at, header.jitter / 1048576.0
    added_ps = _added_ps(header, operator, me, tuples)
    total, added = 0.0, 0
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
        if operator.owners_at and not only_passes(operator, given + 8):
            added += _state_ps(operator, given + 8, me.due_at)
        total += cost
        added += added_ps
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
