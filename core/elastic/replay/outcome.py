"""One case of an elastic replay: its workers over time, what they cost, and what scaling took."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from adapt.core.stage.conditions.shed_factor import Overload
from adapt.core.stage.control.elasticity import Step
from adapt.core.stage.control.shed_log import Watched
from adapt.core.stage.engine.series import Interval
from adapt.core.stage.outcome import Outcome
from adapt.core.stage.simulate import Simulated

FEW = 10
"""Rows for a worker, below which an interval says nothing of imbalance."""


@dataclass(frozen=True, slots=True)
class Span:
    """The workers of an interval.

    Attributes:
        workers: On average over its time.
        most: At any time of it.
        idle_s: Worker-seconds without work.
        imbalance: Rows of the busiest worker over the mean of all; None where there are hardly any.
    """

    workers: float
    most: int
    idle_s: float
    imbalance: float | None


@dataclass(frozen=True, slots=True)
class Waste:
    """What was shed falsely: it was not overload that filled a worker, but too few workers, or uneven ones.

    The paper calls it a false positive where a small fluctuation makes workers shed.

    Attributes:
        shed_falsely: Rows shed while all workers of the pool, evenly filled, would have been below tau2 with all that
            was offered.
        shed_unevenly: Of these, rows shed while the workers that there were would have been.
    """

    shed_falsely: int
    shed_unevenly: int

    @classmethod
    def from_watched(cls, watched: Watched, overload: Overload, pool: int) -> "Waste":
        """What workers shed, by what was offered to all of them at that time.

        Source: ESJ, initial deployment.
        """
        room = overload.capacity_tuples * overload.factor.tau2
        falsely, unevenly = watched.offered < room * pool, watched.offered < room * watched.workers
        return cls(int(watched.shed[falsely].sum()), int(watched.shed[unevenly].sum()))


@dataclass(frozen=True, slots=True)
class Start:
    """What the workers at the start were chosen by.

    Attributes:
        policy: That scales afterwards.
        tau1: How full they were to be.
        workers: How many they were.
    """

    policy: str
    tau1: float
    workers: int


@dataclass(frozen=True, slots=True, eq=False)
class ElasticOutcome:
    """What a case did, and with how many workers.

    Attributes:
        outcome: Rows, latencies, lag.
        spans: One for each interval.
        worker_s: Worker-seconds that it had.
        paused_s: Time in which some partition was paused.
        pauses_s: The pauses of all partitions together.
        waste: What was shed although there was room for it.
        start: What the workers at the start were chosen by.
        expected: Answers of a serial run of all rows; None where nothing is joined.
    """

    outcome: Outcome
    spans: tuple[Span, ...]
    worker_s: float
    paused_s: float
    pauses_s: float
    waste: Waste | None = None
    start: Start | None = None
    expected: int | None = None

    @property
    def shed_share(self) -> float:
        """Of the rows that were due."""
        due = self.outcome.processed + self.outcome.shed + self.outcome.left
        return self.outcome.shed / due if due else 0.0

    @property
    def idle_share(self) -> float:
        """Of the worker-seconds that it had."""
        return self.idle_s / self.worker_s if self.worker_s else 0.0

    @property
    def recall(self) -> float | None:
        """The answers that it gave over those of a serial run; None where there are none to give."""
        answers = self.outcome.simulated.answers
        return None if answers is None or not self.expected else answers / self.expected

    @property
    def case(self) -> str:
        """Its name."""
        return self.outcome.case

    @property
    def steps(self) -> list[Step]:
        """Changes of the workers or of the plan, in order."""
        return self.outcome.simulated.steps

    @property
    def restarts(self) -> int:
        """Those that changed anything: as many times other engines would have restarted."""
        return sum(bool(step.moves) or step.before != step.after for step in self.steps)

    @property
    def ended_s(self) -> float:
        """When it was over."""
        return self.outcome.simulated.intervals[-1].end_s

    @property
    def mean_workers(self) -> float:
        """Over its time."""
        return self.worker_s / self.ended_s

    @property
    def most_workers(self) -> int:
        """At any time."""
        return max(workers for _, workers in self.outcome.simulated.workers)

    @property
    def idle_s(self) -> float:
        """Worker-seconds without work."""
        return sum(span.idle_s for span in self.spans)

    @property
    def imbalance(self) -> float | None:
        """Of the intervals, weighed by their rows."""
        spans = zip(self.outcome.simulated.intervals, self.spans, strict=True)
        known = [(one, span) for one, span in spans if span.imbalance is not None]
        rows = sum(one.processed for one, _ in known)
        return sum(one.processed * (span.imbalance or 0.0) for one, span in known) / rows if rows else None

    @property
    def worst_imbalance(self) -> float | None:
        """Of any interval."""
        return max((span.imbalance for span in self.spans if span.imbalance is not None), default=None)

    @property
    def catch_up_s(self) -> float | None:
        """The longest from the decision on a step until no more rows waited than come in a period; None, it never did.

        0 where there are no steps.
        """
        took = [None if step.caught_up_s is None else step.caught_up_s - step.decided_s for step in self.steps]
        known = [one for one in took if one is not None]
        return None if len(known) < len(took) else max(known, default=0.0)


def elastic_outcome_of(
    outcome: Outcome,
    overload: Overload | None = None,
    pool: int = 0,
    start: Start | None = None,
    expected: int | None = None,
) -> ElasticOutcome:
    """The outcome of a case whose workers are scaled and, with an overload policy, shed; the pool is all of them."""
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
    """From when to when each partition that moved was paused."""
    end_s = simulated.intervals[-1].end_s
    return [
        (moved.times_s["paused"], moved.times_s.get("restarted", end_s))
        for moved in simulated.moves
        if "paused" in moved.times_s
    ]


def covered_s(pauses: Sequence[tuple[float, float]]) -> float:
    """The time in which there is any of them."""
    covered_s, reached_s = 0.0, 0.0
    for start_s, end_s in sorted(pauses):
        covered_s += max(0.0, end_s - max(start_s, reached_s))
        reached_s = max(reached_s, end_s)
    return covered_s
