"""Figures 11 and 12: planning time of Solver-W by provision level, and the rates it expects."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeAlias

import numpy as np

from adapt.core.charts.chart import Chart
from adapt.core.fit.planners.program import Program
from adapt.core.fit.planners.solver import Exponential
from adapt.core.table import Column, Kind, Table
from paper.charts import heat, lines
from paper.claims import Claim, Judged, above, similar
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
from paper.fit.measured import TRACED, Planned, PlannedForTrace, loads_of
from paper.fit.networks import Reading, two_servers
from paper.fit.packets import LINKS
from paper.fit.quotes import STREAMS, are_there
from paper.fit.scope import SOLVER_W, Scope, chained, found
from paper.report import Shown, averaged, cells, section

THRESHOLD = 0.0144
"""Expected error, as in Figure 10 (b)."""

PROVISION_LEVEL = 0.2
"""Provision level of (64, 32) with the paper's trace."""

PROVISIONED_RATE = 26.3587
"""Mean of exponential rates with a fifth of the points feasible for (64, 32), as in the paper's trace."""

_LAMBDA = Column("lambda", Kind.NUMBER, "tuples/s", "mean of the exponential rates")
_FEASIBLE = Column("feasible", Kind.SHARE, about="probability that nothing needs to be dropped; from 100,000 draws")
_RATES = Column("rates")
_COST = Column("cost", Kind.NUMBER, "ms", "cost of the more expensive chain; the other costs half")
_DRAWS = 100_000
_PROBABILITY = Column("probability", Kind.SHARE)
_DRAWN, _MOST_DRAWN, _CELL, _LEAST_DRAWN = (2.0, 5.0, 10.0), 40.0, 1.0, 1e-6
"""Of Figure 12: lambdas, the highest rate, the size of cells, and the lowest probability."""
_LEAST_SHARE = 1e-4
"""Of Figure 11 (b): the smallest share of the time."""

_Key: TypeAlias = tuple[Reading, tuple[float, float], float]


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs by network and mean rate, and by cost.

    Costs vary for (64, 32) only, with both kinds of rates.
    """
    told: list[Experiment] = [run for of in (_by_rate(scope), _by_cost(scope)) for runs in of.values() for run in runs]
    return [*told, *(run for runs in _by_trace(scope).values() for run in runs)]


def shown(scope: Scope, results: Results) -> Shown:
    """Planning time by mean rate, and by costs."""
    by_rate = {key: found(results, runs) for key, runs in _by_rate(scope).items()}
    by_cost = {key: found(results, runs) for key, runs in _by_cost(scope).items()}
    by_trace = {key: found(results, runs) for key, runs in _by_trace(scope).items()}
    rates = {
        reading: Table.from_rows(
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
    cheaper = Table.from_rows(
        "Figure 11 (c): Solver-W by provision level",
        [_RATES, READING, _COST, _FEASIBLE, *averaged([SECONDS]), PLANS],
        [
            *(
                ("exponential", str(reading), pair[0], feasible(reading, pair, rate), *_told(runs))
                for (reading, pair, rate), runs in by_cost.items()
            ),
            *(
                (trace, str(reading), cost, runs[0]["feasible"], *_told(runs))
                for (trace, reading, cost), runs in by_trace.items()
            ),
        ],
    )
    charts = [
        lines(
            f"{name} of Solver-W by mean rate, {reading}",
            f"For an expected error of {percent(THRESHOLD)}. The higher lambda, the more points are overloaded.",
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
    for kind, sentence in (
        ("exponential", f"at exponential rates with mean {PROVISIONED_RATE:.1f}/s"),
        *((trace, f"at the rates of {trace}") for trace in _traces()),
    ):
        of_kind = replace(cheaper, rows=tuple(row for row in cheaper.rows if row[0] == kind))
        if of_kind.rows:
            charts.append(
                lines(
                    f"Time of Solver-W by provision level, {kind}",
                    f"The costs of (64, 32) are lowered, {sentence}.",
                    of_kind,
                    "feasible",
                    "time",
                    "reading",
                    log_y=True,
                )
            )
    distribution, expected = _distribution(), expected_rates()
    tables = [*rates.values(), distribution, cheaper, expected]
    charts.append(
        lines(
            "Distribution of rates",
            "Share of the time with a higher rate, and of exponential rates, as multiples of the mean rate.",
            distribution,
            "rate",
            "above",
            "rates",
            log_y=True,
            spots=False,
        )
    )
    charts += _maps(expected)
    traced = (
        "Two traces beside them, scaled so that (64, 32) has the same provision level: packets made by `adapt generate "
        "packets`, two links by second over 17 minutes; and real quotes, a currency pair at two venues, by minute over "
        "five days."
        + ("" if are_there() else " Their trace is missing: set ADAPT_DATA to the folder that contains fx-ticks.")
    )
    said = (
        "The packet traces of Figures 11 (b) and (c) cannot be recovered; exponential rates replace them. Their mean "
        "is chosen so that (64, 32) in its parallel reading has the stated provision level of 20 %, read as the "
        f"probability that nothing needs to be dropped. The expected error is {percent(THRESHOLD)}, as in Figure 10 "
        "(b); the paper does not give its threshold and lambdas. Figure 12 is drawn for three of ours."
    )
    claims = [*_claims(scope, by_rate, by_cost), *_claims_of_traces(scope, by_trace)]
    return section("Figures 11 and 12: provision level", [said, traced], charts, tables, claims)


def trace_scale(trace: str) -> float:
    """Factor on the rates of a trace for the paper's provision level."""
    loads = loads_of(Program.from_network(two_servers(Reading.PARALLEL, 64.0, 32.0)))
    fullest = (TRACED[trace]() @ loads).max(axis=1)
    return float(1 / np.quantile(fullest, PROVISION_LEVEL))


