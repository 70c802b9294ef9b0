"""Figure 5: the threshold scaler sigma."""

from collections.abc import Mapping, Sequence

from adapt.core.partitioning.schemes.names import Construction, Scheme
from adapt.core.table import Column, Kind
from paper.claims import Claim, Judged, above, judged
from paper.experiments import Experiment, Results
from paper.partitioning.chains import Recipe
from paper.partitioning.figures.grid import B, Chains, M, grid, lines
from paper.partitioning.measured import ChainsBuilt
from paper.partitioning.scope import CHANNELS, PAPERS_OWN, Scope, at_channels, b_of, built, differences, hashed, m_of
from paper.report import Shown, section

SIGMA = Column("sigma", Kind.NUMBER, about="share of the tolerated imbalance left to the untracked keys")
_TRACKED = Column("tracked", Kind.COUNT, about="pinned keys at N = 10")
_LEAST, _USUAL = 0.008, 0.1

_MAPPED = {"LCL": (*PAPERS_OWN, Construction.UNLOCKED), "LQL": PAPERS_OWN}


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Chains by sigma.

    readj with quadratic computation is slow with many tracked keys.
    """
    return [each for sigma in scope.sigmas for each in _experiments(scope, sigma)]


def shown(scope: Scope, results: Results) -> Shown:
    """b and m by sigma, for two combinations."""
    of = {letters: _by_sigma(scope, results, letters) for letters in _MAPPED}
    hashes = {scheme.value: hashed(scope, results, scheme) for scheme in (Scheme.UNIFORM, Scheme.CONSISTENT)}
    charts, tables = [], []
    for letters, by_sigma in of.items():
        table = grid(
            f"Figure 5: {letters}",
            (SIGMA, _TRACKED),
            [
                *(
                    (name, (sigma, 0), steps)
                    for sigma in (min(by_sigma), max(by_sigma))
                    for name, steps in hashes.items()
                ),
                *(
                    (name, (sigma, steps[0][CHANNELS - 1].pinned_keys), steps)
                    for sigma, chains in by_sigma.items()
                    for name, steps in chains.items()
                ),
            ],
            {B: b_of(letters), M: m_of("L")},
            note="Uniform and consistent hashing track no keys at any sigma.",
        )
        tables.append(table)
        charts += [
            lines(
                f"Balance by sigma, {letters}",
                "b at 10 channels, with 95 % bands; fewer keys are tracked to the right. Dashed: the ideal.",
                table,
                "sigma",
                "b",
                log_x=True,
                log_y=letters == "LQL",
                mark=1.0,
            ),
            lines(
                f"Migration by sigma, {letters}",
                "m of the step from 9 to 10 channels, with 95 % bands; uniform hashing, near 9, is not shown.",
                table,
                "sigma",
                "m",
                log_x=True,
                mark=1.0,
                only=("consistent", *_MAPPED[letters]),
            ),
        ]
    said = (
        "As in Figure 3, with more or fewer tracked keys. unlocked, which is not in the paper, is readj that "
        "continues where ties at the least busy channels stop it."
    )
    return section("Figure 5: frequency threshold scaler", [said], charts, tables, _claims(of))


def _recipes(scope: Scope, sigma: float) -> tuple[Recipe, ...]:
    return tuple(
        Recipe(construction, letters, sigma=sigma)
        for letters, constructions in _MAPPED.items()
        for construction in constructions
        if sigma in _sigmas(scope, letters)
    )


def _sigmas(scope: Scope, letters: str) -> tuple[float, ...]:
    return scope.quadratic_sigmas if letters == "LQL" else scope.sigmas


def _experiments(scope: Scope, sigma: float) -> list[ChainsBuilt]:
    return scope.chains(_recipes(scope, sigma))


_BySigma = Mapping[float, Mapping[str, Chains]]


def _by_sigma(scope: Scope, results: Results, letters: str) -> dict[float, dict[str, Chains]]:
    return {
        sigma: {
            recipe.construction.value: built(_experiments(scope, sigma), results, recipe)
            for recipe in _recipes(scope, sigma)
            if recipe.letters == letters
        }
        for sigma in _sigmas(scope, letters)
    }


def _claims(of: Mapping[str, _BySigma]) -> list[Judged]:
    def b(sigma: float, scheme: str, letters: str = "LCL") -> list[float]:
        return at_channels(of[letters][sigma][scheme], CHANNELS, b_of(letters))

    def m(sigma: float, scheme: str) -> list[float]:
        return at_channels(of["LCL"][sigma][scheme], CHANNELS, m_of("L"))

    jump = [value / before for value, before in zip(b(0.5, "redist", "LQL"), b(0.25, "redist", "LQL"), strict=True)]
    claims = [
        *(
            (
                Claim(
                    "Figure 5",
                    f"A lower sigma lowers b of {name} (LCL)",
                    "lower",
                    above(0),
                    f"b at sigma {_USUAL:g} minus b at {_LEAST:g}",
                    "see the claim on readj at very low sigma" if name == "readj" else "",
                ),
                differences(b(_USUAL, name), b(_LEAST, name)),
            )
            for name in ("scan", "redist")
        ),
        *(
            (
                Claim(
                    "Figure 5",
                    f"A lower sigma raises m of {name} (LCL)",
                    "higher",
                    above(0),
                    f"m at sigma {_LEAST:g} minus m at {_USUAL:g}",
                ),
                differences(m(_LEAST, name), m(_USUAL, name)),
            )
            for name in ("scan", "redist")
        ),
        (
            Claim(
                "Figure 5",
                "At very low sigma readj cannot keep b low (LCL)",
                "above redist",
                above(0),
                f"b of readj minus b of redist, sigma {_LEAST:g}",
            ),
            differences(b(_LEAST, "readj"), b(_LEAST, "redist")),
        ),
        (
            Claim(
                "Figure 5",
                "In the mid-range of sigma readj is slightly better balanced (LCL)",
                "slightly lower",
                above(0),
                f"b of redist minus b of readj, sigma {_USUAL:g}",
                "the two differ by less than their spread over seeds",
            ),
            differences(b(_USUAL, "redist"), b(_USUAL, "readj")),
        ),
        (
            Claim(
                "Figure 5",
                "LQL: b jumps between sigma 0.25 and 0.5",
                "jumps",
                above(1.25),
                "b of redist at sigma 0.5 over that at 0.25; a quarter more counts as a jump",
            ),
            jump,
        ),
    ]
    return [judged(claim, values) for claim, values in claims]
