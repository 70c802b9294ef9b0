"""The placement of today at each channel count: nothing is pinned."""

from collections.abc import Sequence
from dataclasses import replace

from adapt.core.engines.names import AnyScheme
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.build import Built, Recipe, describe
from adapt.core.partitioning.compare import Compared, Comparison, ComparisonRow
from adapt.core.partitioning.measures.metrics import Metrics, evaluate
from adapt.core.partitioning.measures.population import Counted, Population, frequencies_in
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.plans.registry import follow
from adapt.core.partitioning.problem.at_random import spread_at_random
from adapt.core.partitioning.schemes.split_map import SplitPartitioner
from adapt.core.partitioning.split_plan import dealt_metrics
from adapt.core.partitioning.splitting.names import PlannedSplitting


def with_nothing_done(
    comparison: Comparison, counted: Counted, recipe: Recipe, today: AnyScheme, channels: Sequence[int]
) -> Comparison:
    """A comparison whose first rows do nothing, which needs no plan.

    Nothing moves at the first channel count, and later what `today` itself moves when the count changes. Constraints do
    not apply, except capacities. Over a single channel count, the other rows migrate from today's placement.

    Args:
        counted, recipe, channels: Those of the comparison.
        today: What places keys now, such as an engine.
    """
    own = replace(recipe, scheme=today)
    rows: list[ComparisonRow] = []
    last: Built | None = None
    for count in channels:
        parts = recipe.parts(count, frequencies_in(counted).key_type)
        now = None if last is None else last.partitioner
        partitioner = follow(today, counted, recipe.resources.network, parts, now)
        spread = spread_at_random(counted, today, count)
        last = describe(spread, own, partitioner, partitioner if now is None else now)
        rows.append(ComparisonRow(today, None, count, last.metrics, None))
    plans = tuple(plan for plan in comparison.plans if plan.scheme is not today) or comparison.plans
    others = [row for row in comparison.rows if row.scheme is not today]
    if len(channels) == 1 and last is not None:
        moving: dict[tuple[Compared, str | None], Metrics] = {
            (plan.scheme, plan.built_by): _migrating(plan, counted, recipe, last.partitioner)
            for plan in plans
            if not plan.splits
        }
        for plan in plans:
            dealer = plan.dealer()
            if isinstance(dealer, SplitPartitioner):
                split = dealt_metrics(
                    Population.from_counts(counted, last.partitioner), recipe, dealer, last.partitioner
                )
                moving[PlannedSplitting.SPLIT_HOT, None] = split
        others = [replace(row, metrics=moving.get((row.scheme, row.built_by), row.metrics)) for row in others]
    return replace(comparison, rows=(*rows, *others), plans=plans)


def _migrating(plan: Plan, counted: Counted, recipe: Recipe, today: Partitioner) -> Metrics:
    """The metrics of a plan that replaces today's placement."""
    spread = spread_at_random(counted, plan.hashing, plan.channels, plan.explicit)
    return evaluate(plan.partitioner(), spread, recipe.resources, today, recipe.constraints.unequal)
