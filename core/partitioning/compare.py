"""Compare schemes over a chain of channel counts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from adapt.core.engines.names import AnyScheme
from adapt.core.errors import UsageError
from adapt.core.keys.partitioner import Partitioner
from adapt.core.metrics import column_named
from adapt.core.own.own_code import OwnCode
from adapt.core.partitioning.build import Built, Recipe, build_partitioner, describe, hashers_of
from adapt.core.partitioning.measures.cells import Hashers
from adapt.core.partitioning.measures.metrics import METRIC_COLUMNS, Metrics
from adapt.core.partitioning.measures.plan_settings import USUAL, refused
from adapt.core.partitioning.measures.population import Counted, Population, frequencies_in
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.problem.at_random import spread_at_random
from adapt.core.partitioning.problem.constraints import Constraint, honours, limits_nothing, refuse_unhonoured
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.partitioning.schemes.names import DEFAULT_CONSTRUCTIONS, DEFAULT_SCHEMES, Construction, Scheme
from adapt.core.partitioning.split_plan import split_plan
from adapt.core.partitioning.splitting.names import REMEDIES, PlannedSplitting, Splitting
from adapt.core.partitioning.splitting.split import (
    MERGE_COLUMNS,
    WHOLE,
    MergeCost,
    Messages,
    measure_split,
    merge_cost,
    split,
)
from adapt.core.table import Column, Displayed, Table

Compared: TypeAlias = AnyScheme | Splitting | PlannedSplitting | OwnCode
"""Schemes that can be compared."""

SCHEMA = "adapt.comparison/2"
"""The format of a comparison as data."""

MESSAGES = 1_000_000
"""Most messages that represent the counted keys where keys are split."""


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """A scheme at one channel count."""

    scheme: Compared
    # how pinned keys were assigned, or the user's function that did; None in other schemes than hybrid
    construction: Construction | OwnCode | None
    channels: int
    metrics: Metrics  # its metrics; migration is from the step before, and None in the first
    build_s: float | None  # build time; None without a clock, or where keys are split
    merge: MergeCost = WHOLE

    @property
    def built_by(self) -> str | None:
        """Name of the construction, or of the user's function."""
        return None if self.construction is None else self.construction.value

    def as_data(self) -> dict[str, Any]:
        """The row as JSON data."""
        named = {"scheme": self.scheme.value, "construction": self.built_by, "channels": self.channels}
        return named | self.metrics.as_data() | asdict(self.merge) | {"build_s": self.build_s}


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Displayed):
    """All schemes at all channel counts, with their last plans."""

    rows: tuple[ComparisonRow, ...]  # by scheme and construction, then in the order of the channel counts
    # one per scheme and construction, for the last count. Schemes that split keys by load have no plan
    plans: tuple[Plan, ...]
    estimate: bool = False  # whether the load of unlisted keys on a channel is an estimate
    verdict: tuple[str, ...] = field(default=(), compare=False)  # what to do, in words; empty if nobody asked

    @property
    def said(self) -> tuple[str, ...]:
        """The verdict in words."""
        return self.verdict

    def table(self) -> Table:
        """The rows, each ratio next to its floor.

        With the cost of splitting if keys are split.
        """
        splits = any(row.merge is not WHOLE for row in self.rows)
        notes = [NOTE, *([SPLIT_NOTE] if splits else []), *([ESTIMATE_NOTE] if self.estimate else [])]
        columns = [column for column in COLUMNS if splits or column not in MERGE_COLUMNS]
        rows = [[row.as_data()[column.name] for column in columns] for row in self.rows]
        return Table.from_rows("Schemes compared", columns, rows, note=" ".join(notes))

    def as_data(self) -> dict[str, Any]:
        """The comparison as JSON data."""
        return {"schema": SCHEMA, "estimate": self.estimate, "rows": [row.as_data() for row in self.rows]}

    def displayed(self) -> list[Table]:
        """The table."""
        return [self.table()]


NOTE = (
    "State migrates from the row above, or, with one number of workers, from today's placement. Floors are the best"
    " possible values without splitting keys: best_possible and r_best for any assignment, r_best_pinned and b_best"
    " for any assignment of the same pinned keys."
)

