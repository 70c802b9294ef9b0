"""Figure 11: how long Solver-W plans by the provision level; exponential rates throughout."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from adapt.core.shedding.program import Program
from adapt.core.table import Column, Kind, Table
from paper.charts import lines
from paper.claims import Claim, Judged, above
from paper.estimates import Estimate
from paper.experiments import Data, Experiment, Results
from paper.fit.figures.shown import (
    COSTS,
    PLAIN,
    PLANS,
    READING,
    REBUILT,
    SECONDS,
    costs,
    judged,
    least,
    percent,
    ratios,
)
from paper.fit.measured import Planned, loads_of
from paper.fit.networks import Reading, two_servers
from paper.fit.scope import SOLVER_W, Scope, chained, found
from paper.report import Shown, averaged, cells, section

THRESHOLD = 0.0144
"""Of the expected error: that of Figure 10 (b)."""

PROVISIONED_RATE = 26.3587
"""Mean of exponential rates by which a fifth of the points is feasible for (64, 32), as the paper's trace had it."""

_LAMBDA = Column("lambda", Kind.NUMBER, "tuples/s", "mean of the exponential rates")
_FEASIBLE = Column("feasible", Kind.SHARE, about="probability that nothing needs to be dropped; by 100,000 draws")
_COST = Column("cost", Kind.NUMBER, "ms", "of the heavier chain; the other costs half")
_DRAWS = 100_000

