"""Times of states and payloads on this machine, for the cache model."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.atomics import clock_ns, exchange, load, store
from adapt.core.compiled import compiled, inlined, record_at
from adapt.core.ordered.chain.bound import BoundChain, bind
from adapt.core.ordered.chain.chain import WORD, Chain, Operator
from adapt.core.ordered.chain.names import OperatorKind
from adapt.core.ordered.engine.cache_costs import StateCost, TupleCost
from adapt.core.ordered.engine.kernel.claiming import take_shared
from adapt.core.ordered.engine.kernel.feeding import feed
from adapt.core.ordered.engine.kernel.layout import HEADER, operator_at, tally_at
from adapt.core.ordered.engine.kernel.progress import is_finished
from adapt.core.ordered.engine.kernel.reorder_buffer import drain_apart
from adapt.core.ordered.engine.memory import Memory
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.functions.work import touched
from adapt.core.random_bits import mixed

STATE_BYTES = (64, 256, 1024, 4096, 16_384)
WORKING_BYTES = tuple(1 << power for power in range(14, 28, 2))
"""From 16 KiB to 64 MiB: within the first cache of a core, and beyond all of them."""
TUPLE_BYTES = (64, 256, 1024, 4096)

Pin = Callable[[int | None], None]
"""Moves this thread to a core by its number, from 0; with None, to any again."""

_TOUCHED_BYTES, _MOST_TOUCHES, _TRIES = 1 << 24, 1 << 16, 3
_ROWS, _CHUNK = 1 << 14, 64
_STEP = 0xD1342543DE82EF95
"""Multiplier that takes each key in turn once, and no two neighbors after each other."""

_FEED, _RUN, _SEND, _LAST_RUN, _LEAVE, _SECTIONS = range(6)


@compiled
def _drawn_ns(state: int, words: int, keys: int, first: int, times: int) -> int:
    """Time to update the states of random keys; their number is a power of two."""
    value, start = np.uint64(1), clock_ns()
    for number in range(first, first + times):
        key = int(mixed(np.uint64(number)) & np.uint64(keys - 1))
        value = touched(state + WORD * key * words, words, value)
    return int(clock_ns() - start + (value == 0))


@compiled
def _each_ns(state: int, words: int, keys: int, times: int) -> int:
    """Time to update the states of different keys, a power of two in all."""
    value, key, start = np.uint64(1), np.uint64(0), clock_ns()
    for _ in range(times):
        value = touched(state + WORD * int(key) * words, words, value)
        key = (key * np.uint64(_STEP) + np.uint64(1)) & np.uint64(keys - 1)
    return int(clock_ns() - start + (value == 0))


def timed_states(
    pin: Pin | None = None, sizes: Sequence[int] = STATE_BYTES, working: Sequence[int] = WORKING_BYTES
) -> list[StateCost]:
    """Time to update a key's state, by its and the total size.

    With a second core, states also move there: one core updates all of them, and then the other one. Each time is the
    shortest of several, as other programs interfere.

    Args:
        pin: Moves this thread to core 0 or 1; None for a single core, where no state moves.
        sizes: Powers of two.
        working: Powers of two.
    """
    room = np.ones(max(working) // WORD, np.int64)
    at, found = room.ctypes.data, list[StateCost]()
    for size in sizes:
        for total in working:
            words, keys = size // WORD, total // size
            if not keys:
                continue
            times = max(min(_TOUCHED_BYTES // size, _MOST_TOUCHES), 256)
            _each_ns(at, words, keys, keys)
            here = min(_drawn_ns(at, words, keys, number * times, times) for number in range(_TRIES)) / times
            moved, once = here, min(keys, times)
            if pin is not None:
                moved = min(_moved_ns(pin, at, words, keys, once) for _ in range(_TRIES)) / once
            found.append(StateCost(size, total, here, moved))
    return found


def _moved_ns(pin: Pin, state: int, words: int, keys: int, times: int) -> float:
    try:
        pin(0)
        _each_ns(state, words, keys, times)
        pin(1)
        return _each_ns(state, words, keys, times)
    finally:
        pin(None)


@inlined
def _add(spent: int, section: int, ns: int) -> None:
    store(spent, section, load(spent, section) + ns)


@compiled
def _sections(address: int, operators: int, spent: int) -> None:
    """Run one or two stateless operators by one worker, timing each section.

    Only of the second half of the rows, when all memory has been touched. The flags `sending` are taken while a chunk
    runs, so that nothing is sent then.
    """
    header = record_at(address, HEADER, 0)
    while not is_finished(header):
        start = clock_ns()
        feed(header, 1, False)
        counts = header.fed > header.rows // 2
        _add(spent, _FEED, counts * (clock_ns() - start))
        done = 1
        while done:
            done = 0
            for number in range(operators):
                operator, tally = operator_at(header, number), tally_at(header, 0, number)
                exchange(operator, "sending", 1)
                start = clock_ns()
                done += take_shared(header, tally, header.scratch_at, operator, 1)
                ran = clock_ns()
                exchange(operator, "sending", 0)
                drain_apart(header, tally, operator)
                sent = clock_ns()
                last = number == operators - 1
                _add(spent, _LAST_RUN if number else _RUN, counts * (ran - start))
                _add(spent, _LEAVE if last else _SEND, counts * (sent - ran))


def timed_tuples(sizes: Sequence[int] = TUPLE_BYTES) -> list[TupleCost]:
    """Time that payloads add to a tuple, by section of the engine.

    With one worker, in chunks. Two operators read each payload; of a chain whose operator gives no outputs comes the
    time to read alone.
    """
    free, dropped = _sections_ns(0, 2, 1.0), _sections_ns(0, 1, 0.0)
    found = list[TupleCost]()
    for size in sizes:
        through, alone = _sections_ns(size, 2, 1.0) - free, _sections_ns(size, 1, 0.0)[_RUN] - dropped[_RUN]
        feed_ns, run_ns, send_ns, _, leave_ns = np.maximum(through, 0.0).tolist()
        read_ns = min(max(float(alone), 0.0), run_ns)
        found.append(TupleCost(size, feed_ns, read_ns, run_ns - read_ns, send_ns, leave_ns))
    return found


def _sections_ns(tuple_bytes: int, operators: int, selectivity: float) -> NDArray[np.float64]:
    """Nanoseconds per row in each section, the shortest of several runs."""
    chain, settings = _chain(tuple_bytes, operators, selectivity), RunSettings(chunk=_CHUNK)
    runs = []
    for _ in range(_TRIES):
        memory, spent = Memory(chain, settings, 1, 0), np.zeros(_SECTIONS, np.int64)
        _sections(memory.address, operators, spent.ctypes.data)
        memory.release()
        runs.append(spent / (len(chain.tuples) // 2))
    shortest: NDArray[np.float64] = np.min(runs, axis=0)
    return shortest


def _chain(tuple_bytes: int, operators: int, selectivity: float) -> BoundChain:
    made = (
        Operator(f"{number}", OperatorKind.STATELESS, selectivity=selectivity, tuple_bytes=tuple_bytes)
        for number in range(operators)
    )
    return bind(Chain(tuple(made)), {"row": pa.array(np.arange(_ROWS))})
