"""Simulation of two stages in a row."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.arrivals import Rows, Source
from adapt.core.stage.control.control_target import BothStages, OneStage
from adapt.core.stage.control.rounds import Rounds
from adapt.core.stage.engine.series import Series, together
from adapt.core.stage.engine.tandem import Tandem, TandemSettings
from adapt.core.stage.movement.controller import Controller, Round
from adapt.core.stage.movement.protocol import Movement
from adapt.core.stage.simulate import Simulated
from adapt.core.table import Column, Kind, Table


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedTandem:
    """Result of two simulated stages in a row.

    Attributes:
        settings: Settings of both stages.
        first: The stage with the source, with the rounds of its own controller.
        second: The stage after it, with the rounds of its own controller. Its total latencies are end to end: from the
            arrival of the source tuple.
        joint_rounds: Rounds of a joint controller; partitions of the second stage follow those of the first.
        utilization: CPU utilization of each worker in each interval, shape (intervals, workers).
        in_between: Tuples emitted by the first stage that still wait for the second.
    """

    settings: TandemSettings
    first: Simulated
    second: Simulated
    joint_rounds: list[Round]
    utilization: NDArray[np.float64]
    in_between: int

    def rate(self, since_s: float = 0.0) -> float:
        """End-to-end throughput in source tuples per second, from a time on."""
        intervals = [one for one in self.second.intervals if one.start_s >= since_s - 1e-9]
        if not intervals or self.settings.between.selectivity == 0:
            return 0.0
        made = sum(one.processed for one in intervals) / (intervals[-1].end_s - intervals[0].start_s)
        return made / self.settings.between.selectivity

    def moves_a_minute(self, since_s: float = 0.0) -> float:
        """Moves of both stages per minute, from a time on."""
        moves = [one for one in self.first.moves + self.second.moves if one.times_s["decided"] >= since_s]
        lasting_s = self.second.intervals[-1].end_s - since_s
        return 60 * len(moves) / lasting_s if lasting_s > 0 else 0.0

    def summary(self, since_s: float = 0.0) -> Table:
        """Totals as one row; rates and latencies from a time on."""
        columns = [
            Column("seconds", Kind.SECONDS, "s"),
            Column("generated", Kind.COUNT, "tuples", "by the source"),
            Column("processed_first", Kind.COUNT, "tuples"),
            Column("processed_second", Kind.COUNT, "tuples"),
            Column("rate", Kind.NUMBER, "tuples/s", "of the source, through both stages"),
            Column("bound", Kind.NUMBER, "tuples/s", "capacity of all CPUs at the end"),
            Column("of_bound", Kind.SHARE),
            Column("latency_mean", Kind.SECONDS, "s", "from arrival until processed by the second stage"),
            Column("latency_p99", Kind.SECONDS, "s"),
            Column("moves_first", Kind.COUNT),
            Column("moves_second", Kind.COUNT),
            Column("moves_a_minute", Kind.NUMBER, "1/min"),
        ]
        end_s = self.second.intervals[-1].end_s
        rate, bound = self.rate(since_s), self.settings.bound(end_s)
        rows = self.first.census.generated, self.first.census.processed, self.second.census.processed
        moves = len(self.first.moves), len(self.second.moves), self.moves_a_minute(since_s)
        row = (end_s, *rows, rate, bound, rate / bound, *self._latency_s(since_s), *moves)
        note = f"Rates and latencies from {since_s:g} s on." if since_s else ""
        return Table.from_rows("Two stages", columns, [row], note=note)

    def tables(self) -> dict[str, Table]:
        """Time series of both stages, by name."""
        stages = {"first": self.first, "second": self.second}
        return {f"{stage}_{name}": table for stage, run in stages.items() for name, table in run.tables().items()}

    def _latency_s(self, since_s: float) -> tuple[float | None, float | None]:
        """End-to-end mean and 99th percentile; None if nothing was processed."""
        whole = together([one.total for one in self.second.intervals if one.start_s >= since_s - 1e-9])
        return whole.mean_s, whole.share_below_s(0.99)


def simulate_tandem(
    settings: TandemSettings,
    source: Source,
    duration_s: float | None = None,
    *,
    first: Controller | None = None,
    second: Controller | None = None,
    joint: Controller | None = None,
    interval_s: float = 1.0,
    journal: int = 0,
) -> SimulatedTandem:
    """Simulate two stages in a row, deterministically.

    Args:
        settings: Settings of both stages.
        source: Source of the first stage.
        duration_s: Simulated time; None, until all rows and the tuples made of them are processed.
        first: Controller of the first stage, unaware of the second.
        second: Controller of the second stage, unaware of the first.
        joint: Controller of both, which sees CPU utilization and the share of each partition.
        interval_s: Sampling interval.
        journal: Number of processed tuples to record, per stage.

    Raises:
        UsageError: An argument is out of range, a joint controller is combined with another, or a random source has no
            duration.
        BadInput: A disturbance, the group weights or a row of the stream is invalid.
    """
    if not interval_s > 0 or (duration_s is not None and not duration_s > 0):
        raise UsageError(f"duration and interval must be above 0 s (got {duration_s} and {interval_s:g})")
    if duration_s is None and not isinstance(source, Rows):
        raise UsageError("a random source is unbounded; give a duration")
    if joint is not None and (first is not None or second is not None):
        raise UsageError("give either a joint controller, or one per stage")
    tandem = Tandem(settings, source, journal)
    one = Movement(tandem.first)
    movements = one, Movement(tandem.second, network=one.network)
    own = [
        Rounds(OneStage(stage, movement), controller) if controller is not None else None
        for stage, movement, controller in zip(tandem.stages, movements, (first, second), strict=True)
    ]
    both = Rounds(BothStages(tandem, movements), joint) if joint is not None else None
    series = [Series(stage) for stage in tandem.stages]
    idle_s = [tandem.cpu_idle_s()]
    while True:
        end_s = (len(idle_s)) * interval_s
        tandem.run(end_s if duration_s is None else min(end_s, duration_s))
        for each in series:
            each.take()
        idle_s.append(tandem.cpu_idle_s())
        if tandem.drained if duration_s is None else tandem.now_s >= duration_s:
            break
    lasted = np.array([interval.end_s - interval.start_s for interval in series[0].intervals])
    runs = [
        Simulated(
            intervals=watched.intervals,
            moves=movement.log,
            rounds=rounds.rounds if rounds else [],
            census=stage.census(),
            finished_s=float(stage.arrays.world["last"]),
            journal=stage.arrays["entry"][: int(stage.arrays.world["journalled"])],
        )
        for stage, movement, rounds, watched in zip(tandem.stages, movements, own, series, strict=True)
    ]
    return SimulatedTandem(
        settings=settings,
        first=runs[0],
        second=runs[1],
        joint_rounds=both.rounds if both else [],
        utilization=1 - np.diff(idle_s, axis=0) / lasted[:, None],
        in_between=tandem.in_between(),
    )
