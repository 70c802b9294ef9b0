"""Race of scenarios at one point, which drops what is clearly worse."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from adapt.core.mechanisms.recommendation import lateness, real
from adapt.core.mechanisms.scenarios import BASELINE
from adapt.core.stage.outcome import CALM, CHEAP, SHED
from adapt.core.statistics.intervals import Spread, mean_bounds
from adapt.core.table import Cell

Record: TypeAlias = Mapping[str, Cell]
"""The outcomes of a scenario with one seed."""

Rule: TypeAlias = Callable[[Sequence[Record]], str]
"""Names the scenario to recommend, given outcomes, `BASELINE` first."""

ERROR = 0.05
"""Probability that a race drops the scenario that is best in the mean."""

FIRST, SCREENED = 3, 1
"""Seeds of the baseline before others are run, and of all others before the first are dropped."""

_NEVER_S = 1e9

METRICS, LATE = ("latency_p99", "worker_time"), "late"
"""What is compared in pairs, and what each scenario has by itself."""


@dataclass(slots=True)
class Race:
    """Successive elimination by paired differences.

    The baseline runs first: where it keeps up with every seed, nothing else is needed. Otherwise all run with the first
    seed, and those that are clearly worse than the leader are dropped after 1, 3, 5, 10, 20, ... seeds. All have the
    same rows and seeds, so the differences of their logarithms are compared: their confidence interval is Student's
    t, with the larger of their own variance and that of all scenarios and points together. Its error is `ERROR` over
    the number of intervals of the race (union bound).

    Source: Maron and Moore, "Hoeffding races", NIPS 1994; Birattari et al., "A racing algorithm for configuring
    metaheuristics", GECCO 2002; the pooled variance and the tolerances are ours.
    """

    entrants: tuple[str, ...]  # names of the scenarios, `BASELINE` first
    rule: Rule  # the rule that recommends
    last_s: float  # when the last row arrives
    seeds: int
    runs: dict[str, list[Record]] = field(default_factory=dict)  # outcomes by scenario, in the order of seeds
    dropped: dict[str, int] = field(default_factory=dict)  # seeds after which a scenario was dropped

    @property
    def alive(self) -> list[str]:
        """Scenarios that are not dropped."""
        return [name for name in self.entrants if name not in self.dropped]

    @property
    def compared(self) -> list[str]:
        """Scenarios whose outcomes decide, `BASELINE` first."""
        if self.is_settled:
            return [BASELINE]
        return [BASELINE, *(name for name in self.alive if name != BASELINE and name in self.runs)]

    @property
    def judged(self) -> int:
        """Seeds that all compared scenarios have."""
        return min(len(self.runs[name]) for name in self.compared)

    @property
    def is_settled(self) -> bool:
        """Whether the baseline keeps up with every seed."""
        return all(self._lateness(each) <= 0 for each in self.runs[BASELINE])

    @property
    def is_certain(self) -> bool:
        """Whether no seed has changed anything."""
        return self.judged > 1 and all(
            one[metric] == self.runs[name][0][metric]
            for name in self.compared
            for one in self.runs[name]
            for metric in METRICS
        )

    def rounds(self) -> Iterator[list[tuple[str, int]]]:
        """Which scenarios to run with which seeds, round by round.

        Call `add` with each outcome and then `drop` before the next round.
        """
        ends = self._ends()
        yield self._missing([BASELINE], min(FIRST, self.seeds))
        for end in ends:
            if self.is_certain and (self.is_settled or all(name in self.runs for name in self.alive)):
                return
            yield self._missing([BASELINE], end)
            if not self.is_settled:
                yield self._missing(self.alive, end)

    def add(self, name: str, outcome: Record) -> None:
        """Add the outcome of a scenario with its next seed."""
        self.runs.setdefault(name, []).append(outcome)

    def leader(self) -> str:
        """What the rule recommends by the mean outcomes."""
        return self.rule(self.means())

    def means(self) -> list[Record]:
        """Mean outcomes of the compared scenarios."""
        count = self.judged
        return [mean_outcome(self.runs[name][:count]) for name in self.compared]

    def picks(self) -> list[str]:
        """What the rule recommends with each seed."""
        return [self.pick(at) for at in range(self.judged)]

    def pick(self, at: int) -> str:
        """What the rule recommends with one seed."""
        return self.rule([self.runs[name][at] for name in self.compared])

    def differences(self, one: str, other: str, metric: str) -> list[float]:
        """Differences of logarithms with equal seeds."""
        pairs = zip(self.runs[one], self.runs[other], strict=False)
        return [difference(a, b, metric) for a, b in pairs]

    def drop(self, spread: Mapping[str, Spread]) -> None:
        """Drop scenarios that are clearly worse than the leader.

        Args:
            spread: Variance of paired differences by metric, of all races.
        """
        if self.is_settled or any(name not in self.runs for name in self.alive):
            return
        leader, count = self.leader(), self.judged
        for name in self.alive:
            if name != leader and self._is_worse(name, leader, spread):
                self.dropped[name] = count

    def spread(self) -> dict[str, Spread]:
        """Variance of the differences from the leader, by metric."""
        leader = self.leader()
        found = {metric: Spread() for metric in (*METRICS, LATE)}
        for name in self.runs:
            found[LATE] = found[LATE].with_group([self._lateness(each) for each in self.runs[name]])
        for name, metric in ((name, metric) for name in self.runs if name != leader for metric in METRICS):
            found[metric] = found[metric].with_group(self.differences(name, leader, metric))
        return found

    def _ends(self) -> list[int]:
        """Numbers of seeds after which scenarios are dropped."""
        steps = {SCREENED, FIRST, *(base * 10**power for power in range(1, 5) for base in (0.5, 1, 2))}
        return [*sorted(int(step) for step in steps if step < self.seeds), self.seeds]

    def _missing(self, names: Sequence[str], end: int) -> list[tuple[str, int]]:
        return [(name, at) for name in names for at in range(len(self.runs.get(name, ())), end)]

    def _lateness(self, outcome: Record) -> float:
        """Logarithm of what decides whether it keeps up; at most 0 if it does."""
        late = math.inf if real(outcome["drop_rate"]) > SHED else lateness(outcome, self.last_s)
        return math.log(min(max(late, 1 / _NEVER_S), _NEVER_S))

    def _is_worse(self, one: str, leader: str, spread: Mapping[str, Spread]) -> bool:
        """Whether the rule prefers the leader, at the confidence of the race."""
        runs = self.runs[one], self.runs[leader]
        if all(real(each["drop_rate"]) > 0 for each in runs[0]) and not any(
            real(each["drop_rate"]) for each in runs[1]
        ):
            return True  # what drops rows is never preferred to what keeps all
        level = 1 - 2 * ERROR / (3 * len(self.entrants) * len(self._ends()))  # one side of three intervals
        late = [mean_bounds([self._lateness(each) for each in of], level, spread[LATE]) for of in runs]
        if late[0][0] > 0 > late[1][1]:
            return True
        slower, dearer = (
            mean_bounds(self.differences(one, leader, metric), level, spread[metric])[0] for metric in METRICS
        )
        is_slower, is_dearer = slower > math.log(CALM), dearer > math.log(CHEAP)
        if max(late[0][1], late[1][1]) < 0:
            return is_dearer or (is_slower and dearer > -math.log(CHEAP))
        if min(late[0][0], late[1][0]) > 0:
            return is_slower or (is_dearer and slower > -math.log(CALM))
        return is_slower and is_dearer


def mean_outcome(outcomes: Sequence[Record]) -> Record:
    """Mean outcome over seeds.

    Geometric means of times, arithmetic ones of others; equal values stay as they are.
    """
    first = outcomes[0]
    return {name: _mean([each[name] for each in outcomes], name) for name in first}


def _mean(cells: Sequence[Cell], name: str) -> Cell:
    if all(cell == cells[0] for cell in cells):
        return cells[0]
    numbers = [float(cell) for cell in cells if isinstance(cell, int | float)]
    if len(numbers) < len(cells):
        return None
    if name in ("latency_p50", "latency_p95", "latency_p99", "worker_time") and min(numbers) > 0:
        return math.exp(math.fsum(map(math.log, numbers)) / len(numbers))
    mean = math.fsum(numbers) / len(numbers)
    return round(mean) if all(isinstance(cell, int) for cell in cells) else mean


def difference(one: Record, other: Record, metric: str) -> float:
    """Difference of the logarithms of a metric."""
    return _log(one, metric) - _log(other, metric)


def _log(outcome: Record, metric: str) -> float:
    cell = outcome[metric]
    return math.log(_NEVER_S if cell is None else max(real(cell), 1e-12))
