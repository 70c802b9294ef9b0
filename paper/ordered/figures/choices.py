"""Sensitivity of Figure 8 to settings that the paper does not give."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from adapt.core.ordered.chain.names import Heuristic
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, above
from paper.experiments import Experiment, Results
from paper.ordered.figures.shown import (
    AIM,
    HEURISTIC,
    HEURISTICS,
    LABELS,
    LATENCY,
    RATE,
    SPEED_UP,
    all_judged,
    each,
    latency,
    means,
    over,
    rate,
    said,
)
from paper.ordered.measured import Ran, Simulated
from paper.ordered.pipelines import QUERIES
from paper.ordered.scope import JITTER, LONG_QUEUE, Scope, ran
from paper.report import Shown, averaged, section

_QUERY, _HEAVIER, _WORKERS = "Q1", 10.0, 8
_SETTING = Column("setting")
_ARRIVALS = Column("arrivals", Kind.SHARE, about="of the capacity of all workers, without contention")
_END_TO_END = Column("end to end", Kind.NUMBER, "ms", "latency including the wait before the first operator")
_LOADS = (0.8, 1.2)
_NONE = Contention(JITTER)
_DEFAULTS = RunSettings(queue_capacity=LONG_QUEUE)


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs by setting, by arrivals, and for both readings of CT."""
    kinds = (_settings(scope).values(), _arriving(scope).values(), _printed(scope).values())
    return [run for kind in kinds for runs in kind for run in runs]


def shown(scope: Scope, results: Results) -> Shown:
    """Throughput and latency by setting."""
    settings = {key: ran(results, of) for key, of in _settings(scope).items()}
    arriving = {key: ran(results, of) for key, of in _arriving(scope).items()}
    printed = {key: ran(results, of) for key, of in _printed(scope).items()}
    constants = said(_NONE)
    tables = [
        Table.from_rows(
            f"{_QUERY} by setting, costs x {_HEAVIER:g}, {_WORKERS} workers",
            [_SETTING, HEURISTIC, *averaged([RATE, LATENCY])],
            [
                (setting, LABELS[heuristic], *means(each(runs, rate), each(runs, latency)))
                for (setting, heuristic), runs in settings.items()
            ],
        ),
        Table.from_rows(
            f"{_QUERY} by arrivals, costs x {_HEAVIER:g}, {_WORKERS} workers",
            [_ARRIVALS, HEURISTIC, *averaged([RATE, LATENCY, _END_TO_END])],
            [
                (
                    load,
                    LABELS[heuristic],
                    *means(each(runs, rate), each(runs, latency), [run.end_to_end_ms for run in runs]),
                )
                for (load, heuristic), runs in arriving.items()
            ],
        ),
        Table.from_rows(
            f"{_QUERY} by CT, corrected and as printed, costs x {_HEAVIER:g}, {scope.most} workers",
            [HEURISTIC, *averaged([RATE, SPEED_UP, LATENCY])],
            [
                (
                    LABELS[heuristic],
                    *means(each(runs, rate), over(runs, printed[Heuristic.CT, 1]), each(runs, latency)),
                )
                for (heuristic, workers), runs in printed.items()
                if workers > 1
            ],
        ),
    ]
    defaults = f"slice {_DEFAULTS.slice_us:g} us, window {_DEFAULTS.ct_window_ms:g} ms, C {_DEFAULTS.qst_limit:g}"
    told = [
        "The paper gives neither the time slice nor the window of CT nor the C of QST. The defaults here are: "
        f"{defaults}. No contention here ({constants}).",
        "As the paper prints CT, an operator's share is divided by the selectivity of its outputs; read that way, an "
        "operator with few outputs seems far ahead, and starves. The program's CT divides by the selectivity of its "
        "inputs; both are run here.",
    ]
    return section("Figure 8: settings that the paper does not give", told, [], tables, _claims(scope, printed))


def _settings(scope: Scope) -> dict[tuple[str, Heuristic], list[Simulated]]:
    chosen = {
        **{
            (f"slice {slice_us:g} us", Heuristic.CT): replace(_DEFAULTS, slice_us=slice_us)
            for slice_us in scope.slices_us
        },
        **{
            (f"window {ct_window_ms:g} ms", Heuristic.CT): replace(_DEFAULTS, ct_window_ms=ct_window_ms)
            for ct_window_ms in scope.windows_ms
        },
        **{(f"C {size:g}", Heuristic.QST): replace(_DEFAULTS, qst_limit=size) for size in scope.sizes},
    }
    return {
        key: scope.query_runs(_QUERY, _WORKERS, heuristic=key[1], contention=_NONE, settings=settings, heavier=_HEAVIER)
        for key, settings in chosen.items()
    }


def _arriving(scope: Scope) -> dict[tuple[float, Heuristic], list[Simulated]]:
    found = {}
    for load in _LOADS:
        gap_us = work_us() * _HEAVIER / _WORKERS / load
        for heuristic in HEURISTICS:
            runs = scope.query_runs(_QUERY, _WORKERS, heuristic=heuristic, contention=_NONE, heavier=_HEAVIER)
            found[load, heuristic] = [replace(run, gap_us=gap_us) for run in runs]
    return found


def work_us() -> float:
    """Mean total cost of an input tuple."""
    through, work = 1.0, 0.0
    for operator in QUERIES[_QUERY]:
        assert not isinstance(operator.cost, str)
        work += through * operator.cost
        through *= operator.selectivity
    return work


def _printed(scope: Scope) -> dict[tuple[Heuristic, int], list[Simulated]]:
    return {
        (heuristic, workers): scope.query_runs(_QUERY, workers, heuristic=heuristic, contention=_NONE, heavier=_HEAVIER)
        for heuristic in (Heuristic.CT, Heuristic.CT_LITERAL)
        for workers in (1, scope.most)
        if workers > 1 or heuristic is Heuristic.CT
    }


def _claims(scope: Scope, printed: Mapping[tuple[Heuristic, int], list[Ran]]) -> list[Judged]:
    upstream, literal = (printed[heuristic, scope.most] for heuristic in (Heuristic.CT, Heuristic.CT_LITERAL))
    return all_judged(
        [
            (
                Claim(
                    "Section 6, target",
                    f"CT as printed has at least 50 times the latency of CT {AIM}",
                    "> 50",
                    above(50, departs=1),
                    f"latency of CT as printed over that of CT, {_QUERY}, costs x {_HEAVIER:g}, {scope.most} workers",
                ),
                over(literal, upstream, latency),
            ),
            (
                Claim(
                    "Section 6, target",
                    f"CT has a higher throughput than CT as printed {AIM}",
                    "more",
                    above(1),
                    f"throughput of CT over that of CT as printed, {_QUERY}, {scope.most} workers",
                ),
                over(upstream, literal),
            ),
        ]
    )
