"""Loads of units whose keys are known but not shown: real columns, and keys drawn in other ways than the product's."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from adapt.core.engines.names import Engine
from adapt.core.out_of_sample.windows import CountedPane, Windows
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.unit_loads.cause import Cause, Judged, cause_of
from adapt.core.unit_loads.loads import fair_shares


@dataclass(frozen=True)
class Case:
    """Loads of units, and the keys behind them."""

    name: str
    engine: Engine | None
    loads: np.ndarray  # shape (units, windows)
    keys: int
    hottest: float  # share of the hottest key in all load
    of_excess: float  # the hottest key on the busiest unit, over what that has above the mean

    @classmethod
    def of_keys(cls, name: str, engine: Engine | None, shares: np.ndarray, home: np.ndarray, units: int) -> "Case":
        """A case of keys' shares in windows, shape (keys, windows), and the unit of each."""
        loads = np.stack([np.bincount(home, shares[:, at], units) for at in range(shares.shape[1])], axis=1)
        totals, own = loads.sum(axis=1) / loads.sum(), shares.sum(axis=1) / shares.sum()
        busiest = int(totals.argmax())
        excess = totals[busiest] - 1 / units
        return cls(name, engine, loads, len(own), own.max(), own[home == busiest].max() / max(excess, 1e-12))

    @property
    def truth(self) -> str:
        return "hot key" if self.of_excess >= 0.5 else "luck of the hash" if self.of_excess < 0.1 else "between"

    def judged(self, *, knows_keys: bool = False) -> Judged:
        fair = fair_shares(len(self.loads), self.engine)
        return cause_of(self.loads, fair, self.keys if knows_keys else None)

    def holds(self, judged: Judged) -> bool:
        return judged.low * (1 - 1e-9) <= self.hottest <= judged.high * (1 + 1e-9)


def real_cases(columns: Mapping[str, Sequence[CountedPane]], cases: Iterable[tuple[Engine, int]]) -> Iterator[Case]:
    """The columns as engines place them."""
    cases = list(cases)
    for name, panes in columns.items():
        for engine, units in cases:
            windows = Windows.from_panes(panes, make_partitioner(engine, units))
            yield Case.of_keys(name, engine, windows.shares, windows.home, units)


def generated_cases(count: int, units: int, seed: int) -> Iterator[Case]:
    """Keys of lognormal or gamma shares, that change by steps of a random walk, counted by rows."""
    random = np.random.default_rng(seed)
    for at in range(count):
        keys = int(np.exp(random.uniform(np.log(10), np.log(20_000))))
        if at % 2:
            shares = random.lognormal(0, random.uniform(0, 2.5), keys)
        else:
            shares = random.gamma(random.uniform(0.1, 10), size=keys)
        if at % 3 == 0:
            shares[0] = shares.sum() * random.uniform(0.01, 0.4)
        steps = random.normal(0, np.exp(random.uniform(np.log(0.01), np.log(0.5))), (keys, 12)).cumsum(axis=1)
        varied = shares[:, None] * np.exp(steps)
        rows = np.exp(random.uniform(np.log(3000), np.log(1e6)))
        counts = random.poisson(varied / varied.sum(axis=0) * rows / 12)
        yield Case.of_keys("generated", None, counts.astype(float), random.integers(0, units, keys), units)


@dataclass
class Score:
    """How answers compare to the truth."""

    answers: Counter
    held: int = 0  # intervals that hold the hottest key's share

    @classmethod
    def of(cls, cases: Iterable[Case], *, knows_keys: bool = False) -> "Score":
        score = cls(Counter())
        for case in cases:
            judged = case.judged(knows_keys=knows_keys)
            score.add(case, judged)
        return score

    def add(self, case: Case, judged: Judged) -> None:
        holds = case.holds(judged)
        self.held += holds
        is_right = judged.cause == case.truth or (case.truth == "between" and holds)
        is_right |= judged.cause is Cause.SEVERAL and case.truth == "hot key"
        self.answers[case.truth, judged.cause, is_right] += 1

    def share(self, *causes: Cause) -> float:
        """Share of the cases with an answer."""
        return sum(n for (_, cause, _), n in self.answers.items() if cause in causes) / self.answers.total()

    @property
    def right(self) -> float:
        """Share of right answers among hot and luck."""
        said = {key: n for key, n in self.answers.items() if key[1] in (Cause.HOT, Cause.LUCK)}
        return sum(n for (*_, is_right), n in said.items() if is_right) / max(sum(said.values()), 1)

    @property
    def coverage(self) -> float:
        return self.held / self.answers.total()
