"""Time slices of the model, and chunks.

As on threads, a worker claims a chunk of what has arrived, splits it by lane where the operator has lanes, and sends at
its end, or before a further round in a lane that others delegated tuples to. Until then its outputs are in the ring
buffer, where another worker that sends takes them along. With `retry` it sends after each batch, so that its own
outputs never wait for room that they take up. A batch is what gets its ticket at once: consecutive tuples without
marks, or a marked one.
"""

from adapt.core.atomics import load, store
from adapt.core.compiled import flattened, inlined
from adapt.core.ordered.engine.kernel.claiming import chunk_of, claimable_before
from adapt.core.ordered.engine.kernel.codes import HYBRID, MOST_CHUNK, PARTITIONED, RETRY
from adapt.core.ordered.engine.kernel.estimates import outputs_made, tuples_done
from adapt.core.ordered.engine.kernel.layout import Header, Operator, Tally, partition_at
from adapt.core.ordered.engine.kernel.partitions import count_lanes
from adapt.core.ordered.engine.kernel.work_queue import partition_queue_at
from adapt.core.ordered.model.batches import begin_in_lane, begin_in_queue
from adapt.core.ordered.model.events import ModelWorker


@inlined
def _found_at(header: Header, me: ModelWorker) -> int:
    """The address of the lanes of a worker's chunk; the counts of tuples by lane are behind them."""
    worker = (me.due_at - header.dues_at) // 8
    return header.scratch_at + 8 * (header.scratch_words * worker + header.room_words)


@inlined
def _most(me: ModelWorker, operator: Operator) -> int:
    """Tuples of the next batch of a round, which have room in the ring buffer."""
    return min(me.round, operator.ring_mask + 1)


@flattened
def _begin_lane(header: Header, tally: Tally, me: ModelWorker, operator: Operator) -> bool:
    """Start on the next lane of the chunk that is idle; delegate the tuples of busy ones."""
    found = _found_at(header, me)
    while me.lane < me.lanes:
        lane = load(found, me.lane)
        count = load(found + 8 * MOST_CHUNK, lane)
        store(found + 8 * MOST_CHUNK, lane, 0)
        me.lane += 1
        part = partition_at(operator, lane)
        part.waiting += count
        if part.waiting > count:
            tally.delegated += count
            continue
        me.inside = 1
        me.round = count
        begin_in_lane(header, me, operator, lane, _most(me, operator))
        return True
    return False


@inlined
def _owned_chunk(header: Header, me: ModelWorker, operator: Operator, partition: int) -> int:
    """Tuples of the next chunk of an owned partition."""
    part, queue, mask = partition_at(operator, partition), partition_queue_at(operator, partition), operator.queue_mask
    head, end = part.head, claimable_before(header, operator)
    most, tuples = chunk_of(header, part.tail - head, me.quota), 0
    while tuples < most and load(queue, (head + tuples) & mask) < end:
        tuples += 1
    return tuples


@inlined
def _partition_run(operator: Operator, head: int, most: int) -> int:
    """Consecutive tuples of one partition at the head of the master queue."""
    master, mask, tuples = operator.master_at, operator.queue_mask, 1
    while tuples < most and load(master, (head + tuples) & mask) == load(master, head & mask):
        tuples += 1
    return tuples


@flattened
def _begin_chunk(header: Header, tally: Tally, me: ModelWorker, operator: Operator) -> bool:
    """Claim a chunk, or go on in a lane with delegated tuples.

    Of an operator without owned partitions. A chunk of a given size has tuples of one partition.
    """
    is_split = operator.work_queue == HYBRID
    if is_split and me.inside:
        me.round = min(partition_at(operator, me.partition).waiting, header.chunk or MOST_CHUNK)
        begin_in_lane(header, me, operator, me.partition, _most(me, operator))
        return True
    while me.left > 0:
        head = operator.head
        tuples = chunk_of(header, claimable_before(header, operator) - head, me.quota)
        if tuples <= 0:
            return False
        if is_split and (header.chunk or header.reorder == RETRY):
            tuples = _partition_run(operator, head, tuples if header.chunk else 1)
        operator.head = head + tuples
        if not is_split:
            me.round = tuples
            begin_in_queue(header, me, operator, head, _most(me, operator))
            return True
        found = _found_at(header, me)
        me.lane = 0
        me.lanes = count_lanes(operator, found, found + 8 * MOST_CHUNK, head, tuples)
        if _begin_lane(header, tally, me, operator):
            return True
    return False


@flattened
def goes_on(header: Header, tally: Tally, me: ModelWorker, operator: Operator) -> bool:
    """Go on in the chunk after a batch; whether anything is left.

    Nothing is sent before, unless chunks have a given size: those are one batch.
    """
    me.left -= me.tuples
    me.round = 0 if header.chunk else me.round - me.tuples
    work_queue = operator.work_queue
    if work_queue == HYBRID:
        part = partition_at(operator, me.partition)
        part.waiting -= me.tuples
        if me.round:
            begin_in_lane(header, me, operator, me.partition, _most(me, operator))
            return True
        if part.waiting:
            return False
        me.inside = 0
        return _begin_lane(header, tally, me, operator)
    if not me.round:
        return False
    if work_queue == PARTITIONED:
        begin_in_lane(header, me, operator, me.partition, _most(me, operator))
    else:
        begin_in_queue(header, me, operator, me.serial + me.tuples, _most(me, operator))
    return True


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
        tuples = _owned_chunk(header, me, operator, partition)
        if not tuples:
            continue
        me.round = tuples
        if not mine:
            if me.inside:
                partition_at(operator, cursor).owned = 0
            part.owned = 1
            me.inside = 1
            tally.cursor = partition
        before = part.head
        begin_in_lane(header, me, operator, partition, _most(me, operator))
        operator.head += part.head - before if header.chunk else tuples
        return True
    return False


@inlined
def begin_next(header: Header, tally: Tally, me: ModelWorker, operator: Operator) -> bool:
    """Start the next batch of the slice; whether there is one."""
    if operator.work_queue != PARTITIONED:
        return _begin_chunk(header, tally, me, operator)
    return me.left > 0 and _begin_owned(header, tally, me, operator)


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
