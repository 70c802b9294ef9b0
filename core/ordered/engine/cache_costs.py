"""Cache model of parametric operators: costs of state and payload."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from functools import cached_property
from itertools import pairwise, product

from adapt.core.errors import BadInput
from adapt.core.table import Column, Kind, Table


@dataclass(frozen=True, slots=True)
class StateCost:
    """Time to read and write the state of a key.

    Attributes:
        state_bytes: State of the key.
        working_bytes: State of all keys.
        here_ns: If this worker processed the key last.
        moved_ns: If another one did, whose core has the state in its caches.
    """

    state_bytes: int
    working_bytes: int
    here_ns: float
    moved_ns: float


@dataclass(frozen=True, slots=True)
class TupleCost:
    """Time that a payload adds to a tuple.

    With work queues and ring buffers of 4,096 tuples.

    Attributes:
        tuple_bytes: Payload of the tuple.
        feed_ns: The row enters the first work queue.
        read_ns: The operator reads it.
        copy_ns: An output is written into the ring buffer.
        send_ns: An output is sent to the next operator, one worker at a time.
        leave_ns: An output leaves the chain, one worker at a time.
    """

    tuple_bytes: int
    feed_ns: float
    read_ns: float
    copy_ns: float
    send_ns: float
    leave_ns: float


@dataclass(frozen=True)
class CacheCosts:
    """A cache model: times by state and working set, and by payload.

    Between two measured sizes a time is interpolated: by the logarithm of the working set, by the logarithms of state
    and time, and in proportion to the payload. A state below the smallest one takes as long as that, since a cache line
    is the least that moves; beyond the largest, times grow in proportion. A working set beyond the largest one is taken
    for it.

    Attributes:
        states: By state and working set, which is at least the state; no time is lower than that of a smaller size, nor
            `moved_ns` than `here_ns`.
        tuples: By payload, ascending from above 0; likewise.

    Raises:
        BadInput: there are no points, or they are not as above.
    """

    states: tuple[StateCost, ...]
    tuples: tuple[TupleCost, ...]

    def __post_init__(self) -> None:
        if not self.states or not self.tuples:
            raise BadInput(
                "[[state]] and [[tuple]] must both have entries, or neither; measure them with adapt calibrate ordered"
            )
        points: tuple[StateCost | TupleCost, ...] = (*self.states, *self.tuples)
        for one in points:
            if not all(math.isfinite(value) and value >= 0 for value in astuple(one)):
                raise BadInput(f"times and sizes must be at least 0 (got {one})")
        for size, curve in self._curves:
            sets = [one.working_bytes for one in curve]
            if not (0 < size <= sets[0] and sets == sorted(set(sets))):
                raise BadInput(f"[[state]]: working sets must ascend from the state of {size} bytes on (got {sets})")
            if any(one.moved_ns < one.here_ns for one in curve):
                raise BadInput(f"[[state]]: moved_ns must be at least here_ns (state of {size} bytes)")
            _check_ascending("state", [one.here_ns for one in curve])
            _check_ascending("state", [one.moved_ns for one in curve])
        for (_, smaller), (_, larger) in pairwise(self._curves):
            for name, one in product(("here_ns", "moved_ns"), larger):
                _check_ascending("state", [_on_curve(smaller, name, one.working_bytes), getattr(one, name)])
        sizes = [one.tuple_bytes for one in self.tuples]
        if not (sizes[0] > 0 and sizes == sorted(set(sizes))):
            raise BadInput(f"[[tuple]]: tuple_bytes must ascend from above 0 (got {sizes})")
        for times in zip(*(astuple(one)[1:] for one in self.tuples), strict=True):
            _check_ascending("tuple", times)

    @cached_property
    def _curves(self) -> list[tuple[int, list[StateCost]]]:
        """Points by state, each by working set."""
        sizes = sorted({one.state_bytes for one in self.states})
        return [(size, [one for one in self.states if one.state_bytes == size]) for size in sizes]

    def of_state(self, state_bytes: int, working_bytes: float) -> tuple[float, float]:
        """Nanoseconds to read and write a state.

        Of a key that stays with its worker, and of one that moved.
        """
        here, moved = (self._of_state(name, state_bytes, working_bytes) for name in ("here_ns", "moved_ns"))
        return here, max(here, moved)

    def _of_state(self, name: str, state_bytes: int, working_bytes: float) -> float:
        sizes = [size for size, _ in self._curves]
        times = [_on_curve(curve, name, working_bytes) for _, curve in self._curves]
        if state_bytes <= sizes[0]:
            return times[0]
        if state_bytes >= sizes[-1]:
            return times[-1] * state_bytes / sizes[-1]
        at = bisect_right(sizes, state_bytes) - 1
        share = math.log(state_bytes / sizes[at]) / math.log(sizes[at + 1] / sizes[at])
        if min(times[at], times[at + 1]) <= 0:
            return times[at] + share * (times[at + 1] - times[at])
        return float(times[at] * (times[at + 1] / times[at]) ** share)

    def of_tuple(self, tuple_bytes: int) -> TupleCost:
        """Nanoseconds that a payload adds; 0 without one."""
        zero = TupleCost(0, *[0.0] * (len(fields(TupleCost)) - 1))
        points = [zero, *self.tuples]
        at = min(bisect_right([one.tuple_bytes for one in points], tuple_bytes), len(points) - 1)
        low, high = points[at - 1], points[at]
        share = (tuple_bytes - low.tuple_bytes) / (high.tuple_bytes - low.tuple_bytes)
        times = zip(astuple(low)[1:], astuple(high)[1:], strict=True)
        return TupleCost(tuple_bytes, *(one + share * (other - one) for one, other in times))


def sizes_tables(caches: CacheCosts) -> tuple[Table, Table]:
    """A cache model for people and programs: states, then payloads."""
    state_columns = (
        Column("state", Kind.BYTES, about="of a key"),
        Column("working_set", Kind.BYTES, about="state of all keys"),
        Column("here", Kind.NUMBER, "ns", "to read and write it, if this worker processed the key last"),
        Column("moved", Kind.NUMBER, "ns", "the same if another worker did"),
    )
    tuple_columns = (
        Column("payload", Kind.BYTES, about="of a tuple"),
        Column("feed", Kind.NUMBER, "ns", "added where a row enters the first work queue"),
        Column("read", Kind.NUMBER, "ns", "added where an operator reads it"),
        Column("copy", Kind.NUMBER, "ns", "added to an output, in the ring buffer"),
        Column("send", Kind.NUMBER, "ns", "added to an output that is sent on, one worker at a time"),
        Column("leave", Kind.NUMBER, "ns", "added to an output that leaves the chain, one worker at a time"),
    )
    return (
        Table.from_rows("States by size", state_columns, [list(astuple(one)) for one in caches.states]),
        Table.from_rows("Payloads by size", tuple_columns, [list(astuple(one)) for one in caches.tuples]),
    )


def _on_curve(curve: Sequence[StateCost], name: str, working_bytes: float) -> float:
    """A time at a working set."""
    sets, times = [one.working_bytes for one in curve], [float(getattr(one, name)) for one in curve]
    if working_bytes <= sets[0] or working_bytes >= sets[-1]:
        return times[0] if working_bytes <= sets[0] else times[-1]
    at = bisect_right(sets, working_bytes) - 1
    share = math.log(working_bytes / sets[at]) / math.log(sets[at + 1] / sets[at])
    return times[at] + share * (times[at + 1] - times[at])


def _check_ascending(kind: str, times: Sequence[float]) -> None:
    if list(times) != sorted(times):
        raise BadInput(f"[[{kind}]]: a larger size must not take less time (got {times} ns)")


_STATES = {
    64: ((5.97, 6.18), (5.97, 6.18), (5.97, 6.18), (5.97, 6.18), (6.3, 6.3), (19.8, 19.8), (24.1, 24.1)),
    256: ((8.49, 9.23), (8.6, 9.23), (8.6, 9.23), (8.6, 9.23), (8.66, 9.23), (33.4, 35.0), (41.8, 41.8)),
    1024: ((10.8, 18.2), (10.8, 18.2), (10.9, 18.2), (11.3, 18.2), (14.2, 18.3), (33.4, 35.0), (87.6, 87.6)),
    4096: ((22.2, 57.5), (23.9, 57.5), (29.0, 57.5), (33.1, 57.5), (41.5, 57.5), (79.1, 144.0), (237.0, 237.0)),
    16384: (
        (83.3, 240.0),
        (90.4, 240.0),
        (105.0, 240.0),
        (113.0, 240.0),
        (155.0, 240.0),
        (372.0, 393.0),
        (813.0, 813.0),
    ),
}
"""By state, `here_ns` and `moved_ns` for working sets of 16 KiB, 64 KiB and so on to 64 MiB."""

ASSUMED_CACHES = CacheCosts(
    tuple(StateCost(size, 1 << 14 + 2 * at, *ns) for size, times in _STATES.items() for at, ns in enumerate(times)),
    (
        TupleCost(64, 1.81, 1.13, 4.45, 0.405, 10.9),
        TupleCost(256, 7.79, 2.31, 7.82, 2.48, 43.5),
        TupleCost(1024, 46.4, 8.72, 32.9, 29.6, 177.0),
        TupleCost(4096, 248.0, 45.3, 182.0, 129.0, 726.0),
    ),
)
"""What `adapt calibrate ordered` measured on a machine with two cores: an AMD EPYC of family 26 with caches of 48 KiB
and 1 MiB by core, and 32 MiB for both."""
