"""Names of planners, operators and grids, with no heavy imports."""

from enum import StrEnum


class DropPlanner(StrEnum):
    """How the drop rate of each arc is chosen."""

    NONE = "none"
    """Do nothing: drop no tuple."""
    PROPORTIONAL = "proportional"
    """Keep the same share of every input, as large as fits."""
    GREEDY_LOCAL = "greedy-local"
    """Every node drops what is worth least to it, without knowledge of other nodes."""
    LP = "lp"
    """The best plan, by one linear program per point."""
    SOLVER = "solver"
    """Precomputed best plans for the corners of regions of rates, as in the paper."""
    SOLVER_W = "solver-w"
    """Like solver, with more regions where rates are likely."""
    C_FIT = "c-fit"
    """Feasible input tables, merged from the leaves to the inputs at a coordinator."""
    D_FIT = "d-fit"
    """The same tables, built by each node from its neighbors' messages; each node plans for itself."""
    D_FIT_CUTS = "d-fit-cuts"
    """Like d-fit, with linear score bounds instead of tables: the best plan, with few rows to send."""
    EXACT = "exact"
    """The best plan, by reuse of bases that were optimal before."""


PRECOMPUTED = (DropPlanner.SOLVER, DropPlanner.SOLVER_W, DropPlanner.C_FIT, DropPlanner.D_FIT)
"""Planners with precomputed tables: one for the network, or with d-fit one per node."""


class OperatorKind(StrEnum):
    """What an operator does with tuples, as far as load is concerned."""

    MAP = "map"
    FILTER = "filter"
    UNION = "union"
    JOIN = "join"
    AGGREGATE = "aggregate"
    DELAY = "delay"


class Grid(StrEnum):
    """Which rates the table of a leaf covers."""

    PAPER = "paper"
    """Spacing by the largest rates, without the feasibility triangle. Some points get no plan."""
    SAFE = "safe"
    """The same spacing; rates within a cell of the triangle's edge are kept."""
    GUARANTEED = "guaranteed"
    """Fine enough that no point loses more than epsilon, or safe where that does not fit. Where the table of c-fit
    cannot promise epsilon, the best plan takes its place."""


class RateSteps(StrEnum):
    """Distances between the rates in the table of a leaf."""

    FIXED = "fixed"
    """Equal distances."""
    RELATIVE = "relative"
    """Equal ratios: lines are dense at low rates."""


class Drops(StrEnum):
    """What is dropped before aggregates; elsewhere, random tuples are."""

    RANDOM = "random"
    """Random tuples; windows aggregate the rest."""
    WINDOW = "window"
    """Whole windows; every result emitted covers all its tuples."""


BATCH = 100
"""Consecutive windows kept or dropped together: the longest gap between results that readers accept."""


class Flow(StrEnum):
    """How a network is simulated."""

    TUPLES = "tuples"
    """Tuple by tuple, with random drops and a queue at every node."""
    FLUID = "fluid"
    """As amounts, without random draws: the average effect of plans."""
