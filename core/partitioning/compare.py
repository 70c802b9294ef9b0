"""Comparing schemes: each built again and again over a chain of channel counts, every step from the one before."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from adapt.core.counting.frequencies import Frequencies
from adapt.core.engines.names import AnyScheme
from adapt.core.errors import UsageError
from adapt.core.partitioning.build import Built, Recipe, build_partitioner, describe
from adapt.core.partitioning.measures.imbalance_limit import MAX_IMBALANCE
from adapt.core.partitioning.measures.metrics import METRIC_COLUMNS, Metrics
from adapt.core.partitioning.measures.population import Population
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.problem.constraints import Constraints, honours, limits_nothing, refuse_unhonoured
from adapt.core.partitioning.schemes.names import DEFAULT_CONSTRUCTIONS, DEFAULT_SCHEMES, Construction, Scheme
from adapt.core.partitioning.splitting.measure import MERGE_COLUMNS, WHOLE, MergeCost, measure_split, merge_cost
from adapt.core.partitioning.splitting.messages import Messages
from adapt.core.partitioning.splitting.names import REMEDIES, Splitting
from adapt.core.partitioning.splitting.split import split
from adapt.core.table import Column, Kind, Table

SCHEMA = "adapt.comparison/1"
"""The format of a comparison as data."""

MESSAGES = 1_000_000
"""Messages that stand for the counted keys where keys are split, at most."""


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One step of one chain.

    Attributes:
        construction: How explicit channels were chosen; None in a scheme without them.
        metrics: What was measured; migration is from the step before, and None in the first.
        build_s: How long building took, without measuring; None if no clock was given, or where keys are split.
    """

    scheme: AnyScheme | Splitting
    construction: Construction | None
    channels: int
    metrics: Metrics
    build_s: float | None
    merge: MergeCost = WHOLE

    def as_data(self) -> dict[str, Any]:
        """The row as JSON data."""
        construction = None if self.construction is None else self.construction.value
        named = {"scheme": self.scheme.value, "construction": construction, "channels": self.channels}
        return named | self.metrics.as_data() | asdict(self.merge) | {"build_s": self.build_s}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Every step of every chain, and the plan at the end of each chain.

    Attributes:
        rows: By scheme and construction, then in the order of the chain.
        plans: One a chain, for the last channel count; none of split keys, which no plan can hold.
    """

    rows: tuple[ComparisonRow, ...]
    plans: tuple[Plan, ...]

    def table(self) -> Table:
        """The rows, each ratio beside its floors; what splitting costs, if keys are split anywhere."""
        splits = any(row.merge is not WHOLE for row in self.rows)
        columns = [column for column in COLUMNS if splits or column not in MERGE_COLUMNS]
        rows = [[row.as_data()[column.name] for column in columns] for row in self.rows]
        return Table.from_rows("Schemes compared", columns, rows, note=f"{NOTE} {SPLIT_NOTE}" if splits else NOTE)

    def as_data(self) -> dict[str, Any]:
        """The comparison as JSON data."""
        return {"schema": SCHEMA, "rows": [row.as_data() for row in self.rows]}

    def _repr_html_(self) -> str:
        """The table, for a notebook."""
        return self.table()._repr_html_()


NOTE = (
    "Each step migrates from the row above it. No placement of whole keys has less imbalance than imbalance_floor or"
    " a lower r_n than r_floor; none with the same tracked keys over the same ring a lower r_n than r_floor_pair"
    " or a lower b than b_floor."
)

SPLIT_NOTE = (
    "Floors are those of whole keys, which splitting may pass; merge_tuples are for one merge of the whole stream."
)

COLUMNS = (
    Column("scheme"),
    Column("construction"),
    Column("channels", Kind.COUNT),
    *METRIC_COLUMNS,
    *MERGE_COLUMNS,
    Column("build_s", Kind.SECONDS, "s", about="time to build"),
)


def compare_schemes(
    frequencies: Frequencies,
    channels: Sequence[int],
    recipe: Recipe | None = None,
    *,
    schemes: Sequence[AnyScheme | Splitting] | None = None,
    constructions: Sequence[Construction] | None = None,
    trace: str | None = None,
    clock: Callable[[], float] | None = None,
    max_imbalance: float = MAX_IMBALANCE,
) -> Comparison:
    """Build every scheme for each channel count in turn, each step from the one before, and measure every step.

    Every step is measured on the same keys: those counted, and stand-ins for those that a lossy counter did not list
    (`Population`).

    Args:
        channels: The channel counts in the order in which they follow each other; growing, shrinking or staying.
        recipe: What all chains share; each has a scheme and a construction of its own. A limit to migration holds from
            the second step on; without `max_parallelism`, a chain keeps the key groups of its first step as long as
            the channels fit in them.
        schemes: What to compare, ways of splitting keys among it. If not given, those of `DEFAULT_SCHEMES` that can
            keep to the constraints, and where no assignment of whole keys can keep `max_imbalance` at some channel
            count, `REMEDIES` too.
        constructions: The ways to choose explicit channels, each a chain of its own; `DEFAULT_CONSTRUCTIONS` if not
            given.
        clock: Seconds, for `build_s`.

    Raises:
        UsageError: no channel count or scheme is given, or one of the numbers is out of its range; a constraint does
            not fit a channel count, a scheme cannot honour it, or migration is limited over a single count, or to less
            than what must migrate.
        BadInput: a pinned key is not among those counted.
    """
    if not channels or (schemes is not None and not schemes):
        raise UsageError("a comparison needs at least one scheme and one channel count")
    recipe = recipe or Recipe()
    weighed, limits = recipe.resources, recipe.constraints
    _check_chain(limits, channels)
    limits.check_keys(frequencies)
    population = Population.from_counts(frequencies)
    rows: list[ComparisonRow] = []
    plans: list[Plan] = []
    for scheme, construction in _chains_of(schemes, constructions, limits):
        own = replace(recipe, scheme=scheme, construction=construction)
        for built, build_s in _chain(population, own, channels, trace, clock):
            rows.append(_row(built, build_s))
        plans.append(built.plan)
    floors = [row.metrics.imbalance_floor or 0.0 for row in rows]
    too_heavy = max(floors, default=0.0) > max_imbalance
    remedies = REMEDIES if schemes is None and too_heavy and not weighed.sources and not limits.given else ()
    splittings = [scheme for scheme in (*(schemes or ()), *remedies) if isinstance(scheme, Splitting)]
    return Comparison((*rows, *_split_rows(population, splittings, channels, recipe)), tuple(plans))


def _split_rows(
    population: Population, splittings: Sequence[Splitting], channels: Sequence[int], recipe: Recipe
) -> Iterator[ComparisonRow]:
    """Every way of splitting at every channel count, on the same messages."""
    if not splittings:
        return
    messages = Messages.of_counts(population, np.random.default_rng(0), MESSAGES)
    for splitting in splittings:
        for count in channels:
            done = split(messages, splitting, count, hash=recipe.hash)
            metrics = measure_split(done, messages, recipe.resources)
            yield ComparisonRow(splitting, None, count, metrics, None, merge_cost(done))


def _check_chain(constraints: Constraints, channels: Sequence[int]) -> None:
    """Refuse constraints that do not fit every step, before the first is built."""
    for count in channels:
        constraints.check_channels(count)
    if constraints.max_migration is not None and len(channels) == 1:
        raise UsageError(f"{limits_nothing(constraints.max_migration)}: give two channel counts or more")


def _chains_of(
    schemes: Sequence[AnyScheme | Splitting] | None,
    constructions: Sequence[Construction] | None,
    constraints: Constraints,
) -> list[tuple[AnyScheme, Construction]]:
    """The chains of whole keys; those that nobody asked for by name are left out where they cannot keep to constraints.

    Raises:
        UsageError: one that was asked for cannot.
    """
    chains = []
    for scheme in DEFAULT_SCHEMES if schemes is None else schemes:
        own = (DEFAULT_CONSTRUCTIONS if constructions is None else constructions) if scheme is Scheme.HYBRID else _NONE
        by_name = schemes is not None if scheme is not Scheme.HYBRID else constructions is not None
        for construction in own:
            if by_name:
                refuse_unhonoured(scheme, construction, constraints)
            if not isinstance(scheme, Splitting) and honours(scheme, construction, constraints):
                chains.append((scheme, construction))
    return chains


_NONE = (Construction.SCAN,)
"""What stands for the construction of a scheme that has none to choose."""


def _chain(
    population: Population,
    recipe: Recipe,
    channels: Sequence[int],
    trace: str | None,
    clock: Callable[[], float] | None,
) -> Iterator[tuple[Built, float | None]]:
    """The steps of one chain, each with the time that building took."""
    last: Built | None = None
    for count in channels:
        started = clock() if clock else 0.0
        current = None if last is None else last.partitioner
        partitioner = build_partitioner(population, recipe, count, current)
        build_s = clock() - started if clock else None
        if last is None:
            last = describe(population, recipe, partitioner, trace=trace)
        else:
            last = describe(population, recipe, partitioner, last.placed, last.plan.content_hash(), trace)
        yield last, build_s


def _row(built: Built, build_s: float | None) -> ComparisonRow:
    return ComparisonRow(built.plan.scheme, built.plan.construction, built.plan.channels, built.metrics, build_s)
