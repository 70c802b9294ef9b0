"""Figure 3: the undisturbed stage, and load on each worker."""

from collections.abc import Mapping, Sequence

from adapt.core.stage.conditions.names import Router
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, about, above, between
from paper.experiments import Experiment, Results
from paper.flux.figures.shown import POLICY, SHARE, THROUGHPUT, estimate, judged, lines, shares
from paper.flux.measured import StageRun
from paper.flux.scenarios import mean_rate
from paper.flux.scope import Scope, ran
from paper.report import Shown, averaged, cells, section

_SPACE = Column("space", Kind.COUNT, "tuples", "buffer of a producer, in addition to the two packets of a connection")

_TUPLE_BITS = 640

_NAMES = {Router.EXCHANGE: "Exchange", Router.FLUX: "Flux", Router.RIVER: "River (any worker)"}

_FLAT = 2048
"""Buffer in tuples with which Flux should be nearly undisturbed: that of the paper's other experiments."""


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs by router and buffer, and of the undisturbed stage."""
    return [*_undisturbed(scope), *(run for runs in _visited(scope).values() for run in runs)]


def shown(scope: Scope, results: Results) -> Shown:
    """Throughput by producer buffer."""
    full = [mean_rate(run) for run in ran(results, _undisturbed(scope))]
    rates = {key: [mean_rate(run) for run in ran(results, runs)] for key, runs in _visited(scope).items()}
    table = Table.from_rows(
        "Figure 3: load on each worker in turn",
        [POLICY, _SPACE, *averaged([THROUGHPUT, SHARE])],
        [
            (_NAMES[router], space, *cells(estimate(found), estimate(shares(found, full))))
            for (router, space), found in rates.items()
        ],
    )
    chart = lines(
        "Throughput by producer buffer",
        "Load is on one worker at a time, for half a second each. Dashed: the undisturbed stage. Bands: 95 %.",
        table,
        "space",
        "throughput",
        mark=sum(full) / len(full),
        only=[_NAMES[Router.EXCHANGE], _NAMES[Router.FLUX]],
    )
    said = (
        f"{scope.workers} workers. An external process works for 100 us and sleeps for 50 us, on one worker for half a "
        f"second, then on the next. The paper measured that a worker loses about 57 % of its throughput; it does not "
        f"say how the two share the CPU, which is calibrated to that number here. River sends a tuple to any worker "
        f"with room, which a stateful operator cannot do: it is the limit of what buffers can reach."
    )
    return section("Figure 3: short-term imbalance", [said], [chart], [table], _claims(scope, full, rates))


def _undisturbed(scope: Scope) -> list[StageRun]:
    return scope.runs("unloaded")


def _visited(scope: Scope) -> dict[tuple[Router, int], list[StageRun]]:
    """Runs by router and buffer."""
    kinds = [
        *((Router.EXCHANGE, space) for space in (0, *scope.spaces)),
        *((Router.FLUX, space) for space in scope.spaces),
        (Router.RIVER, 1),
    ]
    return {(router, space): scope.runs("transient_skew", router=router, space=space) for router, space in kinds}


def _claims(scope: Scope, full: list[float], rates: Mapping[tuple[Router, int], list[float]]) -> list[Judged]:
    ahead = [shares(rates[Router.FLUX, space], rates[Router.EXCHANGE, space]) for space in scope.spaces]
    claims: list[tuple[Claim, Sequence[float]]] = [
        (
            Claim(
                "Section 3",
                "The undisturbed stage processes 6.9e5 tuples per second",
                "6.9e5 to 7.1e5",
                between(6.9e5, 7.1e5),
                "tuples/s; 32 workers at 45.5 us per tuple make 7.03e5",
                certainty="D, C",
            ),
            full,
        ),
        (
            Claim(
                "Section 3",
                "The stage needs a network bandwidth of 450 Mbps",
                "450 Mbps",
                between(445, 455),
                "Mbit/s of tuples of 80 bytes in the undisturbed stage",
                certainty="S",
            ),
            [rate * _TUPLE_BITS / 1e6 for rate in full],
        ),
        (
            Claim(
                "Figure 3, section 4",
                "Without a buffer, load on a single worker at a time costs about half of the throughput",
                "about half",
                about(0.5, departs=1),
                "throughput of Exchange without a buffer over that of the undisturbed stage",
                certainty="S",
            ),
            shares(rates[Router.EXCHANGE, 0], full),
        ),
        (
            Claim(
                "Figure 3, section 4",
                "With the same buffer, Flux is above Exchange",
                "above, at all sizes",
                above(1),
                "lowest throughput of Flux over that of Exchange",
                certainty="S",
            ),
            [min(values) for values in zip(*ahead, strict=True)],
        ),
        (
            Claim(
                "Figure 3, section 4",
                f"Flux approaches the undisturbed stage, with {_FLAT:,} tuples per producer",
                "approaches (97 % is our aim)",
                above(0.97, departs=0.5),
                f"throughput with {_FLAT:,} tuples over that of the undisturbed stage",
                certainty="S",
            ),
            shares(rates[Router.FLUX, _FLAT], full),
        ),
    ]
    return [judged(claim, values) for claim, values in claims]
