"""How a chain is run."""

from dataclasses import dataclass

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.names import Heuristic, Reorder, Worklist

MOST_WORKERS = 256
MOST_BATCH = 64
_MOST_SLOTS = 1 << 22


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The choices of a run by workers.

    Attributes:
        workers: Threads, 1 to 256.
        reorder: How outputs come into order.
        worklist: How the tuples of a partitioned operator are shared.
        heuristic: Which operator is next.
        ring: Tuples whose outputs can wait for their turn, an operator; a power of two.
        queue: Tuples that can wait before an operator; a power of two.
        batch: Most tuples that share a serial number, 1 to 64: neighbours in the stream, and in a partitioned operator
            of one partition.
        slice_us: How long a worker stays with an operator, about.
        window_ms: Over how long `ct` counts worker time; after it, half of what costs and selectivities are estimated
            from is forgotten.
        queue_size: The common size of `qst`, C.
        mark_every: Each tuple of this number is timed from the ingress to the egress; 0, none is.
        checked: Whether operators check that nobody else is inside a partition and that its tuples come in order.

    Raises:
        UsageError: a choice is out of its range.

    Source: ordered streams, sections 3 to 6; sizes are left open there.
    """

    workers: int = 1
    reorder: Reorder = Reorder.CLAIM
    worklist: Worklist = Worklist.HYBRID
    heuristic: Heuristic = Heuristic.CT
    ring: int = 4096
    queue: int = 4096
    batch: int = 1
    slice_us: float = 100.0
    window_ms: float = 20.0
    queue_size: float = 500.0
    mark_every: int = 0
    checked: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= MOST_WORKERS:
            raise UsageError(f"a run has from 1 to {MOST_WORKERS} workers, not {self.workers}")
        if not 1 <= self.batch <= MOST_BATCH:
            raise UsageError(f"from 1 to {MOST_BATCH} tuples share a serial number, not {self.batch}")
        _check_slots("ring", self.ring)
        _check_slots("queue", self.queue)
        for what, size in (("ring", self.ring), ("queue", self.queue)):
            if size < self.batch:
                raise UsageError(f"a {what} of {size} tuples holds no batch of {self.batch}; make it larger")
        for name, value in (("slice", self.slice_us), ("window", self.window_ms), ("queue size", self.queue_size)):
            if not 0 < value < 1e9:
                raise UsageError(f"the {name} is above 0 and below 1e9, not {value:g}")
        if self.mark_every < 0:
            raise UsageError(f"tuples are timed one in 1 or more, or none for 0, not {self.mark_every}")


def _check_slots(what: str, size: int) -> None:
    if not 1 <= size <= _MOST_SLOTS or size & (size - 1):
        near = min(1 << max(size - 1, 0).bit_length(), _MOST_SLOTS)
        raise UsageError(f"a {what} has a power of two of places, at most {_MOST_SLOTS}, not {size}; {near} would do")
