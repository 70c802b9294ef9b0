"""Figure 11: planning time of Solver-W by provision level."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from adapt.core.fit.program.program import Program
from adapt.core.table import Column, Kind, Table
from paper.charts import lines
from paper.claims import Claim, Judged, about, above
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
from paper.fit.measured import Planned, PlannedForQuotes, loads_of
from paper.fit.networks import Reading, two_servers
from paper.fit.quotes import STREAMS, are_there, quote_rates
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

_Key: TypeAlias = tuple[Reading, tuple[float, float], float]


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs by network and mean rate, and by cost.

    Costs vary for (64, 32) only, with both kinds of rates.
    """
    told: list[Experiment] = [run for of in (_by_rate(scope), _by_cost(scope)) for runs in of.values() for run in runs]
    return [*told, *(run for runs in _by_quotes(scope).values() for run in runs)]


def shown(scope: Scope, results: Results) -> Shown:
    """Planning time by mean rate, and by costs."""
    by_rate = {key: found(results, runs) for key, runs in _by_rate(scope).items()}
    by_cost = {key: found(results, runs) for key, runs in _by_cost(scope).items()}
    by_quotes = {key: found(results, runs) for key, runs in _by_quotes(scope).items()}
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
                ("quotes", str(reading), cost, runs[0]["feasible"], *_told(runs))
                for (reading, cost), runs in by_quotes.items()
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
        ("quotes", "at the rates of quotes"),
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
    tables = [*rates.values(), cheaper]
    if by_quotes:
        tables.insert(len(rates), _distribution())
        charts.append(
            lines(
                "Distribution of rates",
                "Share of the time with a higher rate: minutes of real quotes, and exponential rates with the same "
                "mean.",
                tables[len(rates)],
                "rate",
                "above",
                "rates",
                log_y=True,
                spots=False,
            )
        )
    traced = (
        "For comparison, the rates of real quotes: a currency pair at two venues, by minute over five days, scaled so "
        "that (64, 32) has the same provision level."
        if by_quotes
        else (
            "Real quotes are omitted, since their trace is missing: set ADAPT_DATA to the folder that contains "
            "fx-ticks."
        )
    )
    said = (
        "The packet traces of Figures 11 (b) and (c) cannot be recovered; exponential rates replace them. Their mean "
        "is chosen so that (64, 32) in its parallel reading has the stated provision level of 20 %, read as the "
        f"probability that nothing needs to be dropped. The expected error is {percent(THRESHOLD)}, as in Figure 10 "
        "(b); the paper does not give its threshold and lambdas. Figure 12 only explains the"
        " distribution; its content is the column of what is feasible."
    )
    claims = [*_claims(scope, by_rate, by_cost), *_claims_of_quotes(scope, by_quotes)]
    return section("Figure 11: provision level", [said, traced], charts, tables, claims)


def quotes_scale() -> float:
    """Factor on the rates of quotes for the paper's provision level."""
    loads = loads_of(Program.from_network(two_servers(Reading.PARALLEL, 64.0, 32.0)))
    fullest = (quote_rates() @ loads).max(axis=1)
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


def _by_quotes(scope: Scope) -> dict[tuple[Reading, float], list[PlannedForQuotes]]:
    """Claims on real quotes; none if the trace is missing."""
    if not are_there():
        return {}
    scale = quotes_scale()
    return {
        (reading, cost): [
            PlannedForQuotes(chained(reading, (cost, cost / 2)), THRESHOLD, scale, scope.repeats, seed)
            for seed in range(scope.seeds)
        ]
        for reading in Reading
        for cost in scope.costs
    }


def _distribution() -> Table:
    """Share of the time above a rate, for quotes and for exponential rates with the same mean."""
    rates = quote_rates() * quotes_scale()
    grid = np.linspace(0, np.quantile(rates, 0.999), 60)
    mean = float(rates.mean())
    above = {
        "exponential": np.exp(-grid / mean),
        **{name: (rates[:, at, None] > grid).mean(axis=0) for at, name in enumerate(STREAMS)},
    }
    return Table.from_rows(
        "Figure 11 (b): rates",
        [_RATES, Column("rate", Kind.NUMBER, "tuples/s"), Column("above", Kind.SHARE, about="of the time")],
        [
            (name, float(rate), float(share))
            for name, shares in above.items()
            for rate, share in zip(grid, shares, strict=True)
            if share >= 1 / len(rates)
        ],
    )


def _claims_of_quotes(scope: Scope, by_quotes: Mapping[tuple[Reading, float], list[Data]]) -> list[Judged]:
    if not by_quotes:
        return []
    dear, cheap = scope.costs[0], scope.costs[-1]
    told: list[tuple[Claim, Sequence[float]]] = []
    for reading in Reading:
        plans, fits = ([by_quotes[reading, cost][0][what] for cost in (dear, cheap)] for what in ("plans", "feasible"))
        told.append(
            (
                Claim(
                    "Figure 11 (c), section 8.2.2",
                    f"The same holds for the rates of real quotes ({reading})",
                    "less",
                    above(1),
                    f"time at costs ({dear:g}, {dear / 2:g}) over that at ({cheap:g}, {cheap / 2:g})",
                    f"{plans[0]} plans become {plans[1]}, since the share of minutes without overload only rises from "
                    f"{percent(fits[0])} to {percent(fits[1])}.",
                    certainty=REBUILT,
                ),
                ratios(*([run["seconds"] for run in by_quotes[reading, cost]] for cost in (dear, cheap))),
            )
        )
    rates = quote_rates()
    told.append(
        (
            Claim(
                "Figure 11 (b), section 8.2.2",
                "The rates of a real stream are distributed almost like exponential ones",
                "deviation = mean",
                about(1),
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
