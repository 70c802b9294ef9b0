"""The loop itself: counted, not known, frequencies; changing N and changing keys."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from adapt.core.partitioning.schemes.names import Construction
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, below, judged
from paper.estimates import Estimate
from paper.experiments import Experiment, Results
from paper.partitioning.chains import Recipe
from paper.partitioning.figures.grid import B, M, lines
from paper.partitioning.loops import AFTER, LETTERS, LoopRan
from paper.partitioning.measured import ChainsBuilt
from paper.partitioning.scope import CHANNELS, PAPERS_OWN, Scope, at_channels, b_of, built, estimate, m_of, ratios
from paper.report import Shown, averaged, cells, section

_PERIOD = Column("period", Kind.COUNT, about=f"from 1; N grows to {CHANNELS}, then the hot keys change once")
_N = Column("channels", Kind.COUNT)

_Periods: TypeAlias = Sequence[Sequence[Sequence[Any]]]
"""N, b and m by seed and period."""


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Loops by construction, and the chains on known frequencies."""
    return [*(each for construction in PAPERS_OWN for each in _loops(scope, construction)), *_chains(scope)]


def shown(scope: Scope, results: Results) -> Shown:
    """b and m by period."""
    of = {each: [results[loop] for loop in _loops(scope, each)] for each in PAPERS_OWN}
    rows = [
        (construction.value, period + 1, int(of_seeds[0][period][0]), *cells(*_estimates(of_seeds, period)))
        for construction, of_seeds in of.items()
        for period in range(CHANNELS + 1 + AFTER)
    ]
    table = Table.from_rows("The loop", [Column("scheme"), _PERIOD, _N, *averaged([B, M])], rows)
    charts = [
        lines("Balance of the loop", "b of each period, with 95 % bands.", table, "period", "b", mark=1.0),
        lines("Migration of the loop", "m at the start of it, with 95 % bands.", table, "period", "m", mark=1.0),
    ]
    said = (
        f"The figures before use known frequencies. Here a sliding lossy counter sees the last {_rows(scope):,} tuples,"
        " or up to half as many more, and the splitter adopts a plan when N changes or the counted imbalance exceeds"
        f" the tolerance. From period {CHANNELS + 1} on, other keys are hot."
    )
    return section("Sections 3 and 4.1: the loop", [said], charts, [table], _claims(scope, results, of))


def _rows(scope: Scope) -> int:
    """W, a constant factor of |D|."""
    return scope.keys


def _loops(scope: Scope, construction: Construction) -> list[LoopRan]:
    return [LoopRan(scope.keys, 1.0, seed, construction, CHANNELS, _rows(scope)) for seed in range(scope.seeds)]


def _chains(scope: Scope) -> list[ChainsBuilt]:
    return scope.chains(tuple(Recipe(each, LETTERS) for each in PAPERS_OWN), seeds=scope.seeds)


def _estimates(of_seeds: _Periods, period: int) -> list[Estimate | None]:
    """Estimates of b and m."""
    return [estimate([seed[period][at] for seed in of_seeds if seed[period][at] is not None]) for at in (1, 2)]


def _claims(scope: Scope, results: Results, of: Mapping[Construction, _Periods]) -> list[Judged]:
    found = []
    for construction in PAPERS_OWN:
        chains = built(_chains(scope), results, Recipe(construction, LETTERS))
        known_b, known_m = at_channels(chains, CHANNELS, b_of(LETTERS)), at_channels(chains, CHANNELS, m_of("L"))
        counted_b, counted_m = ([seed[CHANNELS - 1][at] for seed in of[construction]] for at in (1, 2))
        last, struck = ([seed[at][1] for seed in of[construction]] for at in (-1, CHANNELS))
        found += [
            (
                Claim(
                    "Section 4.1.2",
                    f"Lossy counts serve {construction} as well as known frequencies",
                    "as well",
                    below(1.1),
                    f"b of the loop at N = {CHANNELS} over that of Figure 3's chain; a tenth more counts as as well",
                ),
                ratios(counted_b, known_b),
            ),
            (
                Claim(
                    "Section 3.3",
                    f"... with no more migration ({construction})",
                    "no more",
                    below(1.1),
                    f"m of the loop's step to N = {CHANNELS} over that of the chain",
                ),
                ratios(counted_m, known_m),
            ),
            (
                Claim(
                    "Section 2",
                    f"The next plans of {construction} repair the balance after the frequencies change",
                    "repaired",
                    below(1.0),
                    f"b {AFTER} periods after the hot keys changed over that of the period in which they changed",
                ),
                ratios(last, struck),
            ),
        ]
    return [judged(claim, values) for claim, values in found]
