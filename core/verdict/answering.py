"""Judge counted keys: verdict, recommended plan, hot keys, channels before and after."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from adapt.core.arrays import Floats
from adapt.core.engines.names import AnyScheme
from adapt.core.out_of_sample.counted_panes import CountedPane, CountedPanes
from adapt.core.partitioning.build import Recipe, check_key_types
from adapt.core.partitioning.measures.channel_loads import over_average, relative
from adapt.core.partitioning.measures.per_channel import BeforeAfter
from adapt.core.partitioning.measures.population import Counted, Population, frequencies_in
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.problem.at_random import share_at_random, spread_at_random
from adapt.core.verdict.answer import Answer, AtRandomLoad
from adapt.core.verdict.goal import Goal
from adapt.core.verdict.hot_keys import HotKeys
from adapt.core.verdict.recommended import recommended_plan, today_of
from adapt.core.verdict.stream_verdict import judge


def answer_on(
    counted: Counted,
    engine: AnyScheme,
    channels: int,
    recipe: Recipe,
    *,
    panes: CountedPanes | None = None,
    current: Plan | None = None,
    trace: str | None = None,
    goal: Goal | None = None,
) -> Answer:
    """Verdict, recommended plan, hot keys, and channels before and after it.

    Args:
        recipe: Loads, capacities, and the key groups of an engine that has them.
        panes: The same stream cut into windows.
        current: The current plan, judged instead of the engine.
        trace: Fingerprint of the trace, for the recommended plan.
        goal: Limits, and whether the frontier is asked for.

    Raises:
        BadInput: the keys of the current plan have another type.
    """
    if current is not None:
        check_key_types(current, frequencies_in(counted))
    capacities, windows = recipe.constraints.unequal, panes or CountedPanes()
    today, name = today_of(engine, channels, recipe, current)
    spread, at_random = spread_at_random(counted, today.hashing, channels, today.explicit), None
    if spread is not counted:
        at_random = AtRandomLoad(share_at_random(frequencies_in(counted), today.hashing, today.explicit), name)
        windows = CountedPanes(tuple(_spread(pane, today) for pane in windows.panes))
    placement = today.partitioner()
    by_window = counted.sums.by_window if isinstance(counted, Population) and counted.sums is not None else None
    routed: Callable[[], Floats | None] | None = None
    if windows.routed is not None:
        routed = partial(windows.routed, today) if by_window is None else partial(by_window, placement)
    verdict = judge(
        spread,
        placement,
        name,
        resources=recipe.resources,
        capacities=capacities,
        panes=windows.panes,
        routed=routed,
        goal=goal,
    )
    hot = HotKeys.from_counts(frequencies_in(counted), () if panes is None else panes.panes)
    if verdict is None:
        return Answer(verdict, hot, at_random=at_random)
    parent = None if current is None else current.content_hash()
    plan = recommended_plan(verdict, spread, recipe, today, parent, trace)
    channels_loads = None if verdict.pins_nothing else _before_after(spread, recipe, today, name, plan, "recommended")
    return Answer(verdict, hot, channels_loads, plan, verdict.frontier, at_random)


def planned(
    answer: Answer, counted: Counted, engine: AnyScheme, recipe: Recipe, plan: Plan, current: Plan | None = None
) -> Answer:
    """The answer with the channels before and after a given plan."""
    today, name = today_of(engine, plan.channels, recipe, current)
    counted = spread_at_random(counted, today.hashing, plan.channels, today.explicit)
    construction = f" ({plan.construction})" if plan.construction is not None else ""
    found = _before_after(counted, recipe, today, name, plan, f"{plan.scheme}{construction}")
    return replace(answer, channels=found)


def _spread(pane: CountedPane, today: Plan) -> CountedPane:
    return replace(
        pane,
        frequencies=frequencies_in(spread_at_random(pane.frequencies, today.hashing, today.channels, today.explicit)),
    )


def _before_after(
    counted: Counted, recipe: Recipe, today: Plan, name: str, plan: Plan, planned: str
) -> BeforeAfter | None:
    """Channels today and as the plan predicts; None if the plan has no predicted loads."""
    if not plan.predicted_loads:
        return None
    capacities: Floats | None = recipe.constraints.unequal
    before = over_average(counted, today.partitioner(), recipe.resources, capacities)
    return BeforeAfter.from_loads(name, before, planned, relative(plan.predicted_loads["network"], capacities))
