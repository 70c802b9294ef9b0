"""Outcome of one case of an elastic replay: workers, cost, rescales."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from adapt.core.stage.conditions.shed_factor import Overload
from adapt.core.stage.control.elasticity import Step, Stop, Watched
from adapt.core.stage.engine.series import Interval
from adapt.core.stage.outcome import Outcome
from adapt.core.stage.simulate import Simulated

FEW = 10
"""Rows per worker that an interval needs for a meaningful imbalance."""

REVERSAL_S = 600.0
"""Longest time between two opposite rescales that count as a reversal."""


@dataclass(frozen=True, slots=True)
class Span:
    """The workers of an interval."""

    workers: float  # their average number
    most: int  # their maximum number
    idle_s: float  # idle worker-seconds
    imbalance: float | None  # rows of the busiest worker over the mean; None with too few rows


@dataclass(frozen=True, slots=True)
class Waste:
    """Rows shed without overload: because of too few workers, or of imbalance.

    The paper calls shedding because of a small fluctuation a false positive.
    """

    dropped_falsely: (
        int  # rows shed while the offered load, spread evenly over the pool, would have kept all below tau2
    )
    dropped_unevenly: int  # of these, rows shed while it would have kept the present workers below tau2

    @classmethod
    def from_watched(cls, watched: Watched, overload: Overload, pool: int) -> "Waste":
        """Classify the rows shed by the load offered at that time.

        Source: ESJ, initial deployment.
        """
        room = overload.capacity_tuples * overload.factor.tau2
        falsely, unevenly = watched.offered < room * pool, watched.offered < room * watched.workers
        return cls(int(watched.shed[falsely].sum()), int(watched.shed[unevenly].sum()))


@dataclass(frozen=True, slots=True, eq=False)
class ElasticOutcome:
    """The outcome of one case of an elastic replay."""

    outcome: Outcome  # rows, latencies, lag
    spans: tuple[Span, ...]  # one per interval
    worker_s: float  # worker-seconds used
    paused_s: float  # time during which at least one partition was paused
    pauses_s: float  # sum of the pauses of all partitions
    waste: Waste | None = None  # rows shed without overload
    # when its policy decides first, and how partitions migrate in its rescales; None, it has no policy
    start: tuple[float, str] | None = None
    expected: int | None = None  # answers of a serial run over all rows; None without a join

    @property
    def drop_rate(self) -> float:
        """Rows shed over rows due."""
        due = self.outcome.processed + self.outcome.shed + self.outcome.left
        return self.outcome.shed / due if due else 0.0

    @property
    def recall(self) -> float | None:
        """Answers over those of a serial run; None without any."""
        answers = self.outcome.simulated.answers
        return None if answers is None or not self.expected else answers / self.expected

    @property
    def case(self) -> str:
        """The name of the case."""
        return self.outcome.case

    @property
    def rescales(self) -> list[Step]:
        """Rescales and plan rebuilds, in order."""
        return self.outcome.simulated.steps

    @property
    def downtime_s(self) -> float:
        """Time during which restarts stopped partitions."""
        return sum((stop.downtime_s or 0.0 for stop in stops_of(self.outcome.simulated)), 0.0)

    @property
    def stopped_worker_s(self) -> float:
        """Time of workers without work in restarts."""
        return sum((stop.worker_s for stop in stops_of(self.outcome.simulated)), 0.0)

    @property
    def restarts(self) -> int:
        """Rescales and rebuilds that changed something; other engines restart for each."""
        return sum(bool(step.moves) or step.before != step.after for step in self.rescales)

    @property
    def reversals(self) -> list[tuple[float, float]]:
        """Times of successive rescales of which the second reverses the first."""
        rescales = [step for step in self.rescales if step.before != step.after]
        return [
            (first.decided_s, second.decided_s)
            for first, second in pairwise(rescales)
            if (first.after > first.before) != (second.after > second.before)
            and second.decided_s - first.decided_s <= REVERSAL_S
        ]

    @property
    def ended_s(self) -> float:
        """When the case ended."""
        return self.outcome.simulated.intervals[-1].end_s

    @property
    def mean_workers(self) -> float:
        """The average number of workers."""
        return self.worker_s / self.ended_s

    @property
    def most_workers(self) -> int:
        """The maximum number of workers."""
        return max(workers for _, workers in self.outcome.simulated.workers)

    @property
    def idle_s(self) -> float:
        """Idle worker-seconds."""
        return sum(span.idle_s for span in self.spans)

    @property
    def imbalance(self) -> float | None:
        """Imbalance of the intervals, weighted by their rows."""
        spans = zip(self.outcome.simulated.intervals, self.spans, strict=True)
        known = [(one, span) for one, span in spans if span.imbalance is not None]
        rows = sum(one.processed for one, _ in known)
        return sum(one.processed * (span.imbalance or 0.0) for one, span in known) / rows if rows else None

    @property
    def worst_imbalance(self) -> float | None:
        """Imbalance of the worst interval."""
        return max((span.imbalance for span in self.spans if span.imbalance is not None), default=None)

    @property
    def catch_up_s(self) -> float | None:
        """The longest time from a rescale until its backlog is gone.

        Gone means that no more rows wait than arrive in a period. None if a backlog remains; 0 without rescales.
        """
        took = [None if step.caught_up_s is None else step.caught_up_s - step.decided_s for step in self.rescales]
        known = [one for one in took if one is not None]
        return None if len(known) < len(took) else max(known, default=0.0)


def elastic_outcome_of(
    outcome: Outcome,
    overload: Overload | None = None,
    pool: int = 0,
    start: tuple[float, str] | None = None,
    expected: int | None = None,
) -> ElasticOutcome:
    """The outcome of a case; `pool` is the maximum number of workers."""
    simulated = outcome.simulated
    intervals, watched, pauses = simulated.intervals, simulated.watched, _pauses(simulated)
    spans = tuple(_span(one, simulated.workers) for one in intervals)
    worker_s = sum(span.workers * (one.end_s - one.start_s) for one, span in zip(intervals, spans, strict=True))
    pauses_s = float(sum(end_s - start_s for start_s, end_s in pauses))
    waste = None if overload is None or watched is None else Waste.from_watched(watched, overload, pool)
    return ElasticOutcome(outcome, spans, worker_s, covered_s(pauses), pauses_s, waste, start, expected)


def _span(one: Interval, sizes: Sequence[tuple[float, int]]) -> Span:
    lasted = one.end_s - one.start_s
    worker_s, most = 0.0, 0
    for (from_s, workers), (until_s, _) in pairwise([*sizes, (np.inf, 0)]):
        overlap = min(one.end_s, until_s) - max(one.start_s, from_s)
        if overlap > 0:
            worker_s += overlap * workers
            most = max(most, workers)
    busy_s = float((1 - one.idle).sum()) * lasted
    rows = int(one.by_worker.sum())
    imbalance = float(one.by_worker.max()) * most / rows if rows >= FEW * most else None
    return Span(worker_s / lasted, most, max(0.0, worker_s - busy_s), imbalance)


def _pauses(simulated: Simulated) -> list[tuple[float, float]]:
    """Start and end of the pause of each partition that moved or was stopped."""
    end_s = simulated.intervals[-1].end_s
    moved = [
        (moved.times_s["paused"], moved.times_s.get("restarted", end_s))
        for moved in simulated.moves
        if "paused" in moved.times_s
    ]
    stops = stops_of(simulated)
    others = [(stop.began_s, end_s if stop.ended_s is None else stop.ended_s, stop.others) for stop in stops]
    return moved + [(began_s, ended_s) for began_s, ended_s, count in others for _ in range(count)]


def stops_of(simulated: Simulated) -> list[Stop]:
    """What restarts stopped."""
    return [step.stop for step in simulated.steps if step.stop is not None]


def covered_s(pauses: Sequence[tuple[float, float]]) -> float:
    """The time during which at least one pause lasts."""
    covered_s, reached_s = 0.0, 0.0
    for start_s, end_s in sorted(pauses):
        covered_s += max(0.0, end_s - max(start_s, reached_s))
        reached_s = max(reached_s, end_s)
    return covered_s
