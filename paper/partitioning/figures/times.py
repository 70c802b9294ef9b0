"""Figures 12 to 14: construction times, and the speed of larger steps."""

from collections.abc import Iterable, Sequence

import numpy as np

from adapt.core.partitioning.schemes.names import Construction, Scheme
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, about, above, below, judged, printed
from paper.estimates import Estimate
from paper.experiments import Experiment, Results
from paper.partitioning.chains import Recipe
from paper.partitioning.figures.grid import label, lines
from paper.partitioning.scope import CHANNELS, LEVEL, PAPERS_OWN, Scope
from paper.partitioning.timings import AgainstLiteral, Cold, ColdTimed, RoutingTimed, StepsTimed
from paper.report import Shown, averaged, cells, section

_SECONDS = Column("seconds", Kind.SECONDS, "s", "seconds of the last construction of the chain")
_TRACKED = Column("tracked", Kind.COUNT, about="pinned keys")
_COUNTS = (5, 10, 15, 20, 25, 32)
_LEAST, _USUAL = 0.008, 0.1


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs of timed steps, one at a time."""
    return [
        *(each for sigma in scope.sigmas for each in _by_sigma(scope, sigma)),
        *_by_channels(scope),
        *(each for skew in scope.skews for each in _by_skew(scope, skew)),
        *_quadratic(scope),
        *_literal(scope),
        _larger(scope),
        _routing(scope),
    ]


def shown(scope: Scope, results: Results) -> Shown:
    """Seconds by sigma, N and z, and the table of speeds."""
    by_sigma = _table(
        "Figure 12: time by sigma",
        Column("sigma", Kind.NUMBER),
        [(sigma, _by_sigma(scope, sigma), 0) for sigma in scope.sigmas],
        results,
    )
    by_channels = _table(
        "Figure 13: time by channels",
        Column("channels", Kind.COUNT),
        [(n, _by_channels(scope), at) for at, n in enumerate(_COUNTS)],
        results,
    )
    by_skew = _table(
        "Figure 14: time by skew",
        Column("z", Kind.NUMBER),
        [(skew, _by_skew(scope, skew), 0) for skew in scope.skews],
        results,
    )
    charts = [
        lines(
            f"Construction time by {what}",
            f"Seconds of the last construction of a chain, the best of a few runs, over {scope.timed_seeds} seeds.",
            table,
            column,
            "seconds",
            log_x=column == "sigma",
            log_y=True,
        )
        for what, table, column in (
            ("sigma", by_sigma, "sigma"),
            ("channels", by_channels, "channels"),
            ("skew", by_skew, "z"),
        )
    ]
    said = (
        "Times are of this machine without other load; ratios say more than times. The constructions are compiled and "
        "update the loads incrementally; the literal forms, in plain Python with exact arithmetic, recompute every "
        "candidate and give the same mapping."
    )
    speed = _speed(scope, results)
    return section(
        "Figures 12 to 14: construction time",
        [said],
        charts,
        [_against_literal(scope, results), speed, by_sigma, by_channels, by_skew],
        _claims(scope, results),
    )


def _recipes(sigma: float = _USUAL) -> tuple[Recipe, ...]:
    unlocked = (Recipe(Construction.UNLOCKED, sigma=sigma),)
    return (*(Recipe(construction, sigma=sigma) for construction in PAPERS_OWN), *unlocked, LEVEL)


def _steps(scope: Scope, skew: float, channels: tuple[int, ...], recipes: tuple[Recipe, ...]) -> list[StepsTimed]:
    return [
        StepsTimed(scope.keys, skew, seed, channels, recipes, scope.hashed(Scheme.CONSISTENT, seed, skew=skew))
        for seed in range(scope.timed_seeds)
    ]


def _by_sigma(scope: Scope, sigma: float) -> list[StepsTimed]:
    return _steps(scope, 1.0, (CHANNELS,), _recipes(sigma))


def _by_channels(scope: Scope) -> list[StepsTimed]:
    return _steps(scope, 1.0, _COUNTS, _recipes())


def _by_skew(scope: Scope, skew: float) -> list[StepsTimed]:
    return _by_sigma(scope, _USUAL) if skew == 1.0 else _steps(scope, skew, (CHANNELS,), _recipes())


def _quadratic(scope: Scope) -> list[StepsTimed]:
    return _steps(scope, 1.0, (CHANNELS,), (Recipe(Construction.READJ, "LQL", sigma=_LEAST),))[:2]


def _literal(scope: Scope) -> list[AgainstLiteral]:
    """Small steps of all constructions, larger ones if the literal form ends within minutes."""
    recipes = [Recipe(construction) for construction in (*PAPERS_OWN, Construction.READJ_PRINTED)]
    if not scope.is_quick:
        recipes += [Recipe(construction, sigma=0.02) for construction in (Construction.SCAN, Construction.REDIST)]
    ring = scope.hashed(Scheme.CONSISTENT, 0)
    return [AgainstLiteral(scope.keys, 0, recipe, 4 if scope.is_quick else CHANNELS, ring) for recipe in recipes]


_LARGE = {
    Construction.SCAN: 0.1,
    Construction.REDIST: 3.0,
    Construction.LEVEL: 0.1,
}
"""Target seconds of a step of 10,000 keys to 1,000 channels on an idle machine with two cores."""


def _larger(scope: Scope) -> ColdTimed:
    tracked, channels = (1000, 100) if scope.is_quick else (10_000, 1000)
    return ColdTimed(scope.keys, 0, tuple(Cold(construction, tracked, channels, 100) for construction in _LARGE))


def _routing(scope: Scope) -> RoutingTimed:
    return RoutingTimed(100_000 if scope.is_quick else 2_000_000, 1000, (10, 100))


def _table(
    title: str,
    across: Column,
    points: Iterable[tuple[float, Sequence[StepsTimed], int]],
    results: Results,
) -> Table:
    rows = []
    for at, experiments, place in points:
        for number, recipe in enumerate(experiments[0].recipes):
            timed = [results[experiment][number][place] for experiment in experiments]
            seconds = Estimate.of([each["seconds"] for each in timed])
            rows.append((label(recipe), at, timed[0]["tracked"], *cells(seconds)))
    return Table.from_rows(title, (Column("scheme"), across, _TRACKED, *averaged([_SECONDS])), rows)


def _against_literal(scope: Scope, results: Results) -> Table:
    """Compiled against literal constructions."""
    rows = []
    for experiment in _literal(scope):
        found = results[experiment]
        rows.append(
            (
                experiment.recipe.construction.value,
                found["tracked"],
                experiment.channels,
                found["seconds"],
                found["literal_s"],
                found["literal_s"] / found["seconds"],
                found["is_identical"],
            )
        )
    columns = (
        Column("construction"),
        _TRACKED,
        Column("channels", Kind.COUNT),
        Column("compiled", Kind.SECONDS, "s"),
        Column("literal", Kind.SECONDS, "s"),
        Column("times faster", Kind.NUMBER),
        Column("mapping identical"),
    )
    return Table.from_rows("Compiled against literal", columns, rows)


def _speed(scope: Scope, results: Results) -> Table:
    """Larger steps, and routing."""
    steps = [
        *(
            (f"{c}, sigma {_LEAST:g}", _seconds(scope, results, c, _LEAST), s)
            for c, s in (("redist", 0.005), ("readj", 0.3))
        ),
        ("readj, defaults", _seconds(scope, results, "readj", _USUAL), 0.001),
        (f"readj, LQL, sigma {_LEAST:g}", [results[each][0][0] for each in _quadratic(scope)], 1.0),
        *(
            (f"{step.construction}, {step.channels:,} channels", [found], target)
            for step, found, target in zip(_larger(scope).steps, results[_larger(scope)], _LARGE.values(), strict=True)
        ),
    ]
    rows: list[tuple[str | int | float | None, ...]] = []
    for name, found, target in steps:
        seconds = float(np.mean([each["seconds"] for each in found]))
        rows.append((name, found[0]["tracked"], seconds, target, seconds / target, None, None))
    routing = _routing(scope)
    for channels, found in zip(routing.channels, results[routing], strict=True):
        speed = found["keys_a_second"]
        rows.append(
            (
                f"routing strings, {channels} channels",
                1000,
                None,
                None,
                20e6 / speed,
                speed / 1e6,
                speed / found["loop_keys_a_second"],
            )
        )
    columns = (
        Column("what"),
        _TRACKED,
        Column("seconds", Kind.SECONDS, "s"),
        Column("aim", Kind.SECONDS, "s", "target on an idle machine with two cores"),
        Column(
            "of the aim",
            Kind.NUMBER,
            about="measured over target; below 1 is better. The target of routing is 20 M keys/s",
        ),
        Column("M keys/s", Kind.NUMBER),
        Column("over a loop of mmh3", Kind.NUMBER, about="speed-up over hashing a list key by key"),
    )
    return Table.from_rows("Speed of larger steps and of routing", columns, rows)


def _seconds(scope: Scope, results: Results, construction: str, sigma: float) -> list[dict[str, float]]:
    experiments = _by_sigma(scope, sigma)
    at = [recipe.construction.value for recipe in experiments[0].recipes].index(construction)
    return [results[experiment][at][0] for experiment in experiments]


def _claims(scope: Scope, results: Results) -> list[Judged]:
    def seconds(construction: str, sigma: float) -> list[float]:
        return [each["seconds"] for each in _seconds(scope, results, construction, sigma)]

    def by_skew(construction: str, skew: float) -> list[float]:
        experiments = _by_skew(scope, skew)
        at = [recipe.construction.value for recipe in experiments[0].recipes].index(construction)
        return [results[experiment][at][0]["seconds"] for experiment in experiments]

    usual = {name: Estimate.of(seconds(name, _USUAL)).mean for name in ("readj", "redist")}
    faster = "compiled and incremental, it takes a fraction of the paper's time; it grows as claimed"
    claims = [
        (
            Claim("Figure 12", "readj takes less than 0.05 s at the defaults", "< 0.05 s", below(0.05), "seconds"),
            seconds("readj", _USUAL),
        ),
        (
            Claim(
                "Figure 12",
                "readj takes around 10 s at sigma 0.008",
                "around 10 s",
                about(10, departs=usual["readj"]),
                "seconds",
                faster,
            ),
            seconds("readj", _LEAST),
        ),
        (
            Claim(
                "Figure 12",
                "redist takes slightly above 0.5 s at sigma 0.008",
                "0.5 s",
                printed("0.5", departs=usual["redist"]),
                "seconds",
                faster,
            ),
            seconds("redist", _LEAST),
        ),
        (
            Claim(
                "Figure 12",
                "At low sigma scan is faster than redist, and redist than readj",
                "scan < redist < readj",
                above(1),
                "lower of redist over scan and readj over redist, sigma 0.008",
            ),
            [
                min(redist / scan, readj / redist)
                for scan, redist, readj in zip(*(seconds(name.value, _LEAST) for name in PAPERS_OWN), strict=True)
            ],
        ),
        *(
            (
                Claim(
                    "Figure 14",
                    f"Time of {name} rises once z passes 0.8",
                    "rises",
                    above(1),
                    "seconds at z = 1 over seconds at z = 0.8",
                ),
                [one / other for one, other in zip(by_skew(name, 1.0), by_skew(name, 0.8), strict=True)],
            )
            for name in ("redist", "readj")
        ),
    ]
    return [judged(claim, values) for claim, values in claims]
