"""Table 1's range of alpha, which no figure varies."""

from collections.abc import Sequence

from adapt.core.table import Column, Kind
from paper.experiments import Experiment, Results
from paper.partitioning.chains import Recipe
from paper.partitioning.figures.grid import M, grid, lines
from paper.partitioning.measured import ChainsBuilt
from paper.partitioning.scope import CHANNELS, PAPERS_OWN, Scope, built, m_of
from paper.report import Shown, section

_ALPHA = Column("alpha", Kind.NUMBER, about="tolerated load of the busiest channel over the least busy")
_TRACKED = Column("tracked", Kind.COUNT, about="pinned keys at N = 10")
_R = Column("r", Kind.RATIO, about="linear load, busiest channel over least busy")


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Chains by alpha."""
    return [each for alpha in scope.alphas for each in _experiments(scope, alpha)]


def shown(scope: Scope, results: Results) -> Shown:
    """r and m by alpha."""
    chains = []
    for alpha in scope.alphas:
        for recipe in _recipes(alpha):
            steps = built(_experiments(scope, alpha), results, recipe)
            chains.append((recipe.construction.value, (alpha, steps[0][CHANNELS - 1].pinned_keys), steps))
    table = grid("Table 1: tolerance", (_ALPHA, _TRACKED), chains, {_R: lambda step: step.r["L"], M: m_of("L")})
    charts = [
        lines(
            "Balance by tolerance",
            "r of the linear load (not b, which alpha divides), with 95 % bands.",
            table,
            "alpha",
            "r",
            log_x=True,
        ),
        lines(
            "Migration by tolerance",
            "m, with 95 % bands. Dashed: the ideal.",
            table,
            "alpha",
            "m",
            log_x=True,
            mark=1.0,
        ),
    ]
    said = (
        "Together with sigma, the tolerance sets the number of tracked keys, and the weight of balance against "
        "migration. At alpha = 1, delta is 0 and every key would be tracked, so the range begins slightly above."
    )
    return section("Table 1: imbalance tolerance", [said], charts, [table])


def _recipes(alpha: float) -> tuple[Recipe, ...]:
    return tuple(Recipe(construction, alpha=alpha) for construction in PAPERS_OWN)


def _experiments(scope: Scope, alpha: float) -> list[ChainsBuilt]:
    return scope.chains(_recipes(alpha))