SPLIT_NOTE = (
    "Splitting keys can go below the floors, and adds merge_tuples: the messages of one merge of the whole stream. The"
    " state of a split key migrates from workers that hold no part of it any more; schemes that split by load have no"
    " migration."
)

ESTIMATE_NOTE = (
    "The load of unlisted keys on a worker is an estimate, and so is all that rests on it: only best_possible and"
    " r_best do not. Count exactly to know it."
)

COLUMNS = (
    Column("scheme"),
    Column("construction"),
    column_named("channels"),
    *METRIC_COLUMNS,
    *MERGE_COLUMNS,
    column_named("build_s"),
)


def compare_schemes(
    counted: Counted,
    channels: Sequence[int],
    recipe: Recipe | None = None,
    *,
    schemes: Sequence[Compared] | None = None,
    constructions: Sequence[Construction] | None = None,
    trace: str | None = None,
    clock: Callable[[], float] | None = None,
    max_imbalance: float = USUAL.max_imbalance,
) -> Comparison:
    """Build and measure every scheme for each channel count.

    Every step is measured on the same keys: the counted ones, and the others (`Population`).

    Args:
        channels: The channel counts, in order.
        recipe: What all schemes share. A migration limit holds from the second count on, or, with a single count, for
            the move from the placement of the base; without `max_parallelism`, a scheme keeps the key groups of its
            first count as long as the channels fit in them.
        schemes: What to compare, including schemes that split keys. Default: those of `DEFAULT_SCHEMES` that support
            the constraints, and `REMEDIES` too if no assignment of whole keys keeps `max_imbalance` at some count.
        constructions: The constructions of the hybrid scheme. Default: `DEFAULT_CONSTRUCTIONS`.
        clock: Seconds, for `build_s`.
    """
    if not channels or (schemes is not None and not schemes):
        raise UsageError("a comparison needs at least one scheme and one number of workers")
    recipe = recipe or Recipe()
    weighed, limits = recipe.resources, recipe.constraints
    for count in channels:
        limits.check_channels(count)
    limits.check_keys(frequencies_in(counted))
    population = Population.from_counts(counted)
    rows: list[ComparisonRow] = []
    plans: list[Plan] = []
    chains = _chains_of(schemes, constructions, recipe.given)
    if not chains and schemes is None:
        raise refused(f"no scheme supports {' and '.join(f'{{{each}}}' for each in recipe.given)} together; omit one")
    for scheme, construction in chains:
        how: dict[str, Any] = {"own" if isinstance(construction, OwnCode) else "construction": construction}
        own = replace(recipe, scheme=scheme, **how)
        whole = Population.from_counts(spread_at_random(population, own.hashing, channels[-1], limits.pinned))
        for built, build_s in _chain(whole, own, channels, trace, clock):
            rows.append(_row(built, build_s, own))
        plans.append(built.plan)
    floors = [row.metrics.best_possible or 0.0 for row in rows]
    too_heavy = max(floors, default=0.0) > max_imbalance
    remedies = REMEDIES if schemes is None and too_heavy and not weighed.sources and not recipe.given else ()
    asked = (*(schemes or ()), *remedies)
    if PlannedSplitting.SPLIT_HOT in asked:
        if recipe.given:
            raise UsageError(f"scheme split-hot does not support {' and '.join(recipe.given)}; omit one")
        first = split_plan(population, recipe, channels[0], max_imbalance, trace)
        kept = replace(recipe, max_parallelism=first.plan.max_parallelism)  # a rescale keeps the key groups
        planned = [first]
        for count in channels[1:]:
            before = planned[-1].plan.dealer()
            planned.append(split_plan(population, kept, count, max_imbalance, trace, before))
        rows += [
            ComparisonRow(PlannedSplitting.SPLIT_HOT, None, each.plan.channels, each.metrics, None, each.merge)
            for each in planned
        ]
        plans.append(planned[-1].plan)
    splittings = [scheme for scheme in asked if isinstance(scheme, Splitting)]
    split_rows = _split_rows(population, splittings, channels, recipe)
    return Comparison((*rows, *split_rows), tuple(plans), population.is_estimate(weighed))


