"""Event loop of the model."""

from adapt.core.atomics import load, store
from adapt.core.compiled import compiled, inlined, record_after, record_at
from adapt.core.ordered.engine.batch import bit_length
from adapt.core.ordered.engine.codes import FINISHED, HYBRID, LOCK, STALLED
from adapt.core.ordered.engine.estimates import outputs_made, quota_of, renew_window, tuples_done
from adapt.core.ordered.engine.layout import (
    HEADER,
    Header,
    ModelWorker,
    Operator,
    Tally,
    operator_at,
    partition_at,
    tally_at,
)
from adapt.core.ordered.engine.progress import is_finished
from adapt.core.ordered.engine.schedule import choose_operator
from adapt.core.ordered.model.draws import put_outputs
from adapt.core.ordered.model.events import (
    ASKS,
    DRAINED,
    LOCKED,
    LOCKED_OUT,
    NEVER,
    SENT_ON,
    SERVED,
    WAITS,
    feed_arrived,
    model_worker_at,
    rows_arrived,
    schedule,
    wake_idle,
)
from adapt.core.ordered.model.sending import begin_send, drain_before, release_sending, send_batch
from adapt.core.ordered.model.slices import begin_next, leave_operator


@inlined
def _after_batch(header: Header, tally: Tally, me: ModelWorker, operator: Operator) -> bool:
    """The batch is in the ring and this worker is free of it; whether the slice goes on."""
    tuples = me.tuples
    me.left = me.left - tuples
    if operator.worklist == HYBRID:
        part = partition_at(operator, me.partition)
        waiting = part.waiting - tuples
        part.waiting = waiting
        me.inside = waiting > 0
    if begin_next(header, tally, me, operator):
        return True
    leave_operator(header, tally, me, operator)
    wake_idle(header)
    return False


@inlined
def _ask(header: Header, me: ModelWorker, worker: int) -> None:
    """Take the operator that the heuristic names; or send on what was left; or wait."""
    chain, passed = header.operators, 0
    feed_arrived(header)
    renew_window(header, header.now_ns)
    while True:
        number = choose_operator(header, passed)
        if number < 0:
            break
        operator, tally = operator_at(header, number), tally_at(header, worker, number)
        operator.working += 1
        me.operator = number
        me.start_ns = header.now_ns
        me.done_before = tuples_done(tally)
        me.made_before = outputs_made(tally)
        me.left = quota_of(header, operator)
        if begin_next(header, tally, me, operator):
            return
        leave_operator(header, tally, me, operator)
        passed |= 1 << number
    for before in range(chain):
        if drain_before(header, me, operator_at(header, chain - 1 - before)):
            return
    when = NEVER
    if header.fed == rows_arrived(header) and header.fed < header.rows:
        when = header.fed * header.gap_ns
    schedule(me, WAITS, when)
    header.idlers += 1


@inlined
def _happen(header: Header, me: ModelWorker, worker: int) -> None:
    """The event that a worker is due for."""
    state = me.state
    if state == WAITS:
        header.idlers -= 1
        state = ASKS
    if state == ASKS:
        _ask(header, me, worker)
        return
    number = me.operator
    operator, tally = operator_at(header, number), tally_at(header, worker, number)
    sends = state
    if state == SERVED:
        serial, tuples = me.serial, me.tuples
        ahead = serial + tuples - operator.next
        tally.fullest = max(tally.fullest, ahead)
        tally.in_use[bit_length(ahead)] += 1
        made = put_outputs(header, tally, operator, me.partition, serial, tuples)
        tally.done += tuples
        tally.made += made
        if operator.sending:
            if header.reorder == LOCK:
                tail = operator.lock_tail
                store(operator.lock_queue_at, tail % header.workers, worker)
                operator.lock_tail = tail + 1
                schedule(me, LOCKED_OUT, NEVER)
                return
            sends = WAITS
        else:
            operator.sending = 1
            sends = SENT_ON
    elif state == LOCKED:
        sends = SENT_ON
    elif not send_batch(header, tally, operator):
        release_sending(header, operator)
        sends = WAITS
    while sends != WAITS:
        begun = begin_send(header, me, operator, sends)
        if begun and load(me.due_at, 0) > header.now_ns:
            return
        if not begun or not send_batch(header, tally, operator):
            release_sending(header, operator)
            sends = WAITS
    if (state == DRAINED or not _after_batch(header, tally, me, operator)) and (
        number == 0 or not drain_before(header, me, record_after(operator, -1))
    ):
        schedule(me, ASKS, header.now_ns)


@compiled
def simulate(address: int) -> None:
    """Run the model to its end. Of events at one time, that of the lowest worker is first."""
    header = record_at(address, HEADER, 0)
    workers, dues = header.workers, header.dues_at
    while True:
        soonest, worker = NEVER, -1
        for number in range(workers):
            due = load(dues, number)
            if due < soonest:
                soonest, worker = due, number
        if worker < 0:
            header.stop = FINISHED if is_finished(header) else STALLED
            return
        header.now_ns = soonest
        header.events += 1
        _happen(header, model_worker_at(header, worker), worker)
