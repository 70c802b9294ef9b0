"""Scaling up and down: whose utilization decides, and where scaling ends."""

from collections.abc import Sequence
from dataclasses import fields, replace

from adapt.core.table import Column, Kind, Table
from paper.claims import ONE_RUN, Claim, Judged, about, below, judged
from paper.esj.figures.shedding import SHED
from paper.esj.measured import WEB_LOG, Sent, Shedding, WebLog
from paper.esj.scope import AT_TAU_1, POOL, WORKERS, Scope, values
from paper.estimates import Estimate
from paper.experiments import Experiment, Results
from paper.report import Shown, averaged, cells, section

_UP, _DOWN, _OFFERED = "Scaling up", "Scaling down", "Scaling up, beyond the paper"
_LOW, _HIGH = 0.4 * WORKERS * AT_TAU_1, 1.5 * WORKERS * AT_TAU_1
_RISEN = Shedding(WORKERS, (_LOW, _HIGH, _HIGH, 50.0, 50.0), 10.0, pool=2 * POOL)
_SKEWED = Shedding(WORKERS, (0.65 * WORKERS * AT_TAU_1,), 40.0, hot=0.3, pool=POOL)
_CHANGES = {_UP: _RISEN, _OFFERED: replace(_RISEN, signal="offered")}
_CASES = {
    f"{WORKERS} throughout": replace(_SKEWED, pool=0),
    f"{POOL} throughout": replace(_SKEWED, workers=POOL, pool=0),
    "thresholds on the mean": replace(_SKEWED, scale_on="mean"),
    "thresholds on the busiest worker": _SKEWED,
}
_LOGGED = {
    case: WebLog(**{each.name: getattr(one, each.name) for each in fields(one)} | {"rates": (), "hot": 0.0})
    for case, one in _CASES.items()
    if WEB_LOG.exists()
}


def wanted(scope: Scope) -> Sequence[Experiment]:
    """A load that rises and falls, a skewed one, and a web log."""
    return [*(run for runs in _runs(scope).values() for run in runs), *_LOGGED.values()]


def shown(scope: Scope, results: Results) -> Shown:
    """Workers after a rise and a fall; shedding by what the thresholds watch."""
    runs = _runs(scope)
    table = Table.from_rows(
        f"A hot partition with 30 % of the tuples, {WORKERS} workers at the start",
        [Column("case"), *averaged([SHED, Column("workers", Kind.NUMBER, about="most workers")])],
        [
            (case, *cells(*(Estimate.of(values(results, runs[case], name)) for name in ("shed", "most"))))
            for case in _CASES
        ],
    )
    weblog = Table.from_rows(
        "The web log",
        [Column("case"), SHED],
        [(case, results[one]["shed"]) for case, one in _LOGGED.items()],
        note="10,000 requests by host, 2,000 times as fast; workers buffer 15 rows for 1 s, and scale out after 2 s."
        + ("" if _LOGGED else " The log is missing: set ADAPT_DATA to the folder that contains weblog-2015."),
    )
    said = (
        "The paper defines tau for a worker. The mean of the workers stays below tau3 while one worker sheds; the"
        " busiest worker shows it."
    )
    return section("Scaling", [said], [], [table, weblog], _claims(results, runs))


def _runs(scope: Scope) -> dict[str, list[Shedding | Sent]]:
    return {case: scope.each(one) for case, one in {**_CHANGES, **_CASES}.items()}


def _claims(results: Results, runs: dict[str, list[Shedding | Sent]]) -> list[Judged]:
    workers = {case: values(results, runs[case], "workers") for case in _CHANGES}
    few, many, _, busiest = (values(results, runs[case]) for case in _CASES)
    claims: list[tuple[Claim, Sequence[float]]] = [
        *(
            (
                Claim(
                    case,
                    "Workers are added until tau is around tau1"
                    + (", by the load offered" if case == _OFFERED else ""),
                    "tau1 = 0.4",
                    about(0.4),
                    f"mean tau after the rate rose to {_HIGH:,.0f} tuples/s",
                    "Workers follow from the tuples held; shedding hides the others. At 0.6 no threshold is passed.",
                ),
                [_HIGH / AT_TAU_1 / each[2] for each in found],
            )
            for case, found in workers.items()
        ),
        (
            Claim(_DOWN, "Workers are released until m = M", "M = 4", about(WORKERS), "workers after the rate fell"),
            [each[4] for each in workers[_UP]],
        ),
        (
            Claim(
                _UP,
                "More workers mitigate the overload",
                "less is shed",
                below(1.0),
                "share shed by thresholds on the busiest worker, over that without scaling",
            ),
            [ours / fixed for ours, fixed in zip(busiest, few, strict=True)],
        ),
        (
            Claim(
                _UP,
                "Scaling on the busiest worker sheds as little as all workers from the start (an aim of ours)",
                "within a tenth",
                below(1.1),
                "share shed by thresholds on the busiest worker, over that with all workers",
                "Until it has scaled out, the hot worker sheds.",
            ),
            [ours / all_ for ours, all_ in zip(busiest, many, strict=True)],
        ),
    ]
    return [judged(claim, found, ONE_RUN) for claim, found in claims]
