"""Feeder of a run whose rows arrive at times of their own."""

from adapt.core.atomics import clock_ns, fixed, give_way, load, load_atomic, rest_us
from adapt.core.compiled import compiled, inlined, record_at
from adapt.core.ordered.engine.kernel.feeding import MOST_FED, feed_rows, note_arrivals
from adapt.core.ordered.engine.kernel.layout import HEADER, Header, operator_at
from adapt.core.ordered.engine.kernel.work_queue import room_in

_REST_US = 50
"""Longest sleep, so that a run that ends is noticed and a full queue is looked at again."""


@inlined
def _rest(header: Header, now_ns: int) -> None:
    """Sleep until the next row is due, at most `_REST_US`; or that long if rows wait for room."""
    left_us = _REST_US
    if header.arrived == header.fed:
        left_us = min((load(fixed(header, "arrivals_at"), header.fed) - now_ns) // 1000, _REST_US)
    if left_us > 0:
        rest_us(left_us)
    else:
        give_way()


@compiled
def feed_paced(address: int) -> None:
    """Enqueue rows as they arrive and have room, until all have entered or the run is over."""
    header = record_at(address, HEADER, 0)
    first, rows = operator_at(header, 0), header.rows
    while header.fed < rows and not load_atomic(header, "stop"):
        now_ns = clock_ns() - header.start_ns
        note_arrivals(header, now_ns)
        due, room = min(header.arrived - header.fed, MOST_FED), min(room_in(first, MOST_FED), MOST_FED)
        if due <= 0 or room <= 0:
            _rest(header, now_ns)
            continue
        feed_rows(header, first, due, room)
