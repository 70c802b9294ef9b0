"""Compiled queues: one first-come, first-served server per node and link."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import flattened
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.running.arcs import NONE
from adapt.core.random_bits import output, uniform


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
