"""Section 6.3: external load on some workers while others lose memory."""

from collections.abc import Mapping, Sequence

from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, above, below
from paper.experiments import Experiment, Results
from paper.flux.figures.shown import (
    LABELS,
    LATENCY,
    MOVES,
    ON_DISK,
    POLICY,
    SHARE,
    THROUGHPUT,
    estimate,
    judged,
    lines,
    mean,
    over_time,
)
from paper.flux.measured import Ran, StageRun
from paper.flux.scenarios import DISTURBED_S, mean_rate
from paper.flux.scope import Scope, ran
from paper.report import Shown, averaged, cells, section

_LAST_S = 20.0
_LOADED = Column("loaded", Kind.COUNT, "workers")
_PRESSED = Column("pressed", Kind.COUNT, "workers", "other workers, with half of their memory")

_POLICIES = (FluxPolicy.NONE, FluxPolicy.LOAD, FluxPolicy.MEMORY, FluxPolicy.HYBRID, FluxPolicy.HYBRID_SEVERAL)
_OTHERS = (FluxPolicy.LOAD, FluxPolicy.MEMORY)

Mix = tuple[int, int]
"""Loaded workers, and other workers that are pressed."""


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Each mix under each policy."""
    return [run for runs in _mixed(scope).values() for run in runs]


def shown(scope: Scope, results: Results) -> Shown:
    """Throughput and latency under each policy."""
    runs = {key: ran(results, of) for key, of in _mixed(scope).items()}
    table = Table.from_rows(
        "Section 6.3: mixed loads",
        [POLICY, _LOADED, _PRESSED, *averaged([THROUGHPUT, SHARE, LATENCY, ON_DISK, MOVES])],
        [
            (
                LABELS[policy],
                *mix,
                *cells(
                    estimate(rate(run) for run in seeds),
                    estimate(rate(run) / scope.full for run in seeds),
                    estimate(latency(run) for run in seeds),
                    estimate(float(run.intervals[-1].on_disk) for run in seeds),
                    estimate(run.moves for run in seeds),
                ),
            )
            for (mix, policy), seeds in runs.items()
        ],
    )
    charts, series = [], []
    for mix in scope.mixes:
        of_mix = {LABELS[policy]: runs[mix, policy] for policy in _POLICIES}
        named = f"{mix[0]} loaded, {mix[1]} pressed"
        seconds = over_time(f"Section 6.3: {named}", of_mix, {THROUGHPUT: lambda one: one.throughput})
        series.append(seconds)
        charts.append(
            lines(
                f"Mixed loads: {named}",
                f"Tuples a second; both come at {DISTURBED_S:g} s. Dashed: the undisturbed stage. Bands: 95 %.",
                seconds,
                "second",
                "throughput",
                mark=scope.full,
                spots=False,
            )
        )
    said = (
        "The paper says that its hybrid policy outperforms the other two under a mixture of loads, and leaves the"
        " experiments to its unpublished long version. Here some workers are loaded and as many others lose half of"
        f" their memory, at the same time; throughput and latency are those of the last {_LAST_S:g} s. Beside the"
        f" paper's policies stands one of ours, {LABELS[FluxPolicy.HYBRID_SEVERAL]}."
    )
    return section("Section 6.3: hybrid policy", [said], charts, [table, *series], _claims(scope, runs))


def rate(run: Ran) -> float:
    """Tuples a second of the last seconds."""
    return mean_rate(run, run.lasted_s - _LAST_S)


def latency(run: Ran) -> float:
    """Microseconds in the operator over the last seconds."""
    return run.latency_us(run.lasted_s - _LAST_S)


def _mixed(scope: Scope) -> dict[tuple[Mix, FluxPolicy], list[StageRun]]:
    return {
        (mix, policy): scope.runs("mixed", policy, loaded=mix[0], short=mix[1], seconds=scope.mixed_s)
        for mix in scope.mixes
        for policy in _POLICIES
    }


def _claims(scope: Scope, runs: Mapping[tuple[Mix, FluxPolicy], list[Ran]]) -> list[Judged]:
    claims: list[tuple[Claim, Sequence[float]]] = []
    for mix in scope.mixes:
        named = f"{mix[0]} loaded and {mix[1]} pressed workers"
        by_policy = {policy: [rate(run) for run in runs[mix, policy]] for policy in _POLICIES}
        best = max(_OTHERS, key=lambda policy: mean(by_policy[policy]))
        claims.append(
            (
                Claim(
                    "Section 6.3",
                    f"The hybrid policy outperforms the other two with {named}",
                    "outperforms",
                    above(1),
                    f"throughput over that of the better of the two, {LABELS[best]}",
                    "it balances no load while anything is on disk; that takes longer, the more workers are pressed",
                    certainty="S",
                ),
                [
                    ours / max(by_policy[policy][seed] for policy in _OTHERS)
                    for seed, ours in enumerate(by_policy[FluxPolicy.HYBRID])
                ],
            )
        )
        claims.append(
            (
                Claim(
                    "Section 6.3",
                    f"The hybrid policy avoids high latencies with {named}",
                    "avoids",
                    below(1),
                    "latency over that of the load policy, which leaves on disk what is there",
                    certainty="S",
                ),
                [
                    latency(run) / latency(other)
                    for run, other in zip(runs[mix, FluxPolicy.HYBRID], runs[mix, FluxPolicy.LOAD], strict=True)
                ],
            )
        )
        claims.append(
            (
                Claim(
                    "Section 6.3, past the paper",
                    f"Several moves a round outperform the paper's hybrid policy with {named} (an aim of ours)",
                    "outperforms",
                    above(1),
                    "throughput over that of the paper's hybrid policy",
                ),
                [
                    rate(run) / rate(other)
                    for run, other in zip(
                        runs[mix, FluxPolicy.HYBRID_SEVERAL], runs[mix, FluxPolicy.HYBRID], strict=True
                    )
                ],
            )
        )
    return [judged(claim, values) for claim, values in claims]
