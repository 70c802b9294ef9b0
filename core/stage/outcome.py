"""Outcome of one case of a replay."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any, TypeAlias

import numpy as np

from adapt.core.phrases import counted
from adapt.core.stage.conditions.faults import ExternalLoad, SlowDown
from adapt.core.stage.conditions.names import QueueingName
from adapt.core.stage.conditions.settings import SAID, Costs, StageSettings
from adapt.core.stage.engine.series import Interval, Latencies, together
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.offered_load import Bounds
from adapt.core.stage.input.row_costs import RowCosts
from adapt.core.stage.movement.controller import STEPS
from adapt.core.stage.simulate import Simulated
from adapt.core.table import Column, Table
from adapt.core.values import duration

INTERVALS = 300
"""Default number of samples."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Speed-up, duration and sampling interval of a replay."""

    speedup: float | None = 1.0  # trace seconds per simulated second; None, as fast as workers accept rows
    duration_s: float | None = None  # upper limit of the simulated time; None, until all rows are processed
    interval_s: float | None = None  # sampling interval; None, about 300 samples


Told: TypeAlias = Callable[[str, float, int], None]
"""Progress callback: case, simulated seconds, rows taken so far."""


def telling(case: str, told: Told | None) -> Callable[[Interval], None]:
    """Callback of a simulation, which reports the progress of a case."""
    taken = 0

    def tell(interval: Interval) -> None:
        nonlocal taken
        taken += interval.generated
        if told is not None:
            told(case, interval.end_s, taken)

    return tell


def stage_parameters(settings: StageSettings, reading: Reading, duration_s: float | None) -> dict[str, Any]:
    """Parameters of a stage and its input, as JSON data."""
    network, costs, join, sides = settings.network, settings.costs, settings.join, reading.sides
    joined = None
    if join is not None and sides is not None:
        joined = {"column": sides.column, "sides": sides.values.to_pylist()}
        joined |= {"window_s": join.window / 1e6, "match_s": join.match_s}
        joined |= {"split_hot": reading.split_join is not None}
    return {
        "workers": settings.workers,
        "partitions_per_worker": reading.partitions.per_worker,
        "hash": reading.partitions.hash.value,
        "arrivals": "rotate" if reading.rotates else "saturate" if reading.speedup is None else "trace",
        "speedup": reading.speedup,
        "producers": "stream" if reading.by_stream else "row",
        "router": settings.router.value,
        "queueing": asdict(settings.queueing),
        "buffer_tuples": settings.buffer_tuples,
        "network": asdict(network),
        "costs": costs_told(costs, reading.costs),
        "state_tuples": int(settings.state_tuples)
        if np.ndim(settings.state_tuples) == 0 and settings.growth is None
        else None,
        "disturbances": [
            {"kind": _KINDS[type(one)], **{name: _finite(value) for name, value in asdict(one).items()}}
            for one in settings.disturbances
        ],
        "join": joined,
        "overload": None if settings.overload is None else asdict(settings.overload),
        "duration_s": duration_s,
        "seed": settings.seed,
    }


def costs_told(costs: Costs, rows: RowCosts | None) -> dict[str, Any]:
    """Costs as JSON data, and where service times come from."""
    told = asdict(replace(costs, spread=None, pauses=()))
    spread = costs.spread if rows is None else rows.spread
    told["spread"] = None if spread is None else spread.described()
    told["pauses"] = [one.described() for one in costs.pauses]
    told["service_from"] = "drawn" if rows is None else rows.named
    if rows is not None:
        told["service_column"] = rows.column
    return told


_KINDS: Mapping[type, str] = {ExternalLoad: "load", SlowDown: "slow"}


def _finite(value: float) -> float | None:
    """A time; None for infinity."""
    return None if value == np.inf else value


def usual_interval_s(bounds: Bounds, duration_s: float | None, restart_s: float = 0.0) -> float:
    """A round interval: some hundred samples.

    Of the static case, or of a restart that takes longer.
    """
    expected = min(max(bounds.static_s, restart_s), np.inf if duration_s is None else duration_s)
    return round_interval_s(expected)


def round_interval_s(span_s: float) -> float:
    """A round interval: some hundred samples of a time span."""
    step, least_s = 1e-3, span_s / INTERVALS
    while True:
        for times in (1, 2, 5):
            if step * times >= least_s:
                return step * times
        step *= 10


QUEUEING = Column("queueing", about="whose queues the latencies are from: flux, flink, kafka or spark")

LATE, SLOW = 0.05, 0.1
"""A case falls behind if its drain time, or for a while if its p99, exceeds this fraction of the stream's length."""

