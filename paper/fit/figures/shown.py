"""What the figures of FIT have in common: names of planners, their colours, columns, and claims."""

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
"""How each planner is named."""

ORDER = tuple(LABELS.values())
"""In every chart a planner has the colour of its place here."""

lines = partial(charts.lines, series="planner", order=ORDER)

judged = partial(claims.judged, runs=ONE_RUN)
"""Judged as one run of the paper."""

READING = Column("reading")
PLANNER = Column("planner")
COSTS = Column("costs", about="of the two chains, milliseconds")
SECONDS = Column("time", Kind.SECONDS, about="to make the plans and their index")
PLANS = Column("plans", Kind.NUMBER, about="in the table; of exact, bases that it found")
WORST = Column("worst error", Kind.SHARE, about="of the best score, over all points that were drawn")
MEAN_ERROR = Column("mean error", Kind.SHARE, about="of the best score, over points of all directions")
WITHOUT = Column("without plan", Kind.SHARE, about="of points of all directions")

PLAIN, COMPUTED, REBUILT = "T", "C", "R"
"""Marks of how sure a claim is; explained before all claims."""


def exactly(number: float) -> Range:
    """A number that is given as a fraction, up to the rounding of floats."""
    return Range(number - 1e-9, number + 1e-9)


def ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """One over the other, seed by seed."""
    return [one / other for one, other in zip(above, below, strict=True)]


def least(series: Sequence[Sequence[float]]) -> list[float]:
    """The least of several numbers, seed by seed."""
    return [min(values) for values in zip(*series, strict=True)]


def percent(part: float) -> str:
    """A part of a whole, in words."""
    return f"{100 * part:.3g} %"


def costs(pair: tuple[float, float]) -> str:
    """A pair of Figure 9, in words."""
    return f"{pair[0]:g}, {pair[1]:g}"