def hashers_compared(
    counted: Counted,
    channels: Sequence[int],
    recipe: Recipe,
    schemes: Sequence[Compared],
    today: Partitioner | None = None,
) -> list[Hashers]:
    """Hashers of the compared schemes, each step with the one before.

    Args:
        today: The placement before a single step.
    """
    whole = [
        Scheme.HYBRID if isinstance(scheme, PlannedSplitting | OwnCode) else scheme
        for scheme in schemes
        if not isinstance(scheme, Splitting)
    ]
    before = today if len(channels) == 1 else None
    chains = (hashers_of(replace(recipe, scheme=scheme), counted, channels, before) for scheme in whole)
    return list(dict.fromkeys(hashers for chain in chains for hashers in chain))


def _split_rows(
    population: Population, splittings: Sequence[Splitting], channels: Sequence[int], recipe: Recipe
) -> Iterator[ComparisonRow]:
    """Every splitting scheme at every channel count, on the same messages."""
    if not splittings:
        return
    messages = Messages.of_counts(population, np.random.default_rng(0), MESSAGES)
    for splitting in splittings:
        for count in channels:
            done = split(messages, splitting, count, hash=recipe.hash)
            metrics = measure_split(done, messages, recipe.resources)
            yield ComparisonRow(splitting, None, count, metrics, None, merge_cost(done))


def _chains_of(
    schemes: Sequence[Compared] | None,
    constructions: Sequence[Construction] | None,
    given: Sequence[Constraint],
) -> list[tuple[AnyScheme, Construction | OwnCode]]:
    """The schemes and constructions of whole keys; defaults that do not support the constraints are skipped."""
    chains: list[tuple[AnyScheme, Construction | OwnCode]] = []
    for scheme in DEFAULT_SCHEMES if schemes is None else schemes:
        if isinstance(scheme, OwnCode):
            chains.append((Scheme.HYBRID, scheme))
            continue
        own = (DEFAULT_CONSTRUCTIONS if constructions is None else constructions) if scheme is Scheme.HYBRID else _NONE
        by_name = schemes is not None if scheme is not Scheme.HYBRID else constructions is not None
        for construction in own:
            if by_name and not isinstance(scheme, PlannedSplitting):
                refuse_unhonoured(scheme, construction, given)
            if not isinstance(scheme, Splitting | PlannedSplitting) and honours(scheme, construction, given):
                chains.append((scheme, construction))
    return chains


_NONE = (Construction.SCAN,)
"""Placeholder construction of the schemes that have none."""


def _chain(
    population: Population,
    recipe: Recipe,
    channels: Sequence[int],
    trace: str | None,
    clock: Callable[[], float] | None,
) -> Iterator[tuple[Built, float | None]]:
    """The steps of one scheme, each with its build time."""
    last: Built | None = None
    for count in channels:
        started = clock() if clock else 0.0
        current = None if last is None else last.partitioner
        partitioner = build_partitioner(population, recipe, count, current)
        build_s = clock() - started if clock else None
        if last is None:
            limit = recipe.constraints.max_migration if len(channels) == 1 else None
            if limit is not None and recipe.scheme is not Scheme.HYBRID:
                raise refused(
                    f"{limits_nothing(limit)}, and scheme {recipe.scheme} does not start from today's; give two channel"
                    f" counts, or use scheme {Scheme.HYBRID}"
                )
            home = partitioner.base if limit is not None and isinstance(partitioner, HybridPartitioner) else None
            last = describe(population, recipe, partitioner, home, trace=trace)
        else:
            last = describe(population, recipe, partitioner, last.partitioner, last.plan.content_hash(), trace)
        yield last, build_s


def _row(built: Built, build_s: float | None, recipe: Recipe) -> ComparisonRow:
    how = recipe.own or built.plan.construction
    return ComparisonRow(built.plan.scheme, how, built.plan.channels, built.metrics, build_s)
