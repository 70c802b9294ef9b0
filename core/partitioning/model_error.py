"""Error of the frequency-only model against measured loads."""

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
from adapt.core.table import Cell, Column, Displayed, Kind, Table


@dataclass(frozen=True, slots=True, repr=False)
class ModelError(Displayed):
    """Loads predicted from counts, next to measured ones.

    Empty if nothing was measured.
    """

    plans: Table  # one row per plan and measured resource: the imbalance predicted and measured
    keys: Table  # one row per measured resource: how well the shares of keys are predicted

    def tables(self) -> list[Table]:
        """Both tables; no table if nothing was measured."""
        return [self.plans, self.keys] if self.keys.rows else []

    def as_data(self) -> dict[str, Any]:
        """Both tables as JSON data under `model_error`; empty if nothing was measured."""
        return {"model_error": {"plans": self.plans.records(), "keys": self.keys.records()}} if self.keys.rows else {}

    def displayed(self) -> list[Table]:
        """Both tables."""
        return self.tables()


def model_error(
    counted: Counted, recipes: Sequence[Recipe], channels: int, current: Partitioner | None = None
) -> ModelError:
    """Compare plans built from counts alone with measured loads.

    Args:
        counted: The counted keys with their measured columns.
        recipes: How the plans are built, all with the resources of the first.
    """
    resources = recipes[0].resources if recipes else Resources()
    if not any(resources.measured):
        return ModelError(Table.from_rows(_TITLE, _PLAN_COLUMNS, []), Table.from_rows(_KEYS_TITLE, _KEY_COLUMNS, []))
    population = Population.from_counts(counted)
    rows: list[list[Cell]] = []
    for recipe in recipes:
        # A limit is one to measured state; by counts alone, another state must migrate.
        limits = replace(recipe.constraints, max_migration=None)
        by_count = replace(recipe, resources=resources.by_count, constraints=limits)
        capacities = limits.relative(channels)
        partitioner = build_partitioner(population, by_count, channels, current)
        population = Population.from_counts(population, partitioner)
        placed = population.placed(partitioner)
        predicted = channel_loads(placed, population, resources.by_count, channels)
        measured = channel_loads(placed, population, resources, channels)
        construction = recipe.construction.value if recipe.scheme is Scheme.HYBRID else None
        for at, source in enumerate(resources.measured):
            if source is not None:
                of = (recipe.scheme.value, construction, channels, RESOURCES[at], source, resources.functions[at].value)
                both = predicted[at], measured[at]
                imbalances = (max_over_mean(loads, capacities) for loads in both)
                rows.append([*of, *imbalances, *(max_over_min(loads / capacities) for loads in both)])
    return ModelError(
        Table.from_rows(_TITLE, _PLAN_COLUMNS, rows, note=_NOTE),
        _keys_table(population, resources, recipes[0], channels),
    )


def _keys_table(population: Population, resources: Resources, recipe: Recipe, channels: int) -> Table:
    """How well shares are predicted: of all listed keys, and of the pinned ones."""
    frequencies = population.frequencies
    tracked = tracked_keys(frequencies, resources, channels, recipe.max_pins)
    at = frequencies.rows_of(tracked)
    rows: list[list[Cell]] = []
    for number, source in enumerate(resources.measured):
        if source is None:
            continue
        by_count, load = resources.functions[number], resources.loads[number]
        predicted, measured = (_shares(population, each) for each in (by_count, load))
        factors = _factors(predicted[at], measured[at])
        known = np.flatnonzero(np.isfinite(factors))
        worst = int(known[np.argmax(factors[known])]) if len(known) else None
        rows.append(
            [
                RESOURCES[number],
                source,
                by_count.value,
                _correlation(predicted, measured),
                len(tracked),
                float(np.median(factors[known])) if len(known) else None,
                None if worst is None else float(factors[worst]),
                None if worst is None else key_shown(tracked[worst].as_py()),
                None if worst is None else float(predicted[at[worst]]),
                None if worst is None else float(measured[at[worst]]),
                len(tracked) - len(known),
            ]
        )
    return Table.from_rows(_KEYS_TITLE, _KEY_COLUMNS, rows)


def _shares(population: Population, load: Load) -> Floats:
    """The share of each listed key in the whole load, shape (keys,)."""
    total = float(population.loads(load).sum())
    return listed_loads(population.frequencies, load) / (total or 1.0)


def _factors(predicted: Floats, measured: Floats) -> Floats:
    """The larger of two shares over the smaller; infinite where one is 0."""
    higher, lower = np.maximum(predicted, measured), np.minimum(predicted, measured)
    return np.asarray(np.divide(higher, lower, out=np.full(len(lower), np.inf), where=lower > 0))


def _correlation(predicted: Floats, measured: Floats) -> float | None:
    """Pearson correlation; None if one side is constant."""
    if len(predicted) < 2 or np.ptp(predicted) == 0 or np.ptp(measured) == 0:
        return None
    return float(np.corrcoef(predicted, measured)[0, 1])


_TITLE = "Frequency-only model"
_KEYS_TITLE = "Frequency-only model, key by key"

_NOTE = "Plans built from counts alone. `predicted`: load as a function of the count; `measured`: load by the column."

_PLAN_COLUMNS = (
    Column("scheme"),
    Column("construction"),
    Column("channels", Kind.COUNT),
    Column("resource"),
    Column("measured_by", about="column of the measured load"),
    Column("function", about="predicted load of a key, by its count"),
    Column("imbalance_predicted", Kind.RATIO, about="max/mean load, predicted"),
    Column("imbalance_measured", Kind.RATIO, about="max/mean load of the same channels, measured"),
    Column("r_predicted", Kind.RATIO, about="max/min load, predicted"),
    Column("r_measured", Kind.RATIO, about="max/min load of the same channels, measured"),
)

_KEY_COLUMNS = (
    Column("resource"),
    Column("measured_by", about="column of the measured load"),
    Column("function", about="predicted load of a key, by its count"),
    Column("correlation", Kind.NUMBER, about="between predicted and measured shares of all listed keys"),
    Column("pinned_keys", Kind.COUNT, about="keys that are hot by count or by the column"),
    Column("median_factor", Kind.NUMBER, about="median error of a pinned key: larger share / smaller share"),
    Column("worst_factor", Kind.NUMBER, about="largest error of a pinned key"),
    Column("worst_key"),
    Column("worst_predicted", Kind.SHARE, about="its predicted share"),
    Column("worst_measured", Kind.SHARE, about="its measured share"),
    Column("without_load", Kind.COUNT, about="pinned keys with a predicted or measured share of 0"),
)