def feasible(reading: Reading, pair: tuple[float, float], rate: float) -> float:
    """Probability that exponential rates with this mean overload no server."""
    loads = loads_of(Program.from_network(two_servers(reading, *pair)))
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


def _traces() -> list[str]:
    """Names of the traces that are there."""
    return [trace for trace in TRACED if trace != "quotes" or are_there()]


def _by_trace(scope: Scope) -> dict[tuple[str, Reading, float], list[PlannedForTrace]]:
    return {
        (trace, reading, cost): [
            PlannedForTrace(trace, chained(reading, (cost, cost / 2)), THRESHOLD, scale, scope.repeats, seed)
            for seed in range(scope.seeds)
        ]
        for trace in _traces()
        for scale in [trace_scale(trace)]
        for reading in Reading
        for cost in scope.costs
    }


def _distribution() -> Table:
    """Share of the time above a multiple of the mean rate, for exponential rates and for each stream."""
    grid = np.linspace(0, 8, 65)
    names = {"quotes": STREAMS, "packets": [f"packets {link}" for link in LINKS]}
    above = {"exponential": np.exp(-grid)}
    for trace in _traces():
        rates = TRACED[trace]()
        for at, name in enumerate(names[trace]):
            above[name] = (rates[:, at, None] > grid * rates[:, at].mean()).mean(axis=0)
    return Table.from_rows(
        "Figure 11 (b): rates",
        [_RATES, Column("rate", Kind.RATIO, "of the mean"), Column("above", Kind.SHARE, about="of the time")],
        [
            (name, float(rate), float(share))
            for name, shares in above.items()
            for rate, share in zip(grid, shares, strict=True)
            if share >= _LEAST_SHARE
        ],
    )


def expected_rates() -> Table:
    """Probability of each cell of two exponential rates, by lambda."""
    ends = np.arange(0.0, _MOST_DRAWN, _CELL)
    low = np.stack(np.meshgrid(ends, ends, indexing="ij"), axis=-1).reshape(-1, 2)
    return Table.from_rows(
        "Figure 12: probability of two exponential rates",
        [_LAMBDA, *(Column(f"rate {at}", Kind.NUMBER, "tuples/s") for at in (1, 2)), _PROBABILITY],
        [
            (mean, *map(float, corner), float(share))
            for mean in _DRAWN
            for corner, share in zip(low, Exponential(np.full(2, mean)).probability(low, low + _CELL), strict=True)
            if share >= _LEAST_DRAWN
        ],
    )


def _maps(expected: Table) -> list[Chart]:
    """A color map for each lambda, with the feasibility boundary of (64, 32)."""
    heavy, light = map(float, 1 / loads_of(Program.from_network(two_servers(Reading.PARALLEL, 64.0, 32.0))).max(axis=1))
    edge = [(0.0, light), (heavy, 0.0)]
    return [
        heat(
            f"Expected rates, lambda {mean:g}",
            f"Probability of each cell of {_CELL:g} by {_CELL:g} tuples/s for exponential rates, mean {mean:g}/s. "
            f"Above the dashed line, (64, 32) is overloaded: {1 - feasible(Reading.PARALLEL, (64, 32), mean):.1%}.",
            replace(expected, rows=tuple(row for row in expected.rows if row[0] == mean)),
            "rate 1",
            "rate 2",
            _PROBABILITY.name,
            _MOST_DRAWN,
            edge,
        )
        for mean in _DRAWN
    ]


def _claims_of_traces(scope: Scope, by_trace: Mapping[tuple[str, Reading, float], list[Data]]) -> list[Judged]:
    dear, cheap = scope.costs[0], scope.costs[-1]
    told: list[tuple[Claim, Sequence[float]]] = []
    for trace, reading in product(_traces(), Reading):
        runs = [by_trace[trace, reading, cost] for cost in (dear, cheap)]
        plans, fits = ([each[0][what] for each in runs] for what in ("plans", "feasible"))
        told.append(
            (
                Claim(
                    "Figure 11 (c), section 8.2.2",
                    f"The same holds for the rates of {trace} ({reading})",
                    "less",
                    above(1),
                    f"time at costs ({dear:g}, {dear / 2:g}) over that at ({cheap:g}, {cheap / 2:g})",
                    f"{plans[0]} plans become {plans[1]}, as the share of the time without overload rises from "
                    f"{percent(fits[0])} to {percent(fits[1])}.",
                    certainty=REBUILT,
                ),
                ratios(*([run["seconds"] for run in each] for each in runs)),
            )
        )
    if are_there():
        rates = TRACED["quotes"]()
        told.append(
            (
                Claim(
                    "Figure 11 (b), section 8.2.2",
                    "The rates of a real stream are distributed almost like exponential ones",
                    "deviation = mean",
                    similar(),
                    "deviation over mean of each minute's rates, the mean of both streams",
                    "Quotes come in bursts and stop between sessions; the paper's packets are lost.",
                    certainty=REBUILT,
                ),
                [float((rates.std(axis=0) / rates.mean(axis=0)).mean())] * scope.seeds,
            )
        )
    return [judged(claim, values) for claim, values in told]


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
                    f"lowest time at lambda = {high:g} over that at {low:g}, over all networks",
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
