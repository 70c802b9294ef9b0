"""One case of a replay through a stage: what it did in all, and how long it was behind what the workers could do."""

from collections.abc import Sequence
from dataclasses import dataclass

from adapt.core.stage.engine.series import Interval, Latencies, together
from adapt.core.stage.input.offered_load import Bounds
from adapt.core.stage.movement.course import STEPS
from adapt.core.stage.simulate import Simulated

BELOW = 0.85
"""Less than this of what the workers could do, while input waits, is being behind."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a case did.

    Attributes:
        case: Its name.
        simulated: Its series.
        finished_s: When it was through with the rows, or was cut off.
        left: Rows that were due by then and neither processed, lost nor shed.
        of_capacity: What it did over the most that the workers could have done.
        operator: From when a consumer takes a row until it is processed.
        total: From when a row is due until it is processed.
        lag_s: The longest that a row waited to be taken; None where rows are taken as fast as they can be.
        late_s: From when the last row was due until all were processed; None likewise, and where some are left.
        behind_s: How long it was behind.
        recovered_s: From when it first was until it no longer was; None if it was to the end of the input.
    """

    case: str
    simulated: Simulated
    finished_s: float
    left: int
    of_capacity: float
    operator: Latencies
    total: Latencies
    lag_s: float | None
    late_s: float | None
    behind_s: float
    recovered_s: float | None

    @property
    def processed(self) -> int:
        """Rows."""
        return self.simulated.census.processed

    @property
    def throughput(self) -> float:
        """Rows a second, until it was finished."""
        return self.processed / self.finished_s if self.finished_s else 0.0

    @property
    def lost(self) -> int:
        """Rows that died with a worker."""
        return self.simulated.census.lost

    @property
    def shed(self) -> int:
        """Rows that workers dropped as they filled up."""
        return self.simulated.census.shed

    @property
    def moved_bytes(self) -> int:
        """State that arrived at another worker."""
        return sum(one.state_bytes for one in self.simulated.moves if STEPS[-1] in one.times_s)


def outcome_of(case: str, simulated: Simulated, bounds: Bounds) -> Outcome:
    """The outcome of a simulation."""
    intervals = simulated.intervals
    census = simulated.census
    waiting = intervals[-1].source_queue
    drained = census.processed + census.lost + census.shed >= bounds.rows
    finished_s = simulated.finished_s if drained else intervals[-1].end_s
    behind, still = _behind(intervals, bounds)
    recovered_s = behind[-1].end_s - behind[0].start_s if behind else 0.0
    timed = waiting is not None
    return Outcome(
        case=case,
        simulated=simulated,
        finished_s=finished_s,
        left=census.generated - census.processed - census.lost - census.shed + (waiting or 0),
        of_capacity=_of_capacity(
            drained and not census.shed, census.processed, census.generated + (waiting or 0), finished_s, timed, bounds
        ),
        operator=together([one.operator for one in intervals]),
        total=together([one.total for one in intervals]),
        lag_s=max(one.lag_s for one in intervals) if timed else None,
        late_s=max(0.0, finished_s - bounds.last_s) if timed and drained else None,
        behind_s=sum(one.end_s - one.start_s for one in behind),
        recovered_s=None if still else recovered_s,
    )


def _of_capacity(all_done: bool, processed: int, due: int, finished_s: float, timed: bool, bounds: Bounds) -> float:
    """What was done over what could have been: of all rows, in how long; of a part of them, how many by then."""
    if all_done:
        return min(1.0, bounds.even_s / finished_s) if finished_s else 1.0
    possible = bounds.capacity.by(finished_s) / bounds.row_s
    return min(1.0, processed / min(possible, due if timed else bounds.rows))


def _behind(intervals: Sequence[Interval], bounds: Bounds) -> tuple[list[Interval], bool]:
    """The intervals that did less than the workers could have done, though input waited throughout.

    Returns:
        Those intervals, and whether it never came out of it while there was input.
    """
    behind = []
    is_behind = False
    taken = 0
    waits = True
    for one in intervals:
        taken += one.generated
        waited, waits = waits, taken < bounds.rows if one.source_queue is None else one.source_queue > 0
        if not (waited and waits):
            is_behind = is_behind and (one.source_queue is None or one.start_s >= bounds.last_s)
            continue
        possible = (bounds.capacity.by(one.end_s) - bounds.capacity.by(one.start_s)) / bounds.row_s
        is_behind = one.processed < BELOW * possible
        behind += [one] if is_behind else []
    return behind, is_behind
