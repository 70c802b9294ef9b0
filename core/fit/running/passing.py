"""Compiled passage of tuples through a query network, from row to output.

Arguments are converted to `int64` before calls: each function is compiled once per combination of types.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, flattened
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.running.arcs import NONE
from adapt.core.fit.running.servers import Books, Withdrawal, begin, overflows, queue, release, take_place
from adapt.core.histogram import bin_of
from adapt.core.random_bits import output, uniform

_ALMOST = 1e-9
"""Tolerance when fractions of tuples add up to one."""


@compiled
def advance(
    books: Books,
    at_us: NDArray[np.int64],
    inputs: Indices,
    row: int,
    end_us: int,
    scale: Floats,
    credits: Floats,
    nodes: int,
    burst: int,
    withdrawal: Withdrawal | None,
) -> int:
    """Simulate everything before the end of the tick.

    Args:
        withdrawal: Withdraws windows that lose a tuple to a full queue; None: does not, and takes no time.

    Returns:
        The next row if the pool is too small to continue, else -1.
    """
    end = end_us * 1e-6
    servers = books.servers
    while True:
        if books.free[1] < burst:
            return row
        soonest: Any = np.int64(0)
        for number in range(1, len(servers)):
            if servers[number].done < servers[soonest].done:
                soonest = number
        now = servers[soonest].done
        if row < len(at_us) and at_us[row] * 1e-6 <= now:
            source = inputs[row]
            credits[source] += scale[source]
            count = int(credits[source] + _ALMOST)
            credits[source] -= count
            _give(books, source, count, at_us[row], at_us[row], at_us[row] * 1e-6, withdrawal)
            row += 1
            continue
        if now >= end:
            break
        _serve(books, soonest, soonest >= nodes, now, withdrawal)
    for number in range(len(servers)):
        if servers[number].done < np.inf:
            spent = end - servers[number].since
            servers[number].busy += spent
            servers[number].since = end
            if number < nodes:
                books.arcs[books.pool[servers[number].head].arc].work += spent
    return -1


@flattened
def _serve(books: Books, number: int, link: bool, now: float, withdrawal: Withdrawal | None) -> None:
    """A server finishes the first tuple of its queue: a link delivers it, a node processes it."""
    server = books.servers[number]
    spent = now - server.since
    server.busy += spent
    place: Any = np.int64(server.head)
    waiting = books.pool[place]
    server.head = waiting.after
    server.length -= 1
    begin(books, number, link, now)
    arc = books.arcs[waiting.arc]
    if not link:
        born, at = waiting.born, waiting.at
        release(books, place)
        arc.queued -= 1
        arc.served += 1
        arc.worked += 1
        arc.work += spent
        _work(books, arc, born, at, now, withdrawal)
    elif overflows(books, arc.node):
        arc.queue_drops += 1
        arc.queued -= 1
        if withdrawal is not None:
            _withdraw(books, withdrawal, waiting.arc, waiting.at)
        release(books, place)
    else:
        node: Any = np.int64(arc.node)
        queue(books, node, place, not link, now)


@flattened
def _work(books: Books, arc: Any, born: int, at: int, now: float, withdrawal: Withdrawal | None) -> None:
    """An operator emits the results of a tuple, or of each of its windows."""
    gain = arc.gain
    target: Any = np.int64(arc.target)
    if arc.other != NONE:
        gain *= min(arc.window, np.float64(books.arcs[arc.other].worked))
    first = last = 0
    position = at
    if arc.given != NONE:
        last, first = at // arc.own_slide, max((at - arc.own_size) // arc.own_slide + 1, 0)
        if arc.nested:
            gain = 1.0 if arc.counts else gain / (last - first + 1)
        else:
            if withdrawal is not None:
                _count(withdrawal.tally, books.lived, arc.given, first, last, gain / (last - first + 1))
            gain *= _live(books, arc.given, arc.own_size, arc.own_slide, at) / (last - first + 1)
            first = last
    for window in range(first, last + 1):
        if arc.nested:
            if books.lived[arc.given, window + 1] == books.lived[arc.given, window]:
                continue
            start = window * arc.own_slide
            if arc.counts and position != start + arc.own_size - 1:
                continue  # its last tuple is still to come
            at = window if arc.counts else start
            if withdrawal is not None:
                withdrawal.tally[arc.given, window] += gain
        count = _emitted(arc, gain)
        if count > 0:
            _give(books, target, count, born, at, now, withdrawal)


@flattened
def _give(
    books: Books,
    source: int,
    count: int,
    born: int,
    at: int,
    now: float,
    withdrawal: Withdrawal | None,
) -> None:
    """A source emits tuples to all its consumers."""
    for number in range(books.first_arc[source], books.first_arc[source + 1]):
        arc = books.arcs[number]
        for _ in range(count):
            arc.offered += 1
            arc.came += 1
            position = arc.came - 1 if arc.numbered else at
            if _dropped(books, arc, position):
                arc.dropped += 1
                continue
            if arc.target == NONE:
                arc.served += 1
                _read(books, now - born * 1e-6)
                continue
            if arc.link == NONE and overflows(books, arc.node):
                arc.queue_drops += 1
                if withdrawal is not None:
                    _withdraw(books, withdrawal, number, position)
            else:
                place = take_place(books)
                waiting = books.pool[place]
                waiting.born = born
                waiting.at = position
                waiting.arc = number
                arc.queued += 1
                to_link = arc.link != NONE
                server: Any = np.int64(arc.link if to_link else arc.node)
                queue(books, server, place, to_link, now)


@flattened
def _emitted(arc: Any, gain: float) -> Any:
    """How many whole tuples a source emits."""
    arc.credit += gain
    count = int(arc.credit + _ALMOST)
    arc.credit -= count
    return count


@flattened
def _dropped(books: Books, arc: Any, at: int) -> Any:
    """Whether the plan drops the tuple that just arrived: with all its windows, or by a random draw."""
    if arc.slide > 0:
        return _live(books, arc.fate, arc.size, arc.slide, at) == 0
    return arc.keep < 1.0 and not uniform(output(arc.draws, np.uint64(arc.came - 1))) < arc.keep


@flattened
def _live(books: Books, row: int, size: int, slide: int, at: int) -> Any:
    """How many of a tuple's windows are kept."""
    return books.lived[row, at // slide + 1] - books.lived[row, max((at - size) // slide + 1, 0)]


@flattened
def _count(tally: Floats, lived: NDArray[np.int32], row: int, first: int, last: int, results: float) -> None:
    """Count results for each of the windows of a tuple that are kept."""
    for window in range(first, last + 1):
        if lived[row, window + 1] > lived[row, window]:
            tally[row, window] += results


@flattened
def _withdraw(books: Books, withdrawal: Withdrawal, number: int, at: int) -> None:
    """Withdraw the windows of a tuple that a full queue dropped, and what was emitted for them."""
    for place in range(withdrawal.first_spoiled[number], withdrawal.first_spoiled[number + 1]):
        spoiled = withdrawal.spoiled[place]
        row: Any = np.int64(spoiled.row)
        for window in range(max((at - spoiled.size) // spoiled.slide + 1, 0), at // spoiled.slide + 1):
            if books.lived[row, window + 1] > books.lived[row, window]:
                for later in range(window + 1, withdrawal.begun[row] + 1):
                    books.lived[row, later] -= 1
                if spoiled.arc != NONE:
                    books.arcs[spoiled.arc].withdrawn += withdrawal.tally[row, window]
                    withdrawal.tally[row, window] = 0.0


@flattened
def _read(books: Books, latency: float) -> None:
    """Record a result at an output, some seconds after its row arrived."""
    read = books.read[0]
    read.latency += latency
    read.longest = max(read.longest, latency)
    read.count += 1
    books.bins[bin_of(latency)] += 1
