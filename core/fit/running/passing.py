"""Compiled passage of tuples through a query network, from row to output.

Arguments are converted to `int64` before calls: each function is compiled once per combination of types.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, flattened
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.running.window_drop import LivingWindows, aggregates
from adapt.core.fit.tables.local_plans import worth_of_arrival
from adapt.core.histogram import bin_of
from adapt.core.random_bits import output, uniform

NONE = -1
"""No tuple, arc or server: the end of a list."""

WAITING = np.dtype(
    [
        ("born", np.int64),  # arrival of its row, in microseconds
        ("at", np.int64),  # position among windows: likewise, or a number of tuples
        ("arc", np.int32),
        ("after", np.int32),  # the next tuple in the queue, or the next free slot
    ]
)
"""A tuple in a queue."""

SERVER = np.dtype(
    [
        ("done", np.float64),  # end of the current work, in seconds; inf when idle
        ("since", np.float64),  # start of the current work, or of the tick
        ("busy", np.float64),
        ("head", np.int32),
        ("tail", np.int32),
        ("length", np.int64),  # tuples, including the current one
        ("taken", np.int64),  # tuples that arrived, including dropped ones
    ],
    align=True,
)
"""A node or a link."""

ARC = np.dtype(
    [
        ("source", np.int32),
        ("target", np.int32),  # an operator; -1 at an output
        ("node", np.int32),
        ("link", np.int32),  # that it crosses first; -1: none
        ("other", np.int32),  # the arc of a join's other side
        ("window", np.float64),  # tuples of that side that a join keeps
        ("gain", np.float64),  # of a join, per pair
        ("on_node", np.float64),  # seconds of work
        ("on_link", np.float64),
        ("keep", np.float64),
        ("draws", np.uint64),  # the seed of its random drops
        ("size", np.int64),  # of windows kept or dropped whole, in microseconds or tuples
        ("slide", np.int64),  # 0: none; random tuples are dropped
        ("own_size", np.int64),  # of its target's windows, if an aggregate
        ("own_slide", np.int64),
        ("fate", np.int32),  # row of windows kept on this arc
        ("given", np.int32),  # row of windows that the aggregate opens; -1: none
        ("counts", np.bool_),  # whether these count tuples
        ("numbered", np.bool_),  # whether a tuple's position is its number on the arc
        ("nested", np.bool_),  # whether further aggregates are downstream of its target
        ("credit", np.float64),  # fraction of a tuple not emitted yet
        ("came", np.int64),  # since the start
        ("worked", np.int64),
        ("offered", np.int64),  # in the tick
        ("dropped", np.int64),
        ("queue_drops", np.int64),
        ("served", np.int64),
        ("late", np.int64),  # read at an output later than counts; see `READ`
        ("queued", np.int64),
        ("withdrawn", np.float64),  # results of its target, of windows that lost a tuple to a full queue
        ("work", np.float64),  # CPU seconds at its node, in the tick
    ],
    align=True,
)

READ = np.dtype(
    [
        ("late", np.float64),  # latency of a result above which it does not count
        ("latency", np.float64),
        ("longest", np.float64),
        ("count", np.int64),
    ]
)


class Books(NamedTuple):
    """The state of a running network, as arrays for the kernels."""

    first_arc: Indices  # the first arc of each source, and the end; shape (sources + 1,)
    arcs: NDArray[Any]  # records of type `ARC`, shape (arcs,)
    servers: NDArray[Any]  # nodes, then links, of type `SERVER`; shape (servers,)
    pool: NDArray[Any]  # slots for waiting tuples, of type `WAITING`
    free: Indices  # the first free slot of the pool, and the number of free slots
    drop_curve: Floats  # drop probability by queue length; empty: queues are unbounded
    shed_seeds: NDArray[np.uint64]  # random seed of each server's drops, shape (servers,)
    lived: NDArray[np.int32]  # number of kept windows before each window number; see `LivingWindows`
    bins: NDArray[np.int64]  # results by latency; see `core.histogram`
    read: NDArray[Any]  # of type `READ`, the latencies of the tick's results; shape (1,)


class Withdrawal(NamedTuple):
    """Windows that lose a tuple to a full queue."""

    begun: Indices  # number of windows decided; see `LivingWindows`
    tally: Floats  # results emitted for each window; likewise
    first_spoiled: Indices  # the first record of each arc in `spoiled`, and the end; shape (arcs + 1,)
    spoiled: NDArray[Any]  # windows withdrawn with a tuple that a full queue drops, of type `SPOILED`


@flattened
def begin(books: Books, number: int, link: bool, now: float) -> None:
    """A server starts with the first tuple of its queue, if any."""
    server = books.servers[number]
    server.since = now
    if server.head == NONE:
        server.done = np.inf
    else:
        arc = books.arcs[books.pool[server.head].arc]
        server.done = now + (arc.on_link if link else arc.on_node)


@flattened
def queue(books: Books, number: int, place: int, link: bool, now: float) -> None:
    """A tuple joins the end of a queue."""
    server = books.servers[number]
    books.pool[place].after = NONE
    server.length += 1
    if server.head == NONE:
        server.head = place
        server.tail = place
        begin(books, number, link, now)
    else:
        books.pool[server.tail].after = place
        server.tail = place


@flattened
def overflows(books: Books, number: int) -> Any:
    """Whether a node drops an arriving tuple because of its queue length."""
    if len(books.drop_curve) == 0:
        return False
    server = books.servers[number]
    server.taken += 1
    part = books.drop_curve[min(server.length, len(books.drop_curve) - 1)]
    return part > 0 and uniform(output(books.shed_seeds[number], np.uint64(server.taken))) < part


@flattened
def take_place(books: Books) -> Any:
    """Take a free slot of the pool, which has one."""
    place = books.free[0]
    books.free[0] = books.pool[place].after
    books.free[1] -= 1
    return place


@flattened
def release(books: Books, place: int) -> None:
    """Return a slot to the pool."""
    books.pool[place].after = books.free[0]
    books.free[0] = place
    books.free[1] += 1


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
                arc.late += now - born * 1e-6 > books.read[0].late
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


SPOILED = np.dtype(
    [
        ("row", np.int64),  # of `LivingWindows.lived`
        ("size", np.int64),  # of the windows of this row that a tuple on the arc is in
        ("slide", np.int64),
        ("arc", np.int64),  # to the aggregate that emits their results; -1: none
    ]
)
"""Windows that are withdrawn with a tuple."""


def spoiled_of(wiring: Wiring, windows: LivingWindows) -> tuple[Indices, NDArray[Any]]:
    """Windows withdrawn with a tuple of each arc.

    These are its windows at all aggregates behind the arc, and on all other arcs of which nothing else is needed.

    Returns:
        The first record of each arc and the end, shape (arcs + 1,); records of type `SPOILED`.
    """
    arcs = len(wiring.arcs)
    first, records = np.zeros(arcs + 1, np.int64), []
    behind = windows.behind
    down: dict[int, set[int]] = {}
    near: dict[int, set[int]] = {}
    last: dict[int, set[int]] = {}
    alone: dict[int, bool] = {}
    for arc in reversed(range(arcs)):
        if not behind[arc]:
            continue
        leaving = wiring.arcs_of(int(wiring.target[arc]))
        after = [at for at in range(leaving.start, leaving.stop) if behind[at]]
        ends = aggregates(wiring, arc) and len(behind[arc]) == 1
        down[arc] = {arc}.union(*(down[at] for at in after))
        near[arc] = {arc} if aggregates(wiring, arc) else {arc}.union(*(near[at] for at in after))
        last[arc] = {arc} if ends else set().union(*(last[at] for at in after))
        alone[arc] = ends or (len(after) == leaving.stop - leaving.start and all(alone[at] for at in after))
    for arc in range(arcs):
        if behind[arc]:
            window = windows.windows[arc]
            assert window is not None
            useless = {other for other in down if alone[other] and last[other] <= last[arc]}
            for other in sorted(down[arc] | useless):
                row = windows.fate[other]
                records.append((row, window.size, window.slide, other if windows.given[other] == row else -1))
            for inner in sorted(other for other in near[arc] if windows.nested[other]):
                own = windows.own[inner]
                assert own is not None
                records.append((windows.given[inner], own.size, own.slide, inner))
        first[arc + 1] = len(records)
    return first, np.array(records, SPOILED)


def withdrawn_worth(wiring: Wiring, windows: LivingWindows | None) -> Floats:
    """Value at the outputs of a withdrawn result, shape (arcs,).

    It is a result of the aggregate at the end of the arc. Aggregates behind that withdraw results of their own.
    """
    worth, arrival = np.zeros(len(wiring.arcs)), worth_of_arrival(wiring)
    if windows is None:
        return worth
    for arc in np.flatnonzero(windows.given >= 0):
        leaving = wiring.arcs_of(int(wiring.target[arc]))
        worth[arc] = sum(arrival[at] for at in range(leaving.start, leaving.stop) if not windows.behind[at])
    return worth
