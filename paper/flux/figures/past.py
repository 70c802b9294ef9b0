"""Past the paper: policies that are not fooled by idle receivers, and that move as much in a round as is wanted."""

from collections.abc import Sequence

from adapt.core.flux.names import FluxPolicy
from paper.claims import Claim, Judged, above, between
from paper.experiments import Experiment, Results
from paper.flux.figures.degradation import degraded, least_of_bound
from paper.flux.figures.recovery import FLUX, recoveries
from paper.flux.figures.shown import LABELS, judged
from paper.flux.figures.thrashing import STATIC, hot, rates
from paper.flux.scenarios import DISTURBED_S, seconds_below
from paper.flux.scope import Scope
from paper.report import Shown, section

_SEVERAL, _GUARDED = LABELS[FluxPolicy.LOAD_SEVERAL], LABELS[FluxPolicy.LOAD_GUARDED]


def wanted(scope: Scope) -> Sequence[Experiment]:  # noqa: ARG001
    """Nothing that the figures do not want."""
    return []


def shown(scope: Scope, results: Results) -> Shown:
    """What came of our aims."""
    said = (
        "The paper leaves open how to choose delta_min and how policies might do better. Here a tuple is taken to cost"
        " a receiver at least what it costs the donor (guarded), and a site may give away as many partitions a round as"
        " it has too many (several moves). Their lines are in the charts of Figures 6 to 8."
    )
    return section("Past the paper: load", [said], (), (), _claims(scope, results))


def _claims(scope: Scope, results: Results) -> list[Judged]:
    recovered, loaded, skewed = recoveries(scope, results), degraded(scope, results), hot(scope, results)
    below = {
        name: [seconds_below(run, 0.85, DISTURBED_S, scope.full) for run in recovered[name]]
        for name in (FLUX, _SEVERAL)
    }
    worst, least = least_of_bound(scope, loaded, _SEVERAL)
    briefest = scope.collections_s[0]
    claims: list[tuple[Claim, Sequence[float]]] = [
        (
            Claim(
                "Figure 6, past the paper",
                "Several moves a round recover at least twice as fast (an aim of ours)",
                "> 2",
                above(2, departs=1),
                "seconds below 85 % of the full rate with the paper's policy over those with several moves",
                "the time until load is felt and statistics show it is the same",
            ),
            [slow / quick for slow, quick in zip(below[FLUX], below[_SEVERAL], strict=True)],
        ),
        (
            Claim(
                "Figure 7, past the paper",
                "Several moves a round end within 4 % of the capacity bound (an aim of ours)",
                "> 0.96",
                above(0.96, departs=0.43),
                f"throughput over that bound where it is least, at {worst} loaded sites",
                "sites whose utilizations are less than 1.2 apart rest, as in the paper",
            ),
            least,
        ),
        *(
            (
                Claim(
                    "Figure 8, past the paper",
                    f"The {name} policy does not thrash, {_loaded(sites)} (an aim of ours)",
                    "> 1",
                    above(1),
                    f"throughput over that of the static stage with the same load, delta_min {1000 * briefest:g} ms",
                ),
                [
                    rate / still
                    for rate, still in zip(
                        rates(skewed[name, sites, briefest]), rates(skewed[STATIC, sites, 0.0]), strict=True
                    )
                ],
            )
            for name in (_GUARDED, _SEVERAL)
            for sites in (0, scope.hot_loaded)
        ),
        (
            Claim(
                "Figure 6, past the paper",
                "Several moves a round bring no partition back (an aim of ours)",
                "0",
                between(0, 0),
                "moves that bring a partition back to a site that it has left",
            ),
            [float(run.returns) for run in recovered[_SEVERAL]],
        ),
    ]
    return [judged(claim, values) for claim, values in claims]


def _loaded(sites: int) -> str:
    return "no site loaded" if sites == 0 else f"{sites} loaded"
