"""Figure 8: growing domains."""

from collections.abc import Mapping, Sequence

from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.table import Column, Kind
from paper.claims import Claim, Judged, above, below, between, judged, printed
from paper.experiments import Experiment, Results
from paper.partitioning.chains import Recipe
from paper.partitioning.figures.grid import DRAWN, B, Chains, M, grid, label, lines
from paper.partitioning.measured import ChainsBuilt
from paper.partitioning.scope import (
    CHANNELS,
    LEVEL,
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

_KEYS = Column("keys", Kind.COUNT, about="|D|")
_RECIPES = (*(Recipe(construction) for construction in PAPERS_OWN), LEVEL)


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs of hashing and chains over every domain, large ones in parts."""
    uniform = [
        part
        for keys, seeds in scope.domains
        for seed in range(seeds)
        for part in scope.hashed(Scheme.UNIFORM, seed, keys)
    ]
    return [*(each for keys, seeds in scope.domains for each in _experiments(scope, keys, seeds)), *uniform]


def shown(scope: Scope, results: Results) -> Shown:
    """b and m by |D|."""
    of = {keys: _chains(scope, results, keys, seeds) for keys, seeds in scope.domains}
    table = grid(
        "Figure 8: domain size",
        _KEYS,
        [(name, keys, steps) for keys, chains in of.items() for name, steps in chains.items()],
        {B: b_of("LCL"), M: m_of("L")},
    )
    drawn = (*DRAWN, "level, 1,000 keys")
    charts = [
        lines(
            "Balance by domain size",
            "b (LCL) at 10 channels, with 95 % bands. Dashed: the ideal.",
            table,
            "keys",
            "b",
            log_x=True,
            mark=1.0,
            only=drawn,
        ),
        lines(
            "Migration by domain size",
            "m of the step from 9 to 10 channels, with 95 % bands. Dashed: the ideal.",
            table,
            "keys",
            "m",
            log_x=True,
            log_y=True,
            mark=1.0,
            only=drawn,
        ),
    ]
    most = max(scope.domains)
    said = (
        "Zipf z = 1, LCL. Every key of every domain is hashed and counted; a domain is summed in blocks of 2^20 ranks "
        f"by Spark tasks, in the memory of one block. The largest has {most[0]:,} keys ({most[1]}"
        " seeds)."
    )
    return section("Figure 8: domain size", [said], charts, [table], _claims(of))


def _experiments(scope: Scope, keys: int, seeds: int) -> list[ChainsBuilt]:
    return scope.chains(_RECIPES, keys=keys, seeds=seeds)


def _chains(scope: Scope, results: Results, keys: int, seeds: int) -> dict[str, Chains]:
    experiments = _experiments(scope, keys, seeds)
    hashes = {
        scheme.value: hashed(scope, results, scheme, keys=keys, seeds=seeds)
        for scheme in (Scheme.UNIFORM, Scheme.CONSISTENT)
    }
    return {**hashes, **{label(recipe): built(experiments, results, recipe) for recipe in _RECIPES}}


def _claims(of: Mapping[int, Mapping[str, Chains]]) -> list[Judged]:
    sizes = list(of)[:4]
    least, most = sizes[0], sizes[-1]

    def b(keys: int, scheme: str) -> list[float]:
        return at_channels(of[keys][scheme], CHANNELS, b_of("LCL"))

    def m(keys: int, scheme: str) -> list[float]:
        return at_channels(of[keys][scheme], CHANNELS, m_of("L"))

    def worst_m(keys: int) -> list[float]:
        return [max(values) for values in zip(*(m(keys, name) for name in PAPERS_OWN), strict=True)]

    pairs = list(zip(b(least, "readj"), b(sizes[1], "readj"), b(sizes[-2], "readj"), b(most, "readj"), strict=True))
    claims = [
        *(
            (
                Claim(
                    "Figure 8",
                    f"Uniform hashing migrates 6.5 to 7.5 times the ideal ({keys:,} keys)",
                    "6.5 to 7.5",
                    between(6.5, 7.5),
                    "m",
                    "a new modulus moves all but 1/N of the keys, which is N - 1 = 9 times the ideal",
                ),
                m(keys, "uniform"),
            )
            for keys in (least, most)
        ),
        (
            Claim(
                "Figure 8",
                "Larger domains are easier to balance",
                "falls",
                above(0),
                f"b of readj over {least:,} keys minus b over {most:,}",
                "small domains vary widely by seed",
            ),
            [first - last for first, _, _, last in pairs],
        ),
        (
            Claim(
                "Figure 8",
                "The fall of b flattens",
                "flattens",
                above(0),
                "the first drop of b of readj minus the last",
                "small domains vary widely by seed",
            ),
            [(first - second) - (third - last) for first, second, third, last in pairs],
        ),
        (
            Claim(
                "Figure 8",
                "No scheme of the paper reaches b = 1",
                "> 1",
                above(1),
                f"the lowest b of the paper's three, {most:,} keys",
            ),
            [min(values) for values in zip(*(b(most, name) for name in PAPERS_OWN), strict=True)],
        ),
        (
            Claim(
                "Figure 8",
                "redist is up to 3 % above readj in b",
                "1.03",
                printed("1.03", departs=1),
                f"b of redist over b of readj, {most:,} keys",
                "the two differ by less than their spread over seeds",
            ),
            ratios(b(most, "redist"), b(most, "readj")),
        ),
        (
            Claim(
                "Figure 8",
                "Consistent hashing migrates less than the ideal",
                "< 1",
                below(1),
                f"m, {most:,} keys",
                "it depends on whether a hot key moves; its mean is 1",
            ),
            m(most, "consistent"),
        ),
        (
            Claim(
                "Figure 8",
                "Migration of the paper's three falls with the domain",
                "falls",
                above(0),
                f"highest m of the three over {least:,} keys minus that over {most:,}",
                "it varies more by seed, most of all for small domains, than it falls",
            ),
            differences(worst_m(least), worst_m(most)),
        ),
        (
            Claim(
                "Figure 8",
                f"Migration of the paper's three is up to 2.2 over {least:,} keys",
                "2.2",
                printed("2.2", departs=1),
                "highest m of the three",
                "it is above the ideal, but less so than reported",
            ),
            worst_m(least),
        ),
        (
            Claim(
                "Figure 8",
                f"Migration of the paper's three is from 1.25 over {most:,} keys",
                "1.25",
                printed("1.25", departs=1),
                "highest m of the three",
                "it is above the ideal, but less so than reported",
            ),
            worst_m(most),
        ),
    ]
    return [judged(claim, values) for claim, values in claims]