_Key: TypeAlias = tuple[Reading, tuple[float, float], float]


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Every network with every mean rate, and (64, 32) with lower and lower costs."""
    return [run for of in (_by_rate(scope), _by_cost(scope)) for runs in of.values() for run in runs]


def shown(scope: Scope, results: Results) -> Shown:
    """Time to plan by mean rate, and by costs."""
    by_rate = {key: found(results, runs) for key, runs in _by_rate(scope).items()}
    by_cost = {key: found(results, runs) for key, runs in _by_cost(scope).items()}
    rates = {
        reading: Table.of(
            f"Figure 11 (a): Solver-W by mean rate, {reading}",
            [COSTS, _LAMBDA, _FEASIBLE, *averaged([SECONDS]), PLANS],
            [
                (costs(pair), rate, feasible(of, pair, rate), *_told(runs))
                for (of, pair, rate), runs in by_rate.items()
                if of is reading
            ],
        )
        for reading in Reading
    }
    cheaper = Table.of(
        "Figure 11 (c): Solver-W by provision level",
        [READING, _COST, _FEASIBLE, *averaged([SECONDS]), PLANS],
        [
            (str(reading), pair[0], feasible(reading, pair, rate), *_told(runs))
            for (reading, pair, rate), runs in by_cost.items()
        ],
    )
    charts = [
        lines(
            f"{name} of Solver-W by mean rate, {reading}",
            f"For an expected error of {percent(THRESHOLD)}. The higher lambda, the more is overloaded.",
            table,
            "lambda",
            column,
            "costs",
            order=[costs(pair) for pair in scope.pairs],
            log_y=True,
        )
        for reading, table in rates.items()
        for name, column in (("Time", "time"), ("Plans", "plans"))
    ]
    charts.append(
        lines(
            "Time of Solver-W by provision level",
            f"The costs of (64, 32) are lowered, at exponential rates of mean {PROVISIONED_RATE:.1f}/s.",
            cheaper,
            "feasible",
            "time",
            "reading",
            log_y=True,
        )
    )
    said = (
        "The packet traces of Figures 11 (b) and (c) cannot be recovered; exponential rates stand for them. Their mean"
        " is chosen so that (64, 32) in its parallel reading has the told provision level of 20 %, read as the"
        f" probability that nothing needs to be dropped. The expected error is to be {percent(THRESHOLD)}, as in"
        " Figure 10 (b); which threshold and which lambdas the paper took is not told. Figure 12 only explains the"
        " distribution; its content is the column of what is feasible."
    )
    return section(
        "Figure 11: provision level", [said], charts, [*rates.values(), cheaper], _claims(scope, by_rate, by_cost)
    )


def feasible(reading: Reading, pair: tuple[float, float], rate: float) -> float:
    """The probability that exponential rates of this mean overload nothing."""
    loads = loads_of(Program.of(two_servers(reading, *pair)))
    drawn = np.random.default_rng(0).exponential(rate, (_DRAWS, 2))
    return float((drawn @ loads <= 1).all(axis=1).mean())


def _by_rate(scope: Scope) -> dict[_Key, list[Planned]]:
    return {
        (reading, pair, rate): scope.planned(chained(reading, pair), SOLVER_W, THRESHOLD, rate, points=0)
        for reading in Reading
        for pair in scope.pairs
        for rate in scope.mean_rates
    }


def _by_cost(scope: Scope) -> dict[_Key, list[Planned]]:
    return {
        (reading, pair, PROVISIONED_RATE): scope.planned(
            chained(reading, pair), SOLVER_W, THRESHOLD, PROVISIONED_RATE, points=0
        )
        for reading in Reading
        for cost in scope.costs
        for pair in [(cost, cost / 2)]
    }


def _told(runs: list[Data]) -> list[float | None]:
    return [*cells(Estimate.of(run["seconds"] for run in runs)), runs[0]["plans"]]


def _claims(scope: Scope, by_rate: Mapping[_Key, list[Data]], by_cost: Mapping[_Key, list[Data]]) -> list[Judged]:
    def seconds(of: Mapping[_Key, list[Data]], *key: *_Key) -> list[float]:
        return [run["seconds"] for run in of[key]]

    def plans(reading: Reading, pair: tuple[float, float]) -> int:
        return int(by_rate[reading, pair, high][0]["plans"])

    claims: list[tuple[Claim, Sequence[float]]] = []
    low, high = scope.mean_rates[0], scope.mean_rates[-1]
    even, uneven = scope.pairs[0], scope.pairs[-1]
    for reading in Reading:
        dearest, cheapest = ((cost, cost / 2) for cost in (scope.costs[0], scope.costs[-1]))
        claims += [
            (
                Claim(
                    "Figure 11 (a), section 8.2.2",
                    f"As lambda increases, Solver-W takes more time to plan ({reading})",
                    "more, for all networks",
                    above(1),
                    f"time at lambda = {high:g} over that at {low:g}, on the network where it is least",
                    "Times of a few milliseconds vary.",
                    certainty=PLAIN,
                ),
                least(
                    [
                        ratios(seconds(by_rate, reading, pair, high), seconds(by_rate, reading, pair, low))
                        for pair in scope.pairs
                    ]
                ),
            ),
            (
                Claim(
                    "Figure 11 (a), section 8.2.2",
                    f"As imbalance increases, Solver-W takes more time to plan ({reading})",
                    "more",
                    above(1),
                    f"time for the last network over that for the first, at lambda = {high:g}",
                    f"Times of a few milliseconds vary; {plans(reading, even)} plans become {plans(reading, uneven)}.",
                    certainty=PLAIN,
                ),
                ratios(seconds(by_rate, reading, uneven, high), seconds(by_rate, reading, even, high)),
            ),
            (
                Claim(
                    "Figure 11 (c), section 8.2.2",
                    f"The better a system is provisioned, the less time planning takes ({reading})",
                    "less",
                    above(1),
                    f"time at costs ({dearest[0]:g}, {dearest[1]:g}) over that at ({cheapest[0]:g}, {cheapest[1]:g})",
                    certainty=REBUILT,
                ),
                ratios(
                    seconds(by_cost, reading, dearest, PROVISIONED_RATE),
                    seconds(by_cost, reading, cheapest, PROVISIONED_RATE),
                ),
            ),
        ]
    return [judged(claim, values) for claim, values in claims]
