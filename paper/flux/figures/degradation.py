"""Figure 7: load on a growing number of workers."""

from collections.abc import Mapping, Sequence

from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, about, above, equal, never
from paper.experiments import Experiment, Results
from paper.flux.beyond import Compared
from paper.flux.figures.shown import (
    BEYOND,
    LABELS,
    MOVES,
    OTHER_READING,
    POLICY,
    THROUGHPUT,
    estimate,
    judged,
    lines,
    mean,
    shares,
    straightness,
)
from paper.flux.measured import Ran, StageRun
from paper.flux.scenarios import capacity_bound, mean_rate
from paper.flux.scope import OTHER_COLLECTION_S, Scope, ran
from paper.report import Shown, averaged, cells, section

_LAST_S = 5.0
_LOADED = Column("loaded", Kind.COUNT, "workers")
_OF_BOUND = Column("of bound", Kind.RATIO, about="throughput over that of all remaining CPU")
_BOUND = "capacity bound"

STATIC, FLUX = LABELS[FluxPolicy.NONE], LABELS[FluxPolicy.LOAD]

Degraded = Mapping[str, Mapping[int, list[Ran]]]
"""Runs of each policy by number of loaded workers."""


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs by policy and number of loaded workers."""
    return [run for by_count in _loaded(scope).values() for runs in by_count.values() for run in runs]


def shown(scope: Scope, results: Results) -> Shown:
    """Throughput by number of loaded workers."""
    runs = degraded(scope, results)
    rows = []
    for name, by_count in runs.items():
        for count, seeds in by_count.items():
            rates = [steady(run) for run in seeds]
            bound = [capacity_bound(count, scope.workers)] * len(seeds)
            measured = estimate(rates), estimate(shares(rates, bound)), estimate(run.moves for run in seeds)
            rows.append((name, count, *cells(*measured)))
    rows += [
        (_BOUND, count, *cells(estimate([capacity_bound(count, scope.workers)] * 2), None, None))
        for count in scope.counts
    ]
    table = Table.from_rows(
        "Figure 7: load on several workers", [POLICY, _LOADED, *averaged([THROUGHPUT, _OF_BOUND, MOVES])], rows
    )
    charts = [
        lines(
            "Throughput by loaded workers",
            "Tuples per second in the steady state, with 95 % bands. The bound is all remaining CPU, evenly used.",
            table,
            "loaded",
            "throughput",
            only=[STATIC, FLUX, _BOUND],
        ),
        lines(
            "Distance from the bound",
            "Throughput over that of all remaining CPU.",
            table,
            "loaded",
            "of bound",
            mark=1.0,
            only=[FLUX, OTHER_READING, *(LABELS[policy] for policy in BEYOND)],
        ),
    ]
    said = (
        f"Random workers out of {scope.workers}, chosen by the seed, are loaded from the start; throughput is that of "
        f"the last {_LAST_S:g} s."
    )
    return section("Figure 7: load on several workers", [said], charts, [table], _claims(scope, runs))


def degraded(scope: Scope, results: Results) -> dict[str, dict[int, list[Ran]]]:
    """Results by policy and number of loaded workers."""
    return {
        name: {count: ran(results, runs) for count, runs in by_count.items()}
        for name, by_count in _loaded(scope).items()
    }


def steady(run: Ran) -> float:
    """Tuples per second at the end."""
    return mean_rate(run, run.lasted_s - _LAST_S)


def least_of_bound(scope: Scope, runs: Degraded, name: str) -> tuple[int, list[float]]:
    """Loaded workers at which a policy is farthest from the bound.

    And its share of the bound there.
    """
    found = {
        count: [steady(run) / capacity_bound(count, scope.workers) for run in seeds]
        for count, seeds in runs[name].items()
    }
    worst = min(found, key=lambda count: mean(found[count]))
    return worst, found[worst]


def _loaded(scope: Scope) -> dict[str, dict[int, list[StageRun]]]:
    def under(policy: Compared, counts: Sequence[int], **collection_s: float) -> dict[int, list[StageRun]]:
        seconds = scope.static_s if policy is FluxPolicy.NONE else scope.settling_s
        return {
            count: scope.runs("several_loaded", policy, count=count, seconds=seconds, **collection_s)
            for count in counts
        }

    between_ends = scope.counts[1:-1]
    return {
        STATIC: under(FluxPolicy.NONE, scope.counts),
        FLUX: under(FluxPolicy.LOAD, scope.counts),
        OTHER_READING: under(FluxPolicy.LOAD, between_ends[::2], collection_s=OTHER_COLLECTION_S),
        **{LABELS[policy]: under(policy, between_ends) for policy in BEYOND},
    }


def _claims(scope: Scope, runs: Degraded) -> list[Judged]:
    none, *_, every = scope.counts
    static, flux = (
        {count: [steady(run) for run in seeds] for count, seeds in runs[name].items()} for name in (STATIC, FLUX)
    )
    worst, least = least_of_bound(scope, runs, FLUX)
    claims: list[tuple[Claim, Sequence[float]]] = [
        (
            Claim(
                "Figure 7, section 5.4",
                "Without moves the throughput of the whole stage drops once a single worker is loaded",
                "about 43 %",
                about(0.43, departs=1),
                "throughput with one loaded worker over that with none",
                certainty="C",
            ),
            shares(static[1], static[none]),
        ),
        (
            Claim(
                "Figure 7, section 5.4",
                "Without moves it remains there, however many more workers are loaded",
                "remains",
                equal(),
                f"throughput with {every} loaded workers over that with one",
                certainty="S",
            ),
            shares(static[every], static[1]),
        ),
        (
            Claim(
                "Figure 7, section 5.4",
                "With Flux the stage degrades smoothly, along a straight line",
                "linear (0.95 is ours)",
                above(0.95),
                "r squared of a straight line through throughput by loaded workers",
                certainty="S",
            ),
            [straightness(scope.counts, [flux[count][seed] for count in scope.counts]) for seed in range(scope.seeds)],
        ),
        (
            Claim(
                "Figure 7, section 5.4",
                "With Flux the stage stays near the straight line of all remaining CPU",
                "near (88 % is our aim)",
                above(0.88, departs=0.43),
                f"lowest throughput over that bound, at {worst} loaded workers",
                certainty="S",
            ),
            least,
        ),
        (
            Claim(
                "Figure 7, section 5.4",
                "Flux moves nothing where all workers are alike",
                "0 (an aim of ours)",
                never(),
                f"moves with no loaded worker and with all {every}",
            ),
            [sum(run.moves for run in both) for both in zip(runs[FLUX][none], runs[FLUX][every], strict=True)],
        ),
    ]
    return [judged(claim, values) for claim, values in claims]
