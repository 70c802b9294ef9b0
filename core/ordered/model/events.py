"""Events of the model: when each worker acts next, and how."""

from adapt.core.atomics import store
from adapt.core.compiled import Record, inlined, record_at
from adapt.core.ordered.engine.kernel.codes import TUNE_SLICE
from adapt.core.ordered.engine.kernel.estimates import note_query
from adapt.core.ordered.engine.kernel.feeding import feed_rows, most_fed, note_arrivals
from adapt.core.ordered.engine.kernel.layout import Header, of_words, operator_at
from adapt.core.ordered.engine.kernel.work_queue import room_in

NEVER = 1 << 62

ASKS, WAITS, SERVED, SENT_ON, DRAINED, LOCKED, BLOCKED = range(7)
"""States of a worker: asks for work; waits for work; has processed its batch; has sent a batch, of its own operator or
before it asks for work; got the lock; waits for the lock or, with `RETRY`, for room in the ring buffer."""


MODEL_WORKER = of_words(
    "due_at",  # address of the time of its next event
    "state",
    "operator",
    "partition",
    "serial",
    "tuples",
    "sends",  # tuples that it is sending
    "quota",  # tuples of the slice
    "left",  # of the quota
    "chunk",  # tuples of the chunk, if chunks adapt to the cost
    "round",  # those left of it, or of the lane that it is in
    "lanes",  # of the chunk, and the next one of them
    "lane",
    "start_ns",  # of the slice
    "done_before",  # what it had done of the operator before the slice
    "made_before",
    "inside",  # whether it is inside a partition
    "blocked_ns",  # since when it is blocked
    "rest_ps",  # time that its last event did not last, since events last whole nanoseconds
)


class ModelWorker(Record):
    """A record of the kind `MODEL_WORKER`."""


@inlined
def model_worker_at(header: Header, worker: int) -> ModelWorker:
    """A worker by its number."""
    found: ModelWorker = record_at(header.model_workers_at, MODEL_WORKER, worker)
    return found


@inlined
def whole_ns(me: ModelWorker, time_ps: int) -> int:
    """Nanoseconds of an event; the rest is added to the next."""
    time_ps += me.rest_ps
    me.rest_ps = time_ps % 1000
    return time_ps // 1000


@inlined
def schedule(me: ModelWorker, state: int, when: int) -> None:
    """Schedule an event of a worker."""
    me.state = state
    store(me.due_at, 0, when)


@inlined
def ask(header: Header, me: ModelWorker) -> None:
    """Let a worker ask the scheduler, which takes some time."""
    others = header.workers - 1 - header.idlers
    took_ns = whole_ns(me, header.query_ps + others * header.contended_query_ps)
    if header.tunes & TUNE_SLICE:
        note_query(header, took_ns)
    schedule(me, ASKS, header.now_ns + took_ns)


@inlined
def wake_idle(header: Header) -> None:
    """Wake all workers that wait for work."""
    if not header.idlers:
        return
    header.idlers = 0
    for worker in range(header.workers):
        me = model_worker_at(header, worker)
        if me.state == WAITS:
            ask(header, me)


@inlined
def rows_arrived(header: Header) -> int:
    """Rows that have arrived by now."""
    if not header.arrivals_at:
        return header.rows
    note_arrivals(header, header.now_ns, False)
    return header.arrived


@inlined
def feed_arrived(header: Header) -> None:
    """Enqueue the rows that have arrived, as far as there is room."""
    first = operator_at(header, 0)
    rows, most = rows_arrived(header) - header.fed, most_fed(header)
    room = min(room_in(first, most), most)
    if rows > 0 and room > 0:
        feed_rows(header, first, min(rows, most), room)
