"""Ingress: rows of the input enter the first work queue."""

from adapt.core.atomics import apart, clock_ns, exchange, fixed, load, load_atomic, publish, short_loops
from adapt.core.compiled import flattened, inlined, record_at
from adapt.core.ordered.engine.kernel.layout import TIMED, Header, Operator, operator_at
from adapt.core.ordered.engine.kernel.punctuation import enqueue_copies
from adapt.core.ordered.engine.kernel.work_queue import enqueue, enqueue_rows, room_in

MOST_FED = 1024
"""Rows that enter at once."""


@inlined
def current_ns(header: Header) -> int:
    """The time by the machine's clock, or by the model's."""
    return header.now_ns if fixed(header, "model_workers_at") else clock_ns()


@flattened
def _plain_rows(header: Header, row: int) -> int:
    """Rows from this one on up to the next one that is timed or a punctuation."""
    every, plain = fixed(header, "mark_every"), header.punctuation_row - row
    return min(plain, -row % every) if every else plain


@flattened
def _take_in(header: Header, operator: Operator, row: int, serial: int) -> int:
    """Enqueue a row, for which there is room; returns how many tuples it becomes."""
    fields = fixed(header, "ingress_at") + 8 * row * (fixed(operator, "in_words") - 1)
    every, mark = fixed(header, "mark_every"), 0
    if every and row % every == 0:
        mark = row // every + 1
        arrivals = fixed(header, "arrivals_at")
        fed_ns = fixed(header, "start_ns") + load(arrivals, row) if arrivals else current_ns(header)
        record_at(fixed(header, "marks_at"), TIMED, mark - 1).fed = fed_ns
    if row < header.punctuation_row:
        enqueue(operator, serial, mark, fields)
        return 1
    copies = enqueue_copies(operator, serial, mark, fields)
    if operator.copied == 0:
        rows = header.punctuation_rows_at
        header.punctuation_row = load(rows, 0)
        header.punctuation_rows_at = rows + 8
    return copies


@inlined
def note_arrivals(header: Header, now_ns: int, is_late: bool) -> None:
    """Count the rows that have arrived by now.

    `is_late` if an idle worker should have noticed them when they did.
    """
    arrivals, rows, every = fixed(header, "arrivals_at"), fixed(header, "rows"), fixed(header, "mark_every")
    row, step = header.arrived, 1
    timed = row + -row % every if every else rows
    while row + step <= rows and load(arrivals, row + step - 1) <= now_ns:
        row += step
        step *= 2
    while step:
        if row + step <= rows and load(arrivals, row + step - 1) <= now_ns:
            row += step
        step //= 2
    while timed < row:
        record_at(fixed(header, "marks_at"), TIMED, timed // every).lag = (
            now_ns - load(arrivals, timed) if is_late else 0
        )
        timed += every
    header.arrived = row


@inlined
def is_empty(header: Header) -> bool:
    """Whether every tuple that entered has left the chain."""
    for number in range(header.operators):
        operator = operator_at(header, number)
        if load_atomic(operator, "next") != load_atomic(operator, "tail"):
            return False
    return True


@inlined
def most_fed(header: Header) -> int:
    """Most rows that may enter now.

    A micro-batch enters once the one before it has left.
    """
    batch = fixed(header, "batch")
    if not batch:
        return MOST_FED
    return batch if is_empty(header) else 0


@inlined
def feed(header: Header, least: int, rested: bool) -> bool:
    """Enqueue the rows that have arrived, if there is room.

    Not if another worker does. `rested` if this worker was idle. Returns whether any entered.
    """
    rows = fixed(header, "rows")
    first = operator_at(header, 0)
    if load_atomic(header, "fed") >= rows or exchange(header, "feeding", 1):
        return False
    due = rows - header.fed
    if fixed(header, "arrivals_at"):
        note_arrivals(header, clock_ns() - fixed(header, "start_ns"), rested)
        due = header.arrived - header.fed
    most = most_fed(header)
    room = room_in(first, max(least, most))
    taken = 0
    if due > 0 and room > 0 and room >= min(least, due) and most:
        taken = feed_rows(header, first, min(due, most), min(room, most))
    exchange(header, "feeding", 0)
    return taken > 0


@inlined
def feed_rows(header: Header, first: Operator, rows: int, room: int) -> int:
    """Enqueue rows while there is room; returns the number of tuples.

    Rows are timed from their arrival if they have arrival times, else from here.
    """
    apart()
    short_loops()
    tail, row = first.tail, header.fed
    serial, end = tail, row + rows
    while row < end and serial < tail + room:
        plain = min(_plain_rows(header, row), end - row, tail + room - serial)
        if plain:
            fields = fixed(header, "ingress_at") + 8 * row * (fixed(first, "in_words") - 1)
            enqueue_rows(first, serial, fields, plain)
            row += plain
            serial += plain
            continue
        serial += _take_in(header, first, row, serial)
        if first.copied:
            break
        row += 1
    publish(first, "tail", serial)
    publish(header, "fed", row)
    return serial - tail
