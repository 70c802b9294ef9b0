"""Time slices of the model: batches that a worker processes in turn."""

from adapt.core.atomics import load
from adapt.core.compiled import inlined
from adapt.core.ordered.engine.kernel.claiming import claimable_before
from adapt.core.ordered.engine.kernel.codes import HYBRID, PARTITIONED
from adapt.core.ordered.engine.kernel.estimates import outputs_made, tuples_done
from adapt.core.ordered.engine.kernel.layout import Header, Operator, Tally, partition_at
from adapt.core.ordered.model.batches import begin_in_lane, begin_in_queue, claimable_in
from adapt.core.ordered.model.chunks import begin_chunk, owned_chunk
from adapt.core.ordered.model.events import ModelWorker


@inlined
def _partition_run(operator: Operator, head: int, most: int) -> tuple[int, int]:
    """Partition at the head of the master queue, and its consecutive tuples."""
    master, mask = operator.master_at, operator.queue_mask
    partition, tuples = load(master, head & mask), 1
    while tuples < most and load(master, (head + tuples) & mask) == partition:
        tuples += 1
    return partition, tuples


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
            begin_in_lane(header, me, operator, partition, min(tuples, header.chunk))
            return True
    return False


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
        tuples = min(claimable_in(header, operator, partition), header.chunk)
        if not header.chunk:
            tuples = owned_chunk(header, me, operator, partition)
            me.round = me.chunk = tuples
        if not tuples:
            continue
        if not mine:
            if me.inside:
                partition_at(operator, cursor).owned = 0
            part.owned = 1
            me.inside = 1
            tally.cursor = partition
        before = part.head
        begin_in_lane(header, me, operator, partition, min(tuples, operator.ring_mask + 1))
        operator.head += tuples if not header.chunk else part.head - before
        return True
    return False


@inlined
def begin_next(header: Header, tally: Tally, me: ModelWorker, operator: Operator) -> bool:
    """Start the next batch of the slice; whether there is one."""
    work_queue = operator.work_queue
    if not header.chunk and work_queue != PARTITIONED:
        return begin_chunk(header, tally, me, operator)
    if work_queue == HYBRID:
        if me.inside:
            waiting = partition_at(operator, me.partition).waiting
            begin_in_lane(header, me, operator, me.partition, min(waiting, header.chunk))
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
    begin_in_queue(header, me, operator, head, tuples)
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
