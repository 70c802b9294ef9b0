"""Event loop of the model, on the memory of the real engine."""

from adapt.core.atomics import load, store
from adapt.core.compiled import compiled, flattened, inlined, record_after, record_at
from adapt.core.ordered.engine.kernel.layout import (
    FINISHED,
    HEADER,
    LOCK,
    RETRY,
    STALLED,
    Header,
    Operator,
    Tally,
    operator_at,
    tally_at,
)
from adapt.core.ordered.engine.kernel.reorder_buffer import is_finished
from adapt.core.ordered.engine.kernel.running import count_ahead
from adapt.core.ordered.engine.kernel.schedule import choose_operator, outputs_made, quota_of, renew_window, tuples_done
from adapt.core.ordered.engine.kernel.work_queue import is_ready
from adapt.core.ordered.model.slices import (
    ASKS,
    BLOCKED,
    DRAINED,
    LOCKED,
    NEVER,
    SENT_ON,
    SERVED,
    WAITS,
    ModelWorker,
    ask,
    begin_next,
    begin_send,
    drain_before,
    feed_arrived,
    goes_on,
    has_room,
    leave_operator,
    model_worker_at,
    put_outputs,
    release_sending,
    rows_arrived,
    schedule,
    send_batch,
    wake_idle,
)


@flattened
def _after_batch(header: Header, tally: Tally, me: ModelWorker, operator: Operator) -> bool:
    """Go on after a batch was sent; whether with another batch of the slice."""
    if (header.chunk or header.reorder == RETRY) and goes_on(header, tally, me, operator):
        return True
    if begin_next(header, tally, me, operator):
        return True
    leave_operator(header, tally, me, operator)
    wake_idle(header)
    return False


@inlined
def _choose(header: Header, me: ModelWorker, worker: int) -> None:
    """Start on the operator that the heuristic chooses, resume sending, or wait."""
    chain, passed = header.operators, load(header.barred_at, worker)
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
        me.left = me.quota = quota_of(header, operator)
        if begin_next(header, tally, me, operator):
            tally.slices += 1
            return
        leave_operator(header, tally, me, operator)
        passed |= 1 << number
    for before in range(chain):
        if drain_before(header, me, operator_at(header, chain - 1 - before)):
            return
    when = NEVER
    if header.fed == rows_arrived(header) and header.fed < header.rows:
        when = load(header.arrivals_at, header.fed)
    schedule(me, WAITS, when)
    header.idlers += 1


@flattened
def _put_batch(header: Header, tally: Tally, me: ModelWorker, operator: Operator, worker: int) -> int:
    """Put a processed batch into the ring buffer; returns the worker's next state.

    `BLOCKED` if it must wait, and `SERVED` if it goes on in its chunk without sending.
    """
    if header.reorder == RETRY and not has_room(me, operator):
        tally.retries += 1
        me.blocked_ns = header.now_ns
        schedule(me, BLOCKED, NEVER)
        return BLOCKED
    count_ahead(tally, operator, me.serial + me.tuples)
    put_outputs(header, tally, operator, me.partition, me.serial, me.tuples)
    if not header.chunk and header.reorder != RETRY and goes_on(header, tally, me, operator):
        if not operator.sending and is_ready(operator, operator.next):
            wake_idle(header)
        return SERVED
    if not operator.sending:
        operator.sending = 1
        return SENT_ON
    if header.reorder != LOCK:
        return WAITS
    store(operator.lock_queue_at, operator.lock_tail % header.workers, worker)
    operator.lock_tail += 1
    me.blocked_ns = header.now_ns
    schedule(me, BLOCKED, NEVER)
    return BLOCKED


@flattened
def _send_on(header: Header, tally: Tally, me: ModelWorker, operator: Operator, state: int) -> bool:
    """Send batches until one takes time, and schedule its end; whether no batch is left to send."""
    while True:
        begun = begin_send(header, me, operator, state)
        if begun and load(me.due_at, 0) > header.now_ns:
            return False
        if not begun or not send_batch(header, tally, me, operator):
            release_sending(header, operator)
            return True


@inlined
def _happen(header: Header, me: ModelWorker, worker: int) -> None:
    """Process the next event of a worker."""
    state = me.state
    header.idlers -= state == WAITS
    if state == WAITS and header.query_ps:
        ask(header, me)
        return
    if state in (WAITS, ASKS):
        _choose(header, me, worker)
        return
    number = me.operator
    operator, tally = operator_at(header, number), tally_at(header, worker, number)
    sends = state
    if state == SERVED:
        sends = _put_batch(header, tally, me, operator, worker)
        if sends in (BLOCKED, SERVED):
            return
    elif state == LOCKED:
        sends = SENT_ON
    elif not send_batch(header, tally, me, operator):
        release_sending(header, operator)
        sends = WAITS
    if sends != WAITS and not _send_on(header, tally, me, operator, sends):
        return
    if (state == DRAINED or not _after_batch(header, tally, me, operator)) and (
        number == 0 or not drain_before(header, me, record_after(operator, -1))
    ):
        ask(header, me)


@inlined
def _has_events(header: Header) -> bool:
    """Whether any event is still to come."""
    soonest = NEVER
    for worker in range(header.workers):
        soonest = min(soonest, load(header.dues_at, worker))
    return soonest < NEVER


@compiled
def simulate(address: int, until: int) -> None:
    """Run the model to the end, or up to a time (nanoseconds).

    Among events at the same time, the lowest worker goes first.
    """
    header = record_at(address, HEADER, 0)
    workers, dues = header.workers, header.dues_at
    while True:
        soonest, worker = until, -1
        for number in range(workers):
            due = load(dues, number)
            if due < soonest:
                soonest, worker = due, number
        if worker < 0:
            if is_finished(header):
                header.stop = FINISHED
            elif not _has_events(header):
                header.stop = STALLED
            else:
                header.now_ns = until
            return
        me = model_worker_at(header, worker)
        header.now_ns = soonest
        header.events += 1
        _happen(header, me, worker)
        if header.stop:
            return
