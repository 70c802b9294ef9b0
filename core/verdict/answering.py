"""Judge counted keys: verdict, hot keys, channels before and after a plan."""

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Frequencies
from adapt.core.engines.names import AnyScheme
from adapt.core.keys.partitioner import Partitioner
from adapt.core.out_of_sample.counted_panes import CountedPane
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.measures.imbalance_limit import MAX_IMBALANCE
from adapt.core.partitioning.measures.per_channel import BeforeAfter
from adapt.core.partitioning.measures.relative_loads import over_average, relative
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.verdict.answer import Answer
from adapt.core.verdict.hot_keys import HotKeys
from adapt.core.verdict.stream_verdict import RoutedLoads, judge


def answer_on(
    counted: Frequencies,
    engine: AnyScheme,
    channels: int,
    recipe: Recipe,
    *,
    panes: tuple[CountedPane, ...] = (),
    routed: RoutedLoads | None = None,
    plan: Plan | None = None,
    before: Plan | None = None,
    max_imbalance: float = MAX_IMBALANCE,
) -> Answer:
    """Verdict, hot keys, and channels before and after a plan.

    Args:
        recipe: Loads, capacities, and the key groups of an engine that has them.
        panes: The same stream cut into windows (`panes_of`).
        routed: Routes every row of these windows, where they do not list every key.
        before: The plan in force, compared instead of the engine.
        max_imbalance: The limit of the verdict.
    """
    resources, capacities = recipe.resources, recipe.constraints.unequal
    today = make_partitioner(engine, channels, max_parallelism=recipe.max_parallelism)
    verdict = judge(
        counted,
        today,
        engine.value,
        resources=resources,
        capacities=capacities,
        panes=panes,
        routed=routed,
        max_imbalance=max_imbalance,
    )
    hot = HotKeys.from_counts(counted, panes)
    return Answer(
        verdict, hot, None if plan is None else _placed(counted, today, engine, resources, capacities, plan, before)
    )


def _placed(
    counted: Frequencies,
    today: Partitioner,
    engine: AnyScheme,
    resources: Resources,
    capacities: Floats | None,
    plan: Plan,
    before: Plan | None,
) -> BeforeAfter | None:
    """Channels today and as the plan predicts; None if the plan has no predicted loads."""
    if not plan.predicted_loads:
        return None
    was, name = (today, engine.value) if before is None else (before.partitioner(), "the plan in force")
    construction = f" ({plan.construction})" if plan.construction is not None else ""
    return BeforeAfter.from_loads(
        name,
        over_average(counted, was, resources, capacities if before is None else None),
        f"{plan.scheme}{construction}",
        relative(plan.predicted_loads["network"], capacities),
    )
