"""Time slices of the model: batches that a worker processes in turn."""

from adapt.core.atomics import load
from adapt.core.compiled import inlined, record_at
from adapt.core.ordered.engine.kernel.claiming import claimable_before
from adapt.core.ordered.engine.kernel.codes import HYBRID, PARTITIONED
from adapt.core.ordered.engine.kernel.estimates import outputs_made, tuples_done
from adapt.core.ordered.engine.kernel.layout import TIMED, Header, Operator, Tally, partition_at
from adapt.core.ordered.engine.kernel.tuples import COPY, MARK, tuple_at
from adapt.core.ordered.engine.kernel.work_queue import partition_queue_at
from adapt.core.ordered.model.draws import service_ps
from adapt.core.ordered.model.events import SERVED, ModelWorker, schedule, whole_ns


@inlined
def _begin_batch(header: Header, me: ModelWorker, operator: Operator, partition: int, serial: int, tuples: int) -> None:
    """Start a batch, which ends after its service time."""
    now = header.now_ns
    served = now + whole_ns(me, service_ps(header, operator, serial, tuples, me.due_at))
    me.partition = partition
    me.serial = serial
    me.tuples = tuples
    if operator.number == 0 and header.mark_every:
        for number in range(serial, serial + tuples):
            mark = load(tuple_at(operator, number), MARK) & (COPY - 1)
            if mark:
                timed = record_at(header.marks_at, TIMED, mark - 1)
                timed.entered = now
                timed.served = served
                timed.worker = (me.due_at - header.dues_at) // 8
    schedule(me, SERVED, served)


@inlined
def _run_length(header: Header, operator: Operator, queue: int, head: int, most: int) -> int:
    """Consecutive tuples at the head of a partition's queue.

    At most a batch.
    """
    mask = operator.queue_mask
    first, tuples = load(queue, head & mask), 1
    most = min(most, header.chunk)
    while tuples < most and load(queue, (head + tuples) & mask) == first + tuples:
        tuples += 1
    return tuples


@inlined
def _partition_run(operator: Operator, head: int, most: int) -> tuple[int, int]:
    """Partition at the head of the master queue, and its consecutive tuples."""
    master, mask = operator.master_at, operator.queue_mask
    partition, tuples = load(master, head & mask), 1
    while tuples < most and load(master, (head + tuples) & mask) == partition:
        tuples += 1
    return partition, tuples


@inlined
def _next_in_partition(header: Header, me: ModelWorker, operator: Operator, partition: int, most: int) -> None:
    """Start the batch at the head of a partition's queue."""
    part, queue = partition_at(operator, partition), partition_queue_at(operator, partition)
    head = part.head
    tuples = _run_length(header, operator, queue, head, most)
    serial = load(queue, head & operator.queue_mask)
    part.head = head + tuples
    _begin_batch(header, me, operator, partition, serial, tuples)


@inlined
def _begin_delegating(header: Header, tally: Tally, me: ModelWorker, operator: Operator) -> bool:
    """Claim from the master queue until a partition is idle; delegate to the workers inside busy ones."""
    while me.left > 0:
        head = operator.head
        most = min(claimable_before(header, operator) - head, header.chunk)
        if most <= 0:
            return False
        partition, tuples = _partition_run(operator, head, most)
        operator.head = head + tuples
        part = partition_at(operator, partition)
        waiting = part.waiting
        part.waiting = waiting + tuples
        if waiting:
            tally.delegated += tuples
        else:
            me.inside = 1
            _next_in_partition(header, me, operator, partition, tuples)
            return True
    return False


@inlined
def _claimable_in(header: Header, operator: Operator, partition: int) -> int:
    """Tuples at the head of a partition that may be claimed."""
    part = partition_at(operator, partition)
    head = part.head
    waiting = part.tail - head
    if waiting <= 0:
        return 0
    serial = load(partition_queue_at(operator, partition), head & operator.queue_mask)
    return min(waiting, max(claimable_before(header, operator) - serial, 0))


@inlined
def _begin_owned(header: Header, tally: Tally, me: ModelWorker, operator: Operator) -> bool:
    """Go on in the owned partition or replica, or take over the next partition with tuples."""
    replicas = operator.replicas
    cursor, lanes = tally.cursor, replicas or operator.partitions
    for step in range(1 if replicas else lanes):
        partition = (cursor + step) % lanes
        part = partition_at(operator, partition)
        mine = step == 0 and me.inside == 1
        if part.head >= part.tail or (part.owned and not mine):
            continue
        tuples = _claimable_in(header, operator, partition)
        if not tuples:
            continue
        if not mine:
            if me.inside:
                partition_at(operator, cursor).owned = 0
            part.owned = 1
            me.inside = 1
            tally.cursor = partition
        before = part.head
        _next_in_partition(header, me, operator, partition, tuples)
        operator.head += part.head - before
        return True
    return False


@inlined
def begin_next(header: Header, tally: Tally, me: ModelWorker, operator: Operator) -> bool:
    """Start the next batch of the slice; whether there is one."""
    work_queue = operator.work_queue
    if work_queue == HYBRID:
        if me.inside:
            waiting = partition_at(operator, me.partition).waiting
            _next_in_partition(header, me, operator, me.partition, waiting)
            return True
        return _begin_delegating(header, tally, me, operator)
    if me.left <= 0:
        return False
    if work_queue == PARTITIONED:
        return _begin_owned(header, tally, me, operator)
    head = operator.head
    tuples = min(claimable_before(header, operator) - head, header.chunk)
    if tuples <= 0:
        return False
    operator.head = head + tuples
    _begin_batch(header, me, operator, 0, head, tuples)
    return True


@inlined
def leave_operator(header: Header, tally: Tally, me: ModelWorker, operator: Operator) -> None:
    """End the slice: update the estimates and leave the partition."""
    took = header.now_ns - me.start_ns
    tally.busy_ns += took
    worked = tuples_done(tally) - me.done_before
    if worked:
        operator.time_ns += took
        operator.window_time_ns += took
        operator.outputs += outputs_made(tally) - me.made_before
        operator.inputs += worked
    if me.inside and operator.work_queue == PARTITIONED:
        partition_at(operator, tally.cursor).owned = 0
    me.inside = 0
    operator.working -= 1
