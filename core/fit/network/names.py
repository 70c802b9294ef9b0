"""The names by which planners, operators and grids are chosen; light enough for `--help`."""

from enum import StrEnum


class DropPlanner(StrEnum):
    """What decides which share of the tuples is kept on which arc."""

    NONE = "none"
    """Nothing is dropped."""
    PROPORTIONAL = "proportional"
    """The same share of every input, as large as fits."""
    GREEDY_LOCAL = "greedy-local"
    """Every node sheds for itself what is worth least to it, knowing nothing of the others."""
    LP = "lp"
    """The best plan, by one linear program a point."""
    SOLVER = "solver"
    """Best plans made in advance for the corners of regions of rates, as the paper has it."""
    SOLVER_W = "solver-w"
    """As solver, with most regions where rates are seen most."""
    C_FIT = "c-fit"
    """Feasible input tables, merged from the leaves up, at a coordinator."""
    D_FIT = "d-fit"
    """The same tables, made by each node from what its neighbours tell it; each plans for itself."""
    D_FIT_CUTS = "d-fit-cuts"
    """As d-fit, with linear functions above the best score in place of tables: the best plan, and few rows to send."""
    EXACT = "exact"
    """The best plan, from bases that were optimal before."""


class OperatorKind(StrEnum):
    """What an operator does with tuples, as far as load goes."""

    MAP = "map"
    FILTER = "filter"
    UNION = "union"
    JOIN = "join"
    AGGREGATE = "aggregate"
    DELAY = "delay"


class Grid(StrEnum):
    """Which rates stand in the table of a leaf, and which are left out because they need no plan."""

    PAPER = "paper"
    """Spacing by the largest rates; the whole feasibility triangle left out. Some points are left without a plan."""
    SAFE = "safe"
    """The same spacing; what lies within a cell of the triangle's edge is kept."""
    GUARANTEED = "guaranteed"
    """As fine as it takes for no point to lose more than epsilon."""


class Drops(StrEnum):
    """What is dropped before aggregates; elsewhere it is always tuples at random."""

    RANDOM = "random"
    """Tuples, each by its own random draw: windows then aggregate what is left."""
    WINDOW = "window"
    """Whole windows: every result that is given is that of all its tuples."""


BATCH = 100
"""Windows that live or die together: the longest gap that a reader of results is thought to bear."""


class Flow(StrEnum):
    """How a network is run."""

    TUPLES = "tuples"
    """Tuple by tuple, with random drops and a queue at every node."""
    FLUID = "fluid"
    """As amounts, without random draws: what plans are worth on average."""
