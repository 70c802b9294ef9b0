"""Batches of the model: tuples that a worker processes at once."""

from adapt.core.atomics import load
from adapt.core.compiled import flattened, inlined, record_at
from adapt.core.ordered.engine.kernel.layout import TIMED, Header, Operator, partition_at
from adapt.core.ordered.engine.kernel.work_queue import COPY, MARK, partition_queue_at, tuple_at
from adapt.core.ordered.model.draws import service_ps
from adapt.core.ordered.model.events import SERVED, ModelWorker, schedule, whole_ns


@inlined
def begin_batch(header: Header, me: ModelWorker, operator: Operator, partition: int, serial: int, tuples: int) -> None:
    """Start a batch, which ends after its service time."""
    now = header.now_ns
    served = now + whole_ns(me, service_ps(header, operator, serial, tuples))
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


@flattened
def _run_length(operator: Operator, queue: int, head: int, most: int, is_plain: bool) -> int:
    """Consecutive tuples of a lane's queue, or of the operator's with an address of 0.

    With `is_plain` up to a marked one, which is alone.
    """
    mask = operator.queue_mask
    first, tuples = load(queue, head & mask) if queue else head, 1
    if is_plain and load(tuple_at(operator, first), MARK):
        return 1
    while tuples < most:
        serial = load(queue, (head + tuples) & mask) if queue else head + tuples
        if serial != first + tuples or (is_plain and load(tuple_at(operator, serial), MARK)):
            break
        tuples += 1
    return tuples


@inlined
def begin_in_lane(header: Header, me: ModelWorker, operator: Operator, lane: int, most: int) -> None:
    """Start the batch at the head of a lane's queue."""
    part, queue = partition_at(operator, lane), partition_queue_at(operator, lane)
    head = part.head
    tuples = _run_length(operator, queue, head, most, not header.chunk)
    part.head = head + tuples
    begin_batch(header, me, operator, lane, load(queue, head & operator.queue_mask), tuples)


@inlined
def begin_in_queue(header: Header, me: ModelWorker, operator: Operator, serial: int, most: int) -> None:
    """Start the batch of an operator without lanes."""
    tuples = most if header.chunk else _run_length(operator, 0, serial, most, True)
    begin_batch(header, me, operator, 0, serial, tuples)
