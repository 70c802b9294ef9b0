"""Figures 9 to 11: keys in the lossy counter, and pinned keys."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.problem.tracking import threshold, tracked_keys
from adapt.core.partitioning.schemes.names import Construction
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, about, above, between, equal, judged
from paper.estimates import Estimate
from paper.experiments import Experiment, Results
from paper.partitioning.chains import MOST_LISTED, Recipe
from paper.partitioning.counters import BuiltFromLossy, CounterSizes
from paper.partitioning.domain import TUPLES_A_KEY, Domain
from paper.partitioning.figures.grid import lines
from paper.partitioning.scope import CHANNELS, Scope, at_channels, b_of, built, ratios
from paper.report import Shown, averaged, cells, section

_LETTERS = ("LCL", "LQL")
_ENTRIES = Column("entries", Kind.NUMBER, about="keys in the lossy counter before and after a purge; or pinned keys")
_SERIES = Column("series")


@dataclass(frozen=True, slots=True)
class _Point:
    """A setting whose sizes are shown."""

    letters: str
    channels: int = CHANNELS
    skew: float = 1.0
    sigma: float = 0.1


def wanted(scope: Scope) -> Sequence[Experiment]:
    """A set of counters by seed and skew."""
    return [*_counters(scope), *_lossy(scope), *scope.chains(_TRUE)]


def shown(scope: Scope, results: Results) -> Shown:
    """Entries of the counter and pinned keys by sigma, z and N."""
    entries = _entries(scope, results)
    charts, tables = [], []
    for figure, what, column, points in _figures(scope):
        rows = []
        for at, point in points:
            before, after = entries[_skew_of(point), _epsilon(scope, point)]
            mapped = Estimate.of([_mapped(scope, point)])
            for series, size in (("before a purge", before), ("after a purge", after), ("mapped", mapped)):
                rows.append((f"{point.letters}, {series}", at, *cells(size)))
        table = Table.from_rows(f"Figure {figure}: sizes by {what}", (_SERIES, column, *averaged([_ENTRIES])), rows)
        tables.append(table)
        charts.append(
            lines(
                f"Sizes by {what}",
                "Keys in a lossy counter just before and just after a purge, and pinned keys.",
                table,
                column.name,
                "entries",
                "series",
                log_x=what == "sigma",
                log_y=True,
            )
        )
    built_from = _lossy_table(scope, results)
    said = [
        f"A lossy counter with error delta / 10 counts {scope.rows:,} tuples, row by row as in the paper; its entries "
        f"are those before and after its last purges: the paper's sizes are points between the two. Pinned keys are "
        f"those whose exact share reaches delta.",
    ]
    return section(
        "Figures 9 to 11: size of the partitioning function",
        said,
        charts,
        [*tables, built_from],
        _claims(scope, results, entries),
    )


def _figures(scope: Scope) -> Iterable[tuple[int, str, Column, list[tuple[float, _Point]]]]:
    sigmas = [(sigma, _Point(letters, sigma=sigma)) for letters in _LETTERS for sigma in scope.sigmas]
    skews = [
        *((skew, _Point("LCL", skew=skew)) for skew in scope.skews),
        *((skew, _Point("LQL", skew=skew)) for skew in scope.quadratic_skews),
    ]
    counts = [(n, _Point(letters, channels=n)) for letters in _LETTERS for n in _CHANNELS]
    yield 9, "sigma", Column("sigma", Kind.NUMBER, about="threshold scaler"), sigmas
    yield 10, "skew", Column("z", Kind.NUMBER, about="skew of the Zipf distribution"), skews
    yield 11, "channels", Column("channels", Kind.COUNT), [(float(n), point) for n, point in counts]


_CHANNELS = (2, 5, 10, 15, 20, 25, 32)


def _skew_of(point: _Point) -> float:
    return point.skew


def _epsilon(scope: Scope, point: _Point) -> float:
    """A tenth of delta; for a quadratic resource delta is from Eq. 17, before any key is known."""
    linear = _delta(scope, _Point("LLL", point.channels, point.skew, point.sigma))
    return 0.1 * (linear if point.letters == "LCL" else min(linear, math.sqrt(linear / scope.keys)))


def _delta(scope: Scope, point: _Point) -> float:
    listed = Domain(scope.keys, point.skew, 0).heaviest(MOST_LISTED, float(TUPLES_A_KEY * scope.keys))
    return threshold(listed, Resources.parse(point.letters, 1.2, point.sigma), point.channels)


def _mapped(scope: Scope, point: _Point) -> int:
    listed = Domain(scope.keys, point.skew, 0).heaviest(MOST_LISTED, float(TUPLES_A_KEY * scope.keys))
    return len(tracked_keys(listed, Resources.parse(point.letters, 1.2, point.sigma), point.channels))


def _reported(scope: Scope) -> int:
    """The keys that reach delta - epsilon at the defaults."""
    total = float(TUPLES_A_KEY * scope.keys)
    listed = Domain(scope.keys, 1.0, 0).heaviest(MOST_LISTED, total)
    point = _Point("LCL")
    return int(np.count_nonzero(listed.count_low >= (_delta(scope, point) - _epsilon(scope, point)) * total))


def _counters(scope: Scope) -> list[CounterSizes]:
    epsilons: dict[float, set[float]] = {}
    for *_, points in _figures(scope):
        for _, point in points:
            epsilons.setdefault(point.skew, set()).add(_epsilon(scope, point))
    return [
        CounterSizes(scope.keys, skew, seed, scope.rows, tuple(sorted(needed)))
        for skew, needed in epsilons.items()
        for seed in range(scope.seeds)
    ]


def _entries(scope: Scope, results: Results) -> dict[tuple[float, float], tuple[Estimate, Estimate]]:
    """Keys before and after a purge, by skew and error."""
    found: dict[tuple[float, float], tuple[list[float], list[float]]] = {}
    for experiment in _counters(scope):
        for epsilon, (before, after) in zip(experiment.epsilons, results[experiment], strict=True):
            befores, afters = found.setdefault((experiment.skew, epsilon), ([], []))
            befores.append(before)
            afters.append(after)
    return {at: (Estimate.of(before), Estimate.of(after)) for at, (before, after) in found.items()}


_TRUE = (Recipe(Construction.READJ, "LCL"),)


def _lossy(scope: Scope) -> list[BuiltFromLossy]:
    rows = tuple(sorted({scope.rows // 20, scope.rows // 2, scope.rows}))
    return [BuiltFromLossy(scope.keys, seed, CHANNELS, rows) for seed in range(scope.seeds)]


def _true_b(scope: Scope, results: Results) -> list[float]:
    return at_channels(built(scope.chains(_TRUE), results, _TRUE[0]), CHANNELS, b_of("LCL"))


def _lossy_table(scope: Scope, results: Results) -> Table:
    """b and m of readj built from lossy counts."""
    columns = [
        Column("b", Kind.RATIO, about="LCL, measured on the true frequencies"),
        Column("m", Kind.RATIO),
        Column("tracked", Kind.NUMBER, about="pinned keys"),
    ]
    found = [results[experiment] for experiment in _lossy(scope)]
    rows = [
        (runs[0]["rows"], *cells(*(Estimate.of([run[name] for run in runs]) for name in ("b", "m", "tracked"))))
        for runs in zip(*found, strict=True)
    ]
    title = "readj from lossy counts, by number of tuples"
    return Table.from_rows(title, (Column("tuples", Kind.COUNT), *averaged(columns)), rows)


def _claims(
    scope: Scope, results: Results, entries: dict[tuple[float, float], tuple[Estimate, Estimate]]
) -> list[Judged]:
    def half_way(letters: str) -> list[float]:
        """Mean of the keys after a purge and before the next one, seed by seed."""
        epsilon = _epsilon(scope, _Point(letters))
        held = [
            results[each][each.epsilons.index(epsilon)]
            for each in _counters(scope)
            if each.skew == 1.0 and epsilon in each.epsilons
        ]
        return [(before + after) / 2 for before, after in held]

    def teeth(letters: str) -> str:
        before, after = entries[1.0, _epsilon(scope, _Point(letters))]
        return f"{after.mean:,.0f} after a purge and {before.mean:,.0f} before one"

    lossy = [results[experiment][-1] for experiment in _lossy(scope)]
    by_sigma = {sigma: _mapped(scope, _Point("LCL", sigma=sigma)) for sigma in scope.sigmas}
    by_n = [(n, _mapped(scope, _Point("LCL", channels=n))) for n in _CHANNELS]
    by_z = [_mapped(scope, _Point("LCL", skew=skew)) for skew in scope.skews if skew >= 0.5]
    quadratic = [
        _mapped(scope, _Point("LQL", sigma=sigma)) - mapped for sigma, mapped in by_sigma.items() if sigma <= 0.25
    ]
    claims: list[tuple[Claim, Sequence[float]]] = [
        *(
            (
                Claim(
                    "Figure 9",
                    f"The lossy counter holds about {size:,} keys ({letters})",
                    f"about {size:,}",
                    about(size),
                    f"keys held, midway between {teeth(letters)}",
                ),
                half_way(letters),
            )
            for letters, size in (("LCL", 2_500), ("LQL", 50_000))
        ),
        (
            Claim(
                "Figure 9",
                "About 50 keys are pinned at the defaults",
                "around 50",
                about(50),
                "keys that the counter reports: those that reach delta minus its error (section 4.1.2)",
                "Eq. 17 gives fewer, with the error of the counter too",
            ),
            [float(_reported(scope))],
        ),
        (
            Claim(
                "Figure 9",
                "Over the range of sigma between 1 and 500 keys are pinned",
                "1 to 500",
                between(1, 500),
                "largest number of pinned keys over all sigma",
            ),
            [max(by_sigma.values())],
        ),
        (
            Claim(
                "Figure 9",
                "LQL pins as many keys as LCL",
                "the same",
                between(0, 0),
                "the largest difference for sigma up to 0.25",
            ),
            [max(map(abs, quadratic))],
        ),
        (
            Claim(
                "Figure 10",
                "The pinned keys grow faster and faster with the skew",
                "super-linear",
                above(0),
                "lowest second difference of pinned keys per z, from z = 0.5",
            ),
            [_least_bend([skew for skew in scope.skews if skew >= 0.5], by_z)],
        ),
        (
            Claim(
                "Figure 11",
                "The pinned keys grow linearly with the channels",
                "linear",
                above(0.99),
                "R squared of a straight line through pinned keys by N",
            ),
            [_straightness(by_n)],
        ),
        (
            Claim(
                "4.1.2",
                "Lossy counts are as good to build from as true frequencies",
                "implied",
                equal(),
                f"b of readj from lossy counts of {scope.rows:,} tuples over b from true frequencies, LCL",
            ),
            ratios([run["b"] for run in lossy], _true_b(scope, results)),
        ),
    ]
    return [judged(claim, values) for claim, values in claims]


def _least_bend(xs: Sequence[float], ys: Sequence[float]) -> float:
    return float(np.diff(np.diff(ys) / np.diff(xs)).min())


def _straightness(points: Sequence[tuple[float, float]]) -> float:
    return float(np.corrcoef(np.array(points).T)[0, 1] ** 2)
