"""Worker of the real backend: a loop over operators in time slices.

Workers share the records of `layout` and the tuples that these point to.

Source: ordered streams, sections 3, 4 and 6.
"""

from adapt.core.atomics import clock_ns, fetch_add, load, load_atomic, publish, release, replace, store
from adapt.core.compiled import compiled, inlined, record_after, record_at
from adapt.core.ordered.engine.kernel.claiming import take_delegating, take_partitions, take_shared
from adapt.core.ordered.engine.kernel.layout import (
    FINISHED,
    GOES_ON,
    HEADER,
    HYBRID,
    PARTITIONED,
    Header,
    Operator,
    Tally,
    operator_at,
    tally_at,
)
from adapt.core.ordered.engine.kernel.reorder_buffer import drain_if_ready, is_finished, rest
from adapt.core.ordered.engine.kernel.schedule import (
    choose_operator,
    enter,
    outputs_made,
    quota_of,
    renew_window,
    tuples_done,
)
from adapt.core.ordered.engine.kernel.work_queue import IN_BLOCK, copy_words, feed, is_ready, outputs_at


@inlined
def _take(header: Header, tally: Tally, scratch: int, operator: Operator, quota: int) -> int:
    """Process about a quota of an operator's tuples; returns their number."""
    work_queue = operator.work_queue
    if work_queue == HYBRID:
        return take_delegating(header, tally, scratch, operator, quota)
    if work_queue == PARTITIONED:
        return take_partitions(header, tally, scratch, operator, quota)
    return take_shared(header, tally, scratch, operator, quota)


@inlined
def _spend(header: Header, tally: Tally, scratch: int, operator: Operator) -> bool:
    """Spend a slice on an operator that this worker has entered; whether a tuple was processed."""
    start = clock_ns()
    renew_window(header, start)
    quota = quota_of(header, operator)
    worked, gave = tuples_done(tally), outputs_made(tally)
    done = _take(header, tally, scratch, operator, quota)
    took = clock_ns() - start
    tally.busy_ns += took
    tally.slices += 1
    if done:
        fetch_add(operator, "time_ns", took)
        fetch_add(operator, "window_time_ns", took)
        fetch_add(operator, "outputs", outputs_made(tally) - gave)
        fetch_add(operator, "inputs", tuples_done(tally) - worked)
    return done > 0


@compiled
def work(address: int, worker: int) -> None:
    """Run a worker until the end."""
    header = record_at(address, HEADER, 0)
    chain = header.operators
    scratch = header.scratch_at + 8 * header.scratch_words * worker
    half = (header.queue + 1) // 2
    barred = load(header.barred_at, worker)
    passed, moved, since, counted, rested, unused = barred, -1, 0, -1, False, 0
    while not load_atomic(header, "stop"):
        feed(header, half, rested)
        rested = False
        number = choose_operator(header, passed)
        if number >= 0:
            operator, tally = operator_at(header, number), tally_at(header, worker, number)
            if not enter(operator):
                passed |= 1 << number
                continue
            is_done = _spend(header, tally, scratch, operator)
            fetch_add(operator, "working", -1)
            if number > 0:
                drain_if_ready(header, record_after(tally, -1), record_after(operator, -1))
            if is_done:
                passed, unused = barred, 0
            else:
                passed |= 1 << number
            continue
        passed = barred
        feed(header, 1, False)
        for before in range(chain):
            last = chain - 1 - before
            drain_if_ready(header, tally_at(header, worker, last), operator_at(header, last))
        if is_finished(header):
            replace(header, "stop", GOES_ON, FINISHED)
        else:
            moved, since, counted = rest(header, moved, since, counted, unused)
            unused += 1
            rested = True


@compiled
def release_unsent(address: int) -> None:
    """Free the blocks of outputs that a run did not send."""
    header = record_at(address, HEADER, 0)
    for number in range(header.operators):
        operator = operator_at(header, number)
        for serial in range(operator.next, operator.next + operator.ring_mask + 1):
            if is_ready(operator, serial) and load(operator.slots_at, serial & operator.ring_mask) & IN_BLOCK:
                release(load(outputs_at(operator, serial), 1))


@compiled
def release_all(record: int, step: int, records: int) -> None:
    """Free the blocks whose addresses are in a field of records.

    `step` is the size of a record in words.
    """
    for number in range(records):
        release(load(record, step * number))
        store(record, step * number, 0)


@compiled
def take_kept(address: int, into: int, most: int, words: int) -> int:
    """Copy out the tuples that left since the last call.

    Others get their room. Returns their number.
    """
    header = record_at(address, HEADER, 0)
    first = header.keep - most
    end = min(load_atomic(header, "egress_tuples"), header.keep)
    for number in range(first, end):
        copy_words(header.kept_at + 8 * (number & header.kept_mask) * words, into + 8 * (number - first) * words, words)
    publish(header, "keep", end + most)
    return int(end - first)


@compiled
def now_ns() -> int:
    """The clock that times runs."""
    return clock_ns()
