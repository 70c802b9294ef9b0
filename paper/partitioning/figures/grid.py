"""Tables of chains: metrics by scheme and parameter, with intervals."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from adapt.core.partitioning.schemes.names import Construction
from adapt.core.table import Column, Kind, Table
from paper import charts
from paper.partitioning.chains import Recipe, Step
from paper.partitioning.scope import CHANNELS, Number, at_channels, estimate
from paper.report import averaged, cells

Chains: TypeAlias = list[list[Step]]
"""Steps of a chain, by seed."""

B = Column("b", Kind.RATIO, about="relative load imbalance (Eq. 11); 1 is the tolerated limit")
M = Column("m", Kind.RATIO, about="relative migration cost of the last step (Eq. 12); 1 is the mean state of a channel")

DRAWN = ("uniform", "consistent", "scan", "redist", "readj")
"""The five schemes that the paper shows."""


ORDER = (*DRAWN, "level, 1,000 keys", "unlocked", "readj-printed")
"""Order of schemes, which fixes their colors in every chart."""

lines = partial(charts.lines, order=ORDER)
dots = partial(charts.dots, order=ORDER)


def label(recipe: Recipe) -> str:
    """Display name of a recipe."""
    name = recipe.construction.value
    return name if recipe.construction is not Construction.LEVEL else f"{name}, {recipe.track:,} keys"


def grid(
    title: str,
    across: Column | Sequence[Column],
    chains: Iterable[tuple[str, Any, Chains]],
    metrics: Mapping[Column, Number],
    channels: int = CHANNELS,
    note: str = "",
) -> Table:
    """A table of some metrics of the step to N channels.

    Args:
        title: Of the table.
        across: Parameter that varies, or several.
        chains: Name, parameter (a tuple if several) and steps of each line.
        metrics: Metric of a step by column.
        channels: N.
        note: Note below the table.
    """
    parameters = [across] if isinstance(across, Column) else list(across)
    rows = []
    for name, at, steps in chains:
        estimates = [estimate(at_channels(steps, channels, number)) for number in metrics.values()]
        rows.append((name, *(at if isinstance(at, tuple) else (at,)), *cells(*estimates)))
    return Table.from_rows(title, [Column("scheme"), *parameters, *averaged(list(metrics))], rows, note)
