"""ContTune: doubles while under-provisioned, then searches conservatively for fewer workers."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from adapt.core.elastic.policies.ds2 import POLICY_INTERVAL_S, WARM_UP, TrueRates
from adapt.core.elastic.policies.epochs import JobIntervals
from adapt.core.elastic.policies.gaussian_process import WorkersProcess
from adapt.core.stage.control.workers import Seen

ALPHA = 3
"""Distance from the nearest observation, in workers, up to which the model is trusted."""

RECENT = 5
"""Most recent observations of a number of workers whose mean the model gets."""

LIFT = 2
"""Growth in the Big phase."""


@dataclass(slots=True)
class ContTune:
    """ContTune's Big and Small phase for one operator.

    Big phase: while a backlog does not fall, to the most workers that have kept up so far, or to twice the present
    ones. Small phase: without a backlog, to the fewest workers of which a Gaussian process over past observations
    expects enough; where the nearest observation is further than alpha, to the number of DS2 instead.

    Attributes:
        exploration: DS2's model, with its target utilization.
        interval_s: Decision interval.
        warm_up: Intervals ignored after a start.
        alpha: Distance up to which the process is trusted.

    Source: Lian et al., "ContTune: Continuous Tuning by Conservative Bayesian Optimization for Distributed Stream Data
    Processing Systems", VLDB 2023; ljqcodelove/ContTune, README.md and code/GPofContTune.py. Our readings are in
    docs/elastic.md.
    """

    exploration: TrueRates = TrueRates()  # noqa: RUF009 - frozen
    interval_s: float = POLICY_INTERVAL_S
    warm_up: int = WARM_UP
    alpha: int = ALPHA
    _intervals: JobIntervals = field(init=False)
    _waiting: int = 0
    _abilities: dict[int, deque[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._intervals = JobIntervals(self.interval_s, self.warm_up)

    def wanted(self, seen: Seen) -> int:
        """The number of the phase after an interval, else the current one."""
        interval = self._intervals.add(seen)
        if interval is None:
            return seen.workers
        waited, self._waiting = self._waiting, interval.waiting
        if not self._intervals.is_warm:
            return seen.workers
        processed, busy_s = int(interval.processed.sum()), float(interval.busy_s.sum())
        if processed == 0 or busy_s <= 0:
            return seen.workers
        if interval.waiting > interval.arrived * seen.collected_s / interval.collected_s:
            return seen.workers if interval.waiting < waited else self._lifted(seen.workers)
        ability = processed / busy_s * seen.workers
        self._abilities.setdefault(seen.workers, deque(maxlen=RECENT)).append(ability)
        found = self._searched(interval)
        return seen.workers if found == seen.workers - 1 else found

    def _lifted(self, present: int) -> int:
        """Big phase: to the most workers that kept up, or twice as many."""
        most = max(self._abilities, default=present)
        return most if most > present else LIFT * present

    def _searched(self, interval: Seen) -> int:
        """Small phase: the fewest workers that do enough, at most the present ones."""
        observed = {workers: float(np.mean(each)) for workers, each in self._abilities.items()}
        workers = np.arange(1, interval.workers + 1)
        rate = interval.arrived / interval.collected_s / self.exploration.utilization
        enough = workers[WorkersProcess.fitted(observed).mean(workers.astype(np.float64)) >= rate]
        if not len(enough):
            return interval.workers
        best = int(enough[0])
        if min(abs(best - each) for each in observed) <= self.alpha:
            return best
        return min(interval.workers, self.exploration.wanted(interval))
