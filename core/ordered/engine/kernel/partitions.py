"""Partitioned operators: the hybrid, the partitioned and the shared work queue.

Source: ordered streams, section 4 (Figure 7).
"""

from adapt.core.atomics import exchange, fetch_add, give_way, load, load_atomic, publish, replace
from adapt.core.compiled import inlined
from adapt.core.ordered.engine.kernel.batch import process
from adapt.core.ordered.engine.kernel.claiming import claimable_before, run_length
from adapt.core.ordered.engine.kernel.layout import Header, Operator, Tally, partition_at
from adapt.core.ordered.engine.kernel.tuples import MARK, tuple_at
from adapt.core.ordered.engine.kernel.work_queue import partition_of, partition_queue_at


@inlined
def take_too_late(header: Header, tally: Tally, scratch: int, operator: Operator, quota: int) -> int:
    """Claim from the shared queue, and lock the partition too late.

    The paper rejects this scheme.

    Another worker can overtake between the two steps. The worker yields there, so that tests see it happen.
    """
    done = 0
    while done < quota and not load_atomic(header, "stop"):
        head = load_atomic(operator, "head")
        if claimable_before(header, operator) <= head:
            break
        if not replace(operator, "head", head, head + 1):
            continue
        given = tuple_at(operator, head)
        partition = partition_of(operator, head, load(given, MARK), given + 8)
        part = partition_at(operator, partition)
        give_way()
        while exchange(part, "owned", 1):
            give_way()
        process(header, tally, scratch, operator, partition, head, 1)
        exchange(part, "owned", 0)
        done += 1
    return done


@inlined
def _work_off(header: Header, tally: Tally, scratch: int, operator: Operator, partition: int, waiting: int) -> int:
    """Process the claimed tuples of a partition, and those that others delegate meanwhile.

    This ends after at most one ring buffer of tuples, since claims need room in it.
    """
    part = partition_at(operator, partition)
    queue, mask = partition_queue_at(operator, partition), operator.queue_mask
    done = 0
    while waiting > 0 and not load_atomic(header, "stop"):
        head = part.head
        tuples = run_length(header, operator, queue, head, waiting)
        serial = load(queue, head & mask)
        part.head = head + tuples
        process(header, tally, scratch, operator, partition, serial, tuples)
        done += tuples
        waiting = fetch_add(part, "waiting", -tuples) - tuples
    return done


@inlined
def partition_run(operator: Operator, head: int, most: int) -> tuple[int, int]:
    """Partition at the head of the master queue, and its consecutive tuples."""
    master, mask = operator.master_at, operator.queue_mask
    partition, tuples = load(master, head & mask), 1
    while tuples < most and load(master, (head + tuples) & mask) == partition:
        tuples += 1
    return partition, tuples


@inlined
def take_delegating(header: Header, tally: Tally, scratch: int, operator: Operator, quota: int) -> int:
    """Claim from the master queue; process or delegate each tuple.

    A tuple of a busy partition is delegated to the worker inside it.
    """
    done = 0
    while done < quota and not load_atomic(header, "stop"):
        head = load_atomic(operator, "head")
        most = min(claimable_before(header, operator) - head, header.batch)
        if most <= 0:
            break
        # Read before the claim: after it the place may be reused.
        partition, tuples = partition_run(operator, head, most)
        if not replace(operator, "head", head, head + tuples):
            continue
        part = partition_at(operator, partition)
        if fetch_add(part, "waiting", tuples):
            tally.delegated += tuples
        else:
            done += _work_off(header, tally, scratch, operator, partition, tuples)
    return done


@inlined
def _work_in(header: Header, tally: Tally, scratch: int, operator: Operator, partition: int, quota: int) -> int:
    """Process an owned partition until its queue is empty, the quota is used, or the ring buffer is full."""
    part = partition_at(operator, partition)
    queue, mask = partition_queue_at(operator, partition), operator.queue_mask
    done = 0
    while done < quota and not load_atomic(header, "stop"):
        head = part.head
        most = load_atomic(part, "tail") - head
        if most <= 0:
            break
        serial = load(queue, head & mask)
        end = claimable_before(header, operator)
        if serial >= end:
            break
        tuples = min(run_length(header, operator, queue, head, most), end - serial)
        publish(part, "head", head + tuples)
        fetch_add(operator, "head", tuples)
        process(header, tally, scratch, operator, partition, serial, tuples)
        done += tuples
    return done


@inlined
def take_partitions(header: Header, tally: Tally, scratch: int, operator: Operator, quota: int) -> int:
    """Own and process partitions in turn, from where this worker was last."""
    partitions = operator.partitions
    cursor, done = tally.cursor, 0
    for step in range(partitions):
        partition = (cursor + step) % partitions
        part = partition_at(operator, partition)
        if load_atomic(part, "head") >= load_atomic(part, "tail"):
            continue
        if exchange(part, "owned", 1):
            continue
        done += _work_in(header, tally, scratch, operator, partition, quota - done)
        exchange(part, "owned", 0)
        if done >= quota or load_atomic(header, "stop"):
            tally.cursor = partition
            break
    return done
