"""Cost and regret of cases."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from adapt.core.elastic.planning.cheapest_schedule import Schedule, cheapest_schedule
from adapt.core.elastic.planning.known_load import KnownLoad
from adapt.core.elastic.planning.moves import MoveCosts, moves_of_stage
from adapt.core.elastic.planning.prices import GIB, Prices
from adapt.core.elastic.policies.names import ScalingPolicy
from adapt.core.elastic.replay.outcome import ElasticOutcome
from adapt.core.phrases import listed
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.control.workers import Migration
from adapt.core.table import Column, Kind, Table
from adapt.core.values import duration

USED = (1.0, 0.9, 0.8, 0.7)
"""Shares of a worker's time that schedules count on; the optimum is the cheapest case of these and of all others."""

COST_COLUMNS = (
    Column("late", Kind.COUNT, "rows", "above the target latency, shed, or left"),
    Column("cost", Kind.NUMBER, "s", "worker time, and the prices of late rows, pauses, state moved and rescales"),
    Column("regret", Kind.SHARE, "", "cost above that of the optimum; missing without --policy optimum"),
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a case costs.

    Attributes:
        worker_s: Worker seconds used.
        late: Rows above the target latency, shed, or left.
        total_s: All, in worker seconds.
    """

    worker_s: float
    late: int
    total_s: float


@dataclass(frozen=True, slots=True)
class Bill:
    """How cases are priced.

    Attributes:
        prices: Prices of late rows, pauses, state moved and rescales.
        row_s: Mean work of a row.
        partitions: Number of partitions.
    """

    prices: Prices
    row_s: float
    partitions: int

    def cost(self, one: ElasticOutcome, dropped: int = 0) -> Cost:
        """The cost of a case.

        Args:
            dropped: Rows that were dropped before they reached the stage.
        """
        outcome, prices = one.outcome, self.prices
        late = outcome.total.above(prices.target_s) + outcome.shed + outcome.left + dropped
        further = prices.pause * one.pauses_s / self.partitions + prices.moved * outcome.moved_bytes / GIB
        further += prices.rescale * one.restarts
        return Cost(one.worker_s, late, one.worker_s + prices.late * late * self.row_s + further)

    def cheapest(self, tried: Sequence[ElasticOutcome]) -> ElasticOutcome:
        """The outcome of least cost, as the case of the first one."""
        best, first = min(tried, key=lambda one: self.cost(one).total_s), tried[0]
        return replace(best, outcome=replace(best.outcome, case=first.case), start=first.start)

    def with_costs(self, cases: Table, outcomes: Sequence[ElasticOutcome]) -> Table:
        """The table of cases with `COST_COLUMNS`."""
        costs = [self.cost(one) for one in outcomes]
        rows = [
            (*row, cost.late, cost.total_s, regret)
            for row, cost, regret in zip(cases.rows, costs, self.regrets(outcomes), strict=True)
        ]
        return replace(cases, columns=(*cases.columns, *COST_COLUMNS), rows=tuple(rows))

    def regrets(self, outcomes: Sequence[ElasticOutcome]) -> list[float | None]:
        """Cost above that of the optimum with the same start, relative."""
        costs = [self.cost(one).total_s for one in outcomes]
        optima = {
            one.start: cost
            for one, cost in zip(outcomes, costs, strict=True)
            if one.start is not None and one.start.policy == ScalingPolicy.OPTIMUM
        }
        best = {(start.tau1, start.workers): cost for start, cost in optima.items() if start is not None}
        optimal = [None if one.start is None else best.get((one.start.tau1, one.start.workers)) for one in outcomes]
        return [cost / least - 1 if least else None for cost, least in zip(costs, optimal, strict=True)]

    def sentence(self, outcomes: Sequence[ElasticOutcome], bound_s: float | None) -> str:
        """Sentence on costs and regrets; empty without an optimum."""
        regrets = self.regrets(outcomes)
        said: dict[str, list[str]] = {}
        for one, regret in zip(outcomes, regrets, strict=True):
            if regret is not None and one.start is not None and one.start.policy != ScalingPolicy.OPTIMUM:
                said.setdefault(_more(regret), []).append(one.case)
        optima = [one for one in outcomes if one.start and one.start.policy == ScalingPolicy.OPTIMUM]
        if not said or len(optima) != 1:
            return ""
        best_s, simulated = self.cost(optima[0]).total_s, optima[0].outcome.simulated
        known = f"the optimum, which knows the stream, costs {duration(best_s)}"
        same = [one.case for one in outcomes if one is not optima[0] and one.outcome.simulated is simulated]
        if same:
            known += f" (no schedule made in advance was cheaper than {same[0]})"
        if bound_s is not None:
            known += f", {_more(best_s / bound_s - 1)} than the least in its model with free rescales"
        others = ", ".join(f"{listed(cases)} {more}" for more, cases in said.items())
        return f"{self.prices.sentence()}: {known}; {others}."


def _more(regret: float) -> str:
    return f"{abs(regret):.0%} {'more' if regret >= 0 else 'less'}"


@dataclass(frozen=True, slots=True, eq=False)
class Plannable:
    """A stream known in advance, and what its schedules cost.

    Attributes:
        load: Its work by window.
        moves: Costs of rescales.
        prices: Prices.
    """

    load: KnownLoad
    moves: MoveCosts
    prices: Prices

    @classmethod
    def of_stage(
        cls, load: KnownLoad, settings: StageSettings, moving: tuple[Migration, float], least: int, prices: Prices
    ) -> "Plannable":
        """Plan for a stage whose workers are the pool.

        Args:
            moving: How partitions migrate, and the start-up time of a worker.
            least: Fewest workers.
        """
        counts: NDArray[np.float64] = np.arange(least, settings.workers + 1, dtype=np.float64)
        return cls(load, MoveCosts.priced(counts, *moves_of_stage(settings, *moving)(counts), prices), prices)

    def schedules(self) -> list[Schedule]:
        """The cheapest schedule for each of `USED`, without repetitions."""
        start = int(self.moves.counts[0])
        made = [cheapest_schedule(self.load, self.moves, self.prices, start, used) for used in USED]
        return list({one.workers.tobytes(): one for one in made}.values())

    def bound_s(self) -> float:
        """Lower bound of the cost in the fluid model, with free rescales."""
        free = MoveCosts(self.moves.counts, 0 * self.moves.lost, 0 * self.moves.price)
        found = cheapest_schedule(self.load, free, self.prices, int(self.moves.counts[0]))
        return found.cost - found.gap
