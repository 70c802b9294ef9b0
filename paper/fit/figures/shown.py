"""Shared names, colors, columns and claims of the FIT figures."""

from collections.abc import Mapping, Sequence
from functools import partial

from adapt.core.table import Column, Kind
from paper import charts, claims
from paper.claims import ONE_RUN, Range
from paper.fit.scope import C_FIT, EXACT, SOLVER, SOLVER_W

LABELS: Mapping[str, str] = {
    SOLVER: "Solver",
    SOLVER_W: "Solver-W",
    C_FIT["paper"]: "C-FIT, paper's cut",
    C_FIT["safe"]: "C-FIT, safe cut",
    C_FIT["guaranteed"]: "C-FIT, guaranteed",
    EXACT: "exact",
}
"""Display names of the planners."""

ORDER = tuple(LABELS.values())
"""Order of planners, which fixes their colors in every chart."""

lines = partial(charts.lines, series="planner", order=ORDER)

judged = partial(claims.judged, runs=ONE_RUN)
"""Judge as one run of the paper."""

READING = Column("reading")
PLANNER = Column("planner")
COSTS = Column("costs", about="costs of the two chains, milliseconds")
SECONDS = Column("time", Kind.SECONDS, about="time to build the plans and their index")
PLANS = Column("plans", Kind.NUMBER, about="plans in the table; for exact, bases found")
WORST = Column("worst error", Kind.SHARE, about="share of the best score, over all random points")
MEAN_ERROR = Column("mean error", Kind.SHARE, about="share of the best score, over points in all directions")
WITHOUT = Column("without plan", Kind.SHARE, about="share of points in all directions")

PLAIN, COMPUTED, REBUILT = "T", "C", "R"
"""Marks of a claim's certainty, explained before the claims."""


def exactly(number: float) -> Range:
    """Range of an exact fraction, up to floating-point rounding."""
    return Range(number - 1e-9, number + 1e-9)


def ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """Ratio of two series, seed by seed."""
    return [one / other for one, other in zip(above, below, strict=True)]


def least(series: Sequence[Sequence[float]]) -> list[float]:
    """Lowest of several series, seed by seed."""
    return [min(values) for values in zip(*series, strict=True)]


def percent(part: float) -> str:
    """A share as a percentage."""
    return f"{100 * part:.3g} %"


def costs(pair: tuple[float, float]) -> str:
    """A pair of Figure 9 as text."""
    return f"{pair[0]:g}, {pair[1]:g}"