SHED = 0.01
"""The highest drop rate of a case that keeps up."""

CHEAP, CALM = 1.05, 1.25
"""Two cases cost the same up to this ratio of worker time, and are equally fast up to this ratio of p99."""

BELOW = 0.85
"""A case is behind below this share of the workers' capacity, while input waits."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Outcome of one case."""

    case: str  # name of the case
    simulated: Simulated  # result of the simulation
    finished_s: float  # time of the last processed row, or of the cut-off
    left: int  # rows that had arrived by then and were not processed, lost or shed
    of_capacity: float  # earliest end of any schedule over the end; if rows are left or shed, rows over those possible
    operator: Latencies  # latency from when a consumer takes a row until it is processed
    total: Latencies  # latency from the arrival of a row until it is processed
    lag: int | None  # most rows that had arrived and were not processed at a time; None without arrival times
    # drain time: from the last arrival until all rows are processed; None likewise, and if rows are left
    late_s: float | None
    behind_s: float  # time spent behind
    recovered_s: float | None  # from the first to the last time behind; None if behind to the end of the input

    @property
    def queueing(self) -> str:
        """Whose queues the latencies are from."""
        return self.simulated.queueing.value

    @property
    def processed(self) -> int:
        """Processed rows."""
        return self.simulated.census.processed

    @property
    def throughput(self) -> float:
        """Rows per second until finished."""
        return self.processed / self.finished_s if self.finished_s else 0.0

    @property
    def lost(self) -> int:
        """Rows lost in crashes."""
        return self.simulated.census.lost

    @property
    def shed(self) -> int:
        """Rows dropped by load shedding."""
        return self.simulated.census.shed

    @property
    def moved_bytes(self) -> int:
        """State migrated, in bytes."""
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
    due = census.generated + (waiting or 0) if simulated.failed is None else bounds.rows
    of_capacity = _of_capacity(drained and not census.shed, census.processed, due, finished_s, timed, bounds)
    return Outcome(
        case=case,
        simulated=simulated,
        finished_s=finished_s,
        left=due - census.processed - census.lost - census.shed,
        of_capacity=of_capacity if simulated.failed is None else census.processed / bounds.rows,
        operator=together([one.operator for one in intervals]),
        total=together([one.total for one in intervals]),
        lag=max(one.lag or 0 for one in intervals) if timed else None,
        late_s=max(0.0, finished_s - bounds.last_s) if timed and drained else None,
        behind_s=sum(one.end_s - one.start_s for one in behind),
        recovered_s=None if still else recovered_s,
    )


def late_by(drain_s: float | None, p99_s: float | None, last_s: float) -> float:
    """Drain time or p99 over its limit, whichever is larger.

    A case keeps up until 1. Infinite if rows are left.
    """
    return max(
        inf if each is None else each / (part * last_s) if last_s else inf
        for each, part in ((drain_s, LATE), (p99_s, SLOW))
    )


def queues_in(table: Table) -> str:
    """Whose queues the latencies of a table are from, if it says."""
    if QUEUEING.name not in [column.name for column in table.columns] or not table.rows:
        return ""
    name = QueueingName(str(table.values(QUEUEING.name)[0]))
    return f" (queues: {name}, {SAID[name]})"


def queues_sentence(first: Simulated) -> str:
    """Whose queues the latencies of a run are from."""
    said = f"Latencies are those of {first.queueing}'s queues ({SAID[first.queueing]}"
    parts = {"micro-batch": [end - start for start, end, _ in first.batches], "checkpoint": _lengths(first)}
    for what, lengths_s in parts.items():
        if lengths_s:
            said += f"; {counted(len(lengths_s), what)}, the longest {duration(max(lengths_s))}"
    return f"{said})."


def _lengths(of: Simulated) -> list[float]:
    """How long each checkpoint took."""
    return [end_s - start_s for start_s, end_s in of.checkpoints]


def _of_capacity(all_done: bool, processed: int, due: int, finished_s: float, timed: bool, bounds: Bounds) -> float:
    """Share of the possible: by time if all rows are done, else by rows."""
    if all_done:
        return min(1.0, bounds.even_s / finished_s) if finished_s else 1.0
    possible = bounds.capacity.by(finished_s) / bounds.row_s
    return min(1.0, processed / min(possible, due if timed else bounds.rows))


def _behind(intervals: Sequence[Interval], bounds: Bounds) -> tuple[list[Interval], bool]:
    """Intervals below capacity although input waited throughout.

    Returns:
        Those intervals, and whether the case stayed behind to the end of the input.
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
