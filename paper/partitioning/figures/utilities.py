"""Figure 7: the five utility functions, in readj and in redist."""

from collections.abc import Sequence

from adapt.core.partitioning.schemes.names import Construction, UtilityName
from adapt.core.table import Column, Table
from paper.claims import Claim, Judged, above, between, equal, judged
from paper.experiments import Experiment, Results
from paper.partitioning.chains import Recipe
from paper.partitioning.figures.grid import B, Chains, M, dots, grid
from paper.partitioning.scope import CHANNELS, Scope, at_channels, b_of, built, differences, m_of, ratios
from paper.report import Shown, section

_CONSTRUCTIONS = (Construction.READJ, Construction.REDIST)
_LETTERS = ("CCL", "LCL", "LLL", "LQL")
_RESOURCES = Column("resources")


def _mapped(letters: str) -> str:
    return "LCL" if letters == "LLL" else letters


def _recipes() -> tuple[Recipe, ...]:
    return tuple(
        Recipe(construction, letters, utility=utility)
        for construction in _CONSTRUCTIONS
        for letters in _LETTERS
        if letters != "LLL"
        for utility in UtilityName
    )


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Chains by utility function."""
    return scope.chains(_recipes())


def shown(scope: Scope, results: Results) -> Shown:
    """b and m by utility and combination."""
    experiments = scope.chains(_recipes())
    chains = {
        (recipe.construction, recipe.letters, recipe.utility): built(experiments, results, recipe)
        for recipe in _recipes()
    }
    charts, tables = [], []
    for construction in _CONSTRUCTIONS:
        parts = [
            grid(
                "",
                _RESOURCES,
                [(utility.value, letters, chains[construction, _mapped(letters), utility]) for utility in UtilityName],
                {B: b_of(letters), M: m_of(letters[0])},
            )
            for letters in _LETTERS
        ]
        columns = [Column("utility"), *parts[0].columns[1:]]
        table = Table.from_rows(f"Figure 7: {construction}", columns, [row for part in parts for row in part.rows])
        tables.append(table)
        for what, column, log_y in (("Balance", "b", True), ("Migration", "m", False)):
            charts.append(
                dots(
                    f"{what} of {construction} by utility",
                    f"{column} at 10 channels with each utility function, with 95 % intervals. Dashed: the ideal.",
                    table,
                    "resources",
                    column,
                    "utility",
                    log_y=log_y,
                    mark=1.0,
                )
            )
    said = (
        "How balance (rho) and migration (gamma) are combined: A is rho alone, P adds, T multiplies, L takes the"
        " logarithm of migration."
    )
    return section("Figure 7: utility function", [said], charts, tables, _claims(chains))


_Key = tuple[Construction, str, UtilityName]
_WHY_APART = (
    "it is unknown which reading of Eq. 20 the paper used: with its exponent kept at 1/3 without constants, migration "
    "would weigh more"
)


def _claims(chains: dict[_Key, Chains]) -> list[Judged]:
    def b(construction: Construction, letters: str, utility: UtilityName) -> list[float]:
        return at_channels(chains[construction, _mapped(letters), utility], CHANNELS, b_of(letters))

    def m(construction: Construction, letters: str, utility: UtilityName) -> list[float]:
        return at_channels(chains[construction, _mapped(letters), utility], CHANNELS, m_of(letters[0]))

    readj, redist = Construction.READJ, Construction.REDIST
    a, apm, aplm, atm, atlm = UtilityName
    others = [max(values) for values in zip(*(m(readj, "LCL", each) for each in (apm, aplm, atm, atlm)), strict=True)]
    multiplied = [min(values) for values in zip(b(redist, "LQL", atm), b(redist, "LQL", atlm), strict=True)]
    claims = [
        (
            Claim(
                "Figure 7",
                "readj, LCL: U_A migrates most",
                "most",
                above(0),
                "m with U_A minus the highest of the others",
            ),
            differences(m(readj, "LCL", a), others),
        ),
        (
            Claim(
                "Figure 7",
                "readj, LCL: U_APLM migrates less than U_APM",
                "less",
                above(0),
                "m with U_APM minus m with U_APLM",
                _WHY_APART,
            ),
            differences(m(readj, "LCL", apm), m(readj, "LCL", aplm)),
        ),
        (
            Claim(
                "Figure 7",
                "readj: utilities hardly differ in b, except for LQL",
                "almost no difference",
                equal(),
                "b with U_A over b with U_APM, LCL",
            ),
            ratios(b(readj, "LCL", a), b(readj, "LCL", apm)),
        ),
        (
            Claim(
                "Figure 7",
                "redist, LQL: U_APM and U_APLM are up to 3 times better balanced",
                "3",
                between(2.5, 3.5, departs=1),
                "the better b of U_ATM and U_ATLM over b of U_APM",
                "it is better balanced, but by another factor",
            ),
            ratios(multiplied, b(redist, "LQL", apm)),
        ),
        *(
            (
                Claim(
                    "Figure 7",
                    f"redist, {letters}: U_ATM migrates 35 to 40 % less than U_APM",
                    "35 to 40 %",
                    between(0.35, 0.40, departs=0),
                    "1 minus the ratio of both m",
                    "it is less, but by another share",
                ),
                [1 - ratio for ratio in ratios(m(redist, letters, atm), m(redist, letters, apm))],
            )
            for letters in ("LCL", "LQL")
        ),
        *(
            (
                Claim(
                    "Figure 7",
                    f"redist, {letters}: U_APLM migrates 30 to 35 % more than U_APM",
                    "30 to 35 %",
                    between(0.30, 0.35, departs=0),
                    "the ratio of both m, minus 1",
                    _WHY_APART,
                ),
                [ratio - 1 for ratio in ratios(m(redist, letters, aplm), m(redist, letters, apm))],
            )
            for letters in ("LCL", "LQL")
        ),
    ]
    return [judged(claim, values) for claim, values in claims]
