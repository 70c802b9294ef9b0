"""Figure 4: the five schemes by skew."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from adapt.core.partitioning.schemes.names import Construction, Scheme
from adapt.core.table import Column, Kind
from paper.claims import Claim, Judged, above, between, equal, judged
from paper.experiments import Experiment, Results
from paper.partitioning.chains import Recipe
from paper.partitioning.figures.grid import DRAWN, B, Chains, M, grid, label, lines
from paper.partitioning.measured import ChainsBuilt
from paper.partitioning.scope import (
    CHANNELS,
    PAPERS_OWN,
    Scope,
    at_channels,
    b_of,
    built,
    differences,
    hashed,
    m_of,
    ratios,
)
from paper.report import Shown, section

_Z = Column("z", Kind.NUMBER, about="skew of the Zipf distribution")

_RECIPES = (
    *(Recipe(construction, letters) for letters in ("LCL", "LQL") for construction in PAPERS_OWN),
    *(Recipe(Construction.LEVEL, letters, track=1000) for letters in ("LCL", "LQL")),
)

_LOW = 0.5
"""Highest z of low skew."""


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs of hashing and chains by skew."""
    uniform = [
        part
        for skew in _skews(scope)
        for seed in range(scope.seeds)
        for part in scope.hashed(Scheme.UNIFORM, seed, skew=skew)
    ]
    return [*(each for skew in _skews(scope) for each in _experiments(scope, skew)), *uniform]


def shown(scope: Scope, results: Results) -> Shown:
    """b and m by z, for three combinations."""
    charts, tables = [], []
    of = {
        letters: {skew: _chains(scope, results, letters, skew) for skew in skews}
        for letters, skews in (("LCL", scope.skews), ("LLL", scope.skews), ("LQL", scope.quadratic_skews))
    }
    for letters, by_skew in of.items():
        table = grid(
            f"Figure 4: {letters}",
            _Z,
            [(name, skew, steps) for skew, chains in by_skew.items() for name, steps in chains.items()],
            {B: b_of(letters), M: m_of("L")},
        )
        tables.append(table)
        drawn = (*DRAWN, "level, 1,000 keys")
        charts.append(
            lines(
                f"Balance by skew, {letters}",
                "b at 10 channels, with 95 % bands. Dashed: the ideal.",
                table,
                "z",
                "b",
                mark=1.0,
                only=drawn,
            )
        )
        if letters != "LLL":
            charts.append(
                lines(
                    f"Migration by skew, {letters}",
                    "m of the step from 9 to 10 channels, with 95 % bands; uniform hashing, near 9, is not shown."
                    + (" LLL has the same." if letters == "LCL" else ""),
                    table,
                    "z",
                    "m",
                    mark=1.0,
                    only=[name for name in drawn if name != "uniform"],
                )
            )
    said = "As in Figure 3, over domains of other skews with the same keys, which have the same places on the ring."
    return section("Figure 4: data skew", [said], charts, tables, _claims(of))


def _skews(scope: Scope) -> list[float]:
    return sorted({*scope.skews, *scope.quadratic_skews})


def _experiments(scope: Scope, skew: float) -> list[ChainsBuilt]:
    return scope.chains(_RECIPES, skew=skew)


def _chains(scope: Scope, results: Results, letters: str, skew: float) -> dict[str, Chains]:
    experiments, mapped = _experiments(scope, skew), "LQL" if letters == "LQL" else "LCL"
    hashes = {scheme.value: hashed(scope, results, scheme, skew=skew) for scheme in (Scheme.UNIFORM, Scheme.CONSISTENT)}
    recipes = [recipe for recipe in _RECIPES if recipe.letters == mapped]
    return {**hashes, **{label(recipe): built(experiments, results, recipe) for recipe in recipes}}


_BySkew = Mapping[float, Mapping[str, Chains]]


