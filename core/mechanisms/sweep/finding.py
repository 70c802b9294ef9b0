"""Recommendation at a point of a sweep: wins and margins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adapt.core.mechanisms.recommendation import CALM, CHEAP, Advice, Frame, advice_of, keeps_up, real
from adapt.core.mechanisms.scenarios import BASELINE, Scenario
from adapt.core.mechanisms.sweep.grid import Point
from adapt.core.mechanisms.sweep.race import METRICS, Race, Record, mean_outcome


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of the race at one point."""

    point: Point
    frame: Frame  # stream and stage there
    race: Race  # the finished race
    advice: Advice  # the recommendation by the mean outcomes

    @classmethod
    def from_race(cls, point: Point, frame: Frame, race: Race, scenarios: Mapping[str, Scenario]) -> "Finding":
        """What the rule recommends by the mean outcomes.

        Scenarios that drop rows were dropped from the race; the advice names them with the seeds that they had.
        """
        records = race.means()
        names = set(race.compared)
        for name in race.entrants:
            if name not in names and name in race.runs and (race.is_settled or _is_lossy(race.runs[name])):
                records.append(mean_outcome(race.runs[name]))
        advice = advice_of(records, scenarios, frame)
        if (advice.scenario or BASELINE) not in names:
            advice = advice_of(race.means(), scenarios, frame)
        return cls(point, frame, race, advice)

    @property
    def scenario(self) -> str:
        """The recommended scenario; the baseline if none helps."""
        return self.advice.scenario or BASELINE

    @property
    def keeps_up(self) -> bool:
        """Whether it keeps up in the mean."""
        return keeps_up(mean_outcome(self.race.runs[self.scenario]), self.frame)

    @property
    def seeds(self) -> int:
        """Number of seeds that it is judged by."""
        return self.race.judged

    @property
    def wins(self) -> int:
        """Seeds with which the rule recommends it."""
        return sum(name == self.scenario for name in self.race.picks())

    @property
    def level(self) -> int:
        """Other seeds with which its difference from the best does not matter."""
        return sum(self.is_level_at(seed, self.scenario) for seed in range(self.seeds)) - self.wins

    @property
    def phrase(self) -> str:
        """What to do here, in a sentence."""
        if 2 * (self.wins + self.level) <= self.seeds:
            return "the answer changes with the seed"
        if not self.keeps_up:
            return "nothing helps" if self.scenario == BASELINE else f"use {self.scenario}, though it falls behind"
        return f"{BASELINE} is enough" if self.scenario == BASELINE else f"use {self.scenario}"

    def is_level_at(self, seed: int, name: str) -> bool:
        """Whether a scenario is level with the best with a seed."""
        runs, at = self.race.runs, min(seed, self.seeds - 1)
        return name in self.race.compared and self._is_level(runs[name][at], runs[self.race.pick(at)][at])

    def _is_level(self, one: Record, picked: Record) -> bool:
        same = keeps_up(one, self.frame) == keeps_up(picked, self.frame)
        slow, dear = (real(one[metric]) / max(real(picked[metric]), 1e-12) for metric in METRICS)
        return same and slow <= CALM and dear <= CHEAP


def _is_lossy(outcomes: Sequence[Record]) -> bool:
    return any(real(each["drop_rate"]) > 0 for each in outcomes)
