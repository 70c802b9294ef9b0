"""Measurement of the machine's stalls by loops that read the clock."""

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from adapt.core.atomics import clock_ns, rest_us, store
from adapt.core.compiled import compiled
from adapt.core.ordered.calibrate.at_once import at_once
from adapt.core.ordered.engine.contention import Stalls
from adapt.core.ordered.engine.kernel.progress import LONGEST_US, WAKING_US

SHORTEST_NS = 5_000
"""Gaps between two readings of the clock that are this long are stalls; the loop itself takes some 30 ns."""

SECONDS, SLEEPS = 3.0, 200
"""How long stalls are watched, and the sleeps whose ends are timed."""
SPAN_S = 0.2
"""How long threads run between two pauses."""

_ROOM, _QUANTILES = 1 << 16, 200

_RARE = 2
"""Rare stalls are longer than this many times the longest stall of the median span."""


@compiled
def _gaps(address: int, room: int, end_ns: int) -> int:
    """Write the gaps between readings of the clock; returns their number."""
    before, found = clock_ns(), 0
    while before < end_ns and found < room:
        now = clock_ns()
        if now - before >= SHORTEST_NS:
            store(address, found, now - before)
            found += 1
        before = now
    return found


@compiled
def _lateness(address: int, sleeps: int, us: int) -> None:
    """Write how much longer than asked a thread sleeps."""
    for number in range(sleeps):
        start = clock_ns()
        rest_us(us)
        store(address, number, clock_ns() - start - 1000 * us)


@compiled
def _now_ns() -> int:
    return clock_ns()


def measured_stalls(workers: int, seconds: float = SECONDS) -> Stalls:
    """Stalls and late wake-ups of threads that run at the same time.

    They run for short spans with pauses, since a system stalls threads that never pause.
    """
    count, span_s = max(round(seconds / SPAN_S), 1), min(seconds, SPAN_S)
    spans, late = list[NDArray[np.int64]](), np.zeros(SLEEPS, np.int64)
    _gaps(late.ctypes.data, 0, 0)
    _lateness(late.ctypes.data, 1, 1)
    pause = threading.Event()
    for _ in range(count):
        spans.append(watched(workers, span_s))
        pause.wait(span_s)
    _lateness(late.ctypes.data, SLEEPS, LONGEST_US - WAKING_US)
    return stalls_of(workers, spans, span_s, late)


def watched(workers: int, seconds: float) -> NDArray[np.int64]:
    """The gaps of all threads in some seconds, in nanoseconds."""
    gaps = [np.zeros(_ROOM, np.int64) for _ in range(workers)]
    end_ns = _now_ns() + int(1e9 * seconds)
    counts = at_once(workers, lambda worker: _gaps(gaps[worker].ctypes.data, _ROOM, end_ns))
    return np.concatenate([each[:count] for each, count in zip(gaps, counts, strict=True)])


def stalls_of(workers: int, spans: Sequence[NDArray[np.int64]], span_s: float, late_ns: NDArray[np.int64]) -> Stalls:
    """Rate and quantiles of measured stalls, without rare ones.

    Stalls are rare if they are more than twice as long as the longest stall of the median span, so that less than half
    of the spans have one. A run about as long as a span typically has none, so that its latency is that with the other
    stalls.

    Args:
        spans: Gaps of all threads by span, in nanoseconds.
        span_s: Length of a span.
        late_ns: How late each sleep ended.
    """
    longest, every = [int(each.max(initial=0)) for each in spans], np.concatenate(spans)
    usual = _RARE * sorted(longest)[len(longest) // 2]
    typical, rare = every[every <= usual], sorted(one / 1000 for one in longest if one > usual)
    running_s = max(workers * len(spans) * span_s - every.sum() / 1e9, 1e-3)
    late_us = np.maximum(late_ns / 1000 - WAKING_US, 0)
    late = _quantiles(late_us) if late_us.any() else ()
    return Stalls(workers, len(typical) / running_s, _quantiles(typical / 1000), late, len(spans), tuple(rare))


def _quantiles(values: NDArray[np.float64]) -> tuple[float, ...]:
    """All values, or as many quantiles as a file should have."""
    if not len(values):
        return ()
    steps = min(len(values), _QUANTILES)
    found = np.quantile(values, (np.arange(steps) + 0.5) / steps, method="inverted_cdf")
    return tuple(float(f"{one:.4g}") for one in found)