def _claims(of: Mapping[str, _BySkew]) -> list[Judged]:
    lcl, lll, lql = of["LCL"], of["LLL"], of["LQL"]

    def b(by_skew: _BySkew, skew: float, scheme: str, letters: str) -> list[float]:
        return at_channels(by_skew[skew][scheme], CHANNELS, b_of(letters))

    def m(skew: float, scheme: str) -> list[float]:
        return at_channels(lcl[skew][scheme], CHANNELS, m_of("L"))

    low = [skew for skew in lll if skew <= _LOW]
    claims = [
        *(
            (
                Claim(
                    "Figure 4",
                    f"Migration of {name} rises once z passes 0.8",
                    "rises",
                    above(0),
                    "m at z = 1 minus m at z = 0.8",
                    "the rise is smaller than its spread over seeds",
                ),
                differences(m(1.0, name), m(0.8, name)),
            )
            for name in PAPERS_OWN
        ),
        *(
            (
                Claim(
                    "Figure 4",
                    f"At z = 1 {more} migrates more than {less}",
                    f"{more} > {less}",
                    above(0),
                    f"m of {more} minus m of {less}, z = 1",
                    "the three differ by less than their spread over seeds"
                    if more == "scan"
                    else "readj weighs each move against the current mapping, and moves less than the other two",
                ),
                differences(m(1.0, more), m(1.0, less)),
            )
            for more, less in pairwise(("scan", "readj", "redist"))
        ),
        (
            Claim(
                "Figure 4",
                "Consistent hashing is the first to pass b = 1 as skew grows (LLL)",
                "first",
                above(0),
                "z at which the next one passes 1, minus that of consistent hashing, interpolated linearly",
                "over the seeds, uniform hashing passes 1 about as early",
            ),
            [min(others) - first for first, others in _crossings(lll)],
        ),
        (
            Claim(
                "Figure 4",
                "At z = 1 consistent hashing is up to 50 % above readj (LLL)",
                "1.5",
                between(1.45, 1.55, departs=1),
                "b of consistent hashing over b of readj, z = 1",
                "it is above, but by another share",
            ),
            ratios(b(lll, 1.0, "consistent", "LLL"), b(lll, 1.0, "readj", "LLL")),
        ),
        (
            Claim(
                "Figure 4",
                "At low skew uniform hashing is the best balanced (LLL)",
                "best",
                above(1),
                f"b of the best of the others over b of uniform hashing, mean over z up to {_LOW:g}",
            ),
            _mean([ratios(_best(b, lll, skew), b(lll, skew, "uniform", "LLL")) for skew in low]),
        ),
        (
            Claim(
                "Figure 4",
                "At low skew all are below the ideal line (LLL)",
                "< 1",
                above(0),
                f"1 minus the largest b of the five schemes at z = {max(low):g}",
                "as z nears 0.5 the worst of five schemes is sometimes above 1",
            ),
            [1 - max(values) for values in zip(*(b(lll, max(low), name, "LLL") for name in DRAWN), strict=True)],
        ),
        (
            Claim(
                "Figure 4",
                "LQL, z 0.25 to 0.5: readj's b is 1 to 2 % above the others of the paper's three",
                "1.01 to 1.02",
                between(1.005, 1.025, departs=1),
                "mean b of readj over b of scan, over z",
                "the difference is smaller than its spread over seeds",
            ),
            _mean([ratios(b(lql, skew, "readj", "LQL"), b(lql, skew, "scan", "LQL")) for skew in lql]),
        ),
        (
            Claim(
                "Figure 4",
                "LQL: b of scan and redist are almost identical",
                "equal",
                equal(),
                "mean b of redist over b of scan, over z",
            ),
            _mean([ratios(b(lql, skew, "redist", "LQL"), b(lql, skew, "scan", "LQL")) for skew in lql]),
        ),
    ]
    return [judged(claim, values) for claim, values in claims]


def _best(b, by_skew: _BySkew, skew: float) -> list[float]:  # type: ignore[no-untyped-def]
    """b of the best of all but uniform hashing, seed by seed."""
    names = [name for name in DRAWN if name != "uniform"]
    return [min(values) for values in zip(*(b(by_skew, skew, name, "LLL") for name in names), strict=True)]


def _mean(of_points: Sequence[Sequence[float]]) -> list[float]:
    """The mean over points, seed by seed."""
    return [sum(values) / len(values) for values in zip(*of_points, strict=True)]


def _crossings(by_skew: _BySkew) -> list[tuple[float, list[float]]]:
    """The z at which b passes 1, for consistent hashing and the others, by seed; else the last z."""
    zs = list(by_skew)
    curves = {name: [at_channels(by_skew[z][name], CHANNELS, b_of("LLL")) for z in zs] for name in DRAWN}
    found = []
    for seed in range(len(curves["uniform"][0])):
        of = {name: _crossing(zs, [values[seed] for values in curve]) for name, curve in curves.items()}
        found.append((of["consistent"], [at for name, at in of.items() if name != "consistent"]))
    return found


def _crossing(zs: Sequence[float], curve: Sequence[float]) -> float:
    """First point at which a piecewise linear curve reaches 1."""
    if curve[0] >= 1:
        return zs[0]
    for (z, b), (next_z, next_b) in pairwise(zip(zs, curve, strict=True)):
        if next_b >= 1:
            return z + (1 - b) / (next_b - b) * (next_z - z)
    return zs[-1]
