"""How far a model that knows only how often keys come is from loads that were measured."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.counting.tables import key_shown
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.build import Recipe, build_partitioner
from adapt.core.partitioning.measures.channel_loads import channel_loads
from adapt.core.partitioning.measures.imbalance import max_over_mean, max_over_min
from adapt.core.partitioning.measures.key_loads import listed_loads
from adapt.core.partitioning.measures.population import Counted, Population
from adapt.core.partitioning.measures.resources import RESOURCES, Load, Resources
from adapt.core.partitioning.problem.tracking import tracked_keys
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.table import Cell, Column, Kind, Table


@dataclass(frozen=True, slots=True)
class ModelError:
    """What functions of counts foretell of loads, beside what was measured of them; empty where nothing was.

    Attributes:
        plans: By plan built from counts alone and measured resource: the imbalance foretold and measured.
        keys: By measured resource: how well the share of a key is foretold.
    """

    plans: Table
    keys: Table

    def tables(self) -> list[Table]:
        """Both tables, or none where nothing was measured."""
        return [self.plans, self.keys] if self.keys.rows else []

    def as_data(self) -> dict[str, Any]:
        """Both tables as JSON data, under `model_error`; nothing where nothing was measured."""
        return {"model_error": {"plans": self.plans.records(), "keys": self.keys.records()}} if self.keys.rows else {}

    def _repr_html_(self) -> str:
        """Both tables, for a notebook."""
        return "".join(table._repr_html_() for table in self.tables())


def model_error(
    counted: Counted, recipes: Sequence[Recipe], channels: int, current: Partitioner | None = None
) -> ModelError:
    """Build each plan without what was measured, and measure it: what would have been thought, and what is.

    Args:
        counted: The counted keys with their measured columns.
        recipes: How the plans are built; all with the resources of the first, some of which are measured.

    Raises:
        UsageError: as in building the plans; or a load was not measured.
    """
    resources = recipes[0].resources if recipes else Resources()
    if not resources.sources:
        return ModelError(Table.from_rows(_TITLE, _PLAN_COLUMNS, []), Table.from_rows(_KEYS_TITLE, _KEY_COLUMNS, []))
    population = Population.from_counts(counted)
    rows: list[list[Cell]] = []
    for recipe in recipes:
        # A limit is one to measured state; by counts alone, another state must migrate.
        limits = replace(recipe.constraints, max_migration=None)
        by_count = replace(recipe, resources=resources.by_count, constraints=limits)
        capacities = limits.relative(channels)
        partitioner = build_partitioner(population, by_count, channels, current)
        placed = partitioner.channels_of(population.keys)
        foretold = channel_loads(placed, population, resources.by_count, channels)
        measured = channel_loads(placed, population, resources, channels)
        construction = recipe.construction.value if recipe.scheme is Scheme.HYBRID else None
        for at, source in enumerate(resources.measured):
            if source is not None:
                of = (recipe.scheme.value, construction, channels, RESOURCES[at], source, resources.letters[at])
                both = foretold[at], measured[at]
                imbalances = (max_over_mean(loads, capacities) for loads in both)
                rows.append([*of, *imbalances, *(max_over_min(loads / capacities) for loads in both)])
    return ModelError(
        Table.from_rows(_TITLE, _PLAN_COLUMNS, rows, note=_NOTE),
        _keys_table(population, resources, recipes[0], channels),
    )


def _keys_table(population: Population, resources: Resources, recipe: Recipe, channels: int) -> Table:
    """How well shares are foretold: over all listed keys, and of those that are tracked."""
    frequencies = population.frequencies
    tracked = tracked_keys(frequencies, resources, channels, recipe.track)
    at = frequencies.rows_of(tracked)
    rows: list[list[Cell]] = []
    for number, source in enumerate(resources.measured):
        if source is None:
            continue
        by_count, load = resources.functions[number], resources.loads[number]
        foretold, measured = (_shares(population, each) for each in (by_count, load))
        factors = _factors(foretold[at], measured[at])
        known = np.flatnonzero(np.isfinite(factors))
        worst = int(known[np.argmax(factors[known])]) if len(known) else None
        rows.append(
            [
                RESOURCES[number],
                source,
                by_count.value,
                _correlation(foretold, measured),
                len(tracked),
                float(np.median(factors[known])) if len(known) else None,
                None if worst is None else float(factors[worst]),
                None if worst is None else key_shown(tracked[worst].as_py()),
                None if worst is None else float(foretold[at[worst]]),
                None if worst is None else float(measured[at[worst]]),
                len(tracked) - len(known),
            ]
        )
    return Table.from_rows(_KEYS_TITLE, _KEY_COLUMNS, rows)


def _shares(population: Population, load: Load) -> Floats:
    """The share of a whole load that each listed key has, shape (keys,)."""
    total = float(population.loads(load).sum())
    return listed_loads(population.frequencies, load) / (total or 1.0)


def _factors(foretold: Floats, measured: Floats) -> Floats:
    """How many times one of two shares is the other, whichever is larger; infinite where one is nothing."""
    higher, lower = np.maximum(foretold, measured), np.minimum(foretold, measured)
    return np.asarray(np.divide(higher, lower, out=np.full(len(lower), np.inf), where=lower > 0))


def _correlation(foretold: Floats, measured: Floats) -> float | None:
    """Pearson's; None where one of them is the same for all keys."""
    if len(foretold) < 2 or np.ptp(foretold) == 0 or np.ptp(measured) == 0:
        return None
    return float(np.corrcoef(foretold, measured)[0, 1])


_TITLE = "Frequency-only model"
_KEYS_TITLE = "Frequency-only model, key by key"

_NOTE = (
    "Each plan is built as if nothing had been measured; `foretold` is what the functions of the counts say of it,"
    " `measured` what the columns say."
)

_PLAN_COLUMNS = (
    Column("scheme"),
    Column("construction"),
    Column("channels", Kind.COUNT),
    Column("resource"),
    Column("measured_by", about="the column that it was measured by"),
    Column("function", about="of the count, in place of the column"),
    Column("imbalance_foretold", Kind.RATIO, about="fullest channel over the average, by the function"),
    Column("imbalance_measured", Kind.RATIO, about="the same channels, as measured"),
    Column("r_foretold", Kind.RATIO, about="fullest channel over emptiest, by the function"),
    Column("r_measured", Kind.RATIO, about="the same channels, as measured"),
)

_KEY_COLUMNS = (
    Column("resource"),
    Column("measured_by", about="the column that it was measured by"),
    Column("function", about="of the count, in place of the column"),
    Column("correlation", Kind.NUMBER, about="of the two shares, over all listed keys"),
    Column("tracked_keys", Kind.COUNT, about="keys that are heavy in count or as measured"),
    Column(
        "median_factor", Kind.NUMBER, about="of their two shares, the larger over the smaller: half are off by less"
    ),
    Column("worst_factor", Kind.NUMBER, about="the most that one of them is off by"),
    Column("worst_key"),
    Column("worst_foretold", Kind.SHARE, about="its share by the function"),
    Column("worst_measured", Kind.SHARE, about="its share as measured"),
    Column("without_load", Kind.COUNT, about="tracked keys of which nothing was counted or measured"),
)
