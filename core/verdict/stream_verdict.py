"""Judge a stream: action, evidence, confidence, variation over time."""

from collections.abc import Callable, Sequence

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import LEVEL, METHOD, Frequencies, top_share, top_share_interval
from adapt.core.counting.tables import key_shown
from adapt.core.keys.partitioner import Partitioner
from adapt.core.out_of_sample.walk_forward import FEWEST_PAST, Walk
from adapt.core.out_of_sample.windows import CountedPane, Whole, Windows
from adapt.core.partitioning.measures.floors import best_possible
from adapt.core.partitioning.measures.population import Counted, Population
from adapt.core.partitioning.measures.resources import ResourceFunction, Resources
from adapt.core.stream import Weight
from adapt.core.verdict.busiest import busiest
from adapt.core.verdict.classify import Skewed, classify
from adapt.core.verdict.goal import Goal
from adapt.core.verdict.hot_keys import moved_keys
from adapt.core.verdict.planning import planned, rescaled
from adapt.core.verdict.remedies import Remedy, Way
from adapt.core.verdict.skew_over_time import JudgedWindow, OverTime
from adapt.core.verdict.verdict import Confidence, Verdict
from adapt.core.verdict.verdict_class import VerdictClass

FEWEST_ROWS = 30
"""Fewer rows are not judged."""

BY_COUNTER = "counter error bound; weighted rows are not independent draws"

MOST_NAMED = 20
"""Most keys to split that are named, hottest first."""


def judge(
    counted: Counted,
    today: Partitioner,
    engine: str,
    *,
    resources: Resources | None = None,
    capacities: Floats | None = None,
    panes: Sequence[CountedPane] = (),
    routed: Callable[[], Floats | None] | Floats | None = None,
    goal: Goal | None = None,
) -> Verdict | None:
    """Judge a stream as it is placed today; None without load.

    Args:
        resources: The network load is what is to be even; the state load is what moves. Default: "LLL".
        capacities: Of each channel, where they differ, shape (channels,).
        panes: The same stream cut by time, each to be judged by itself.
        routed: True load of each channel in each pane, shape (channels, panes); or what routes every row of the panes,
            asked only where they do not list every key.
        goal: Limits, and whether the frontier is asked for.
    """
    goal = goal or Goal()
    weighed = resources or Resources()
    each = np.ones(today.channels) if capacities is None else capacities
    population = Population.from_counts(counted, today)
    loads, placed = population.loads(weighed.network), population.placed(today)
    found = classify(population, loads, placed, each, goal.max_imbalance)
    if found is None:
        return None
    top = _top(population, loads)
    is_known = bool(weighed.sources) or all(pane.frequencies.complete_above == 0 for pane in panes)
    windows = (None if is_known else routed()) if callable(routed) else routed
    keys = population.keys[: population.frequencies.real]
    whole = Whole(keys, loads, population.loads(weighed.state), placed, each, population.frequencies.key_type)
    walk = _walk(panes, windows, today, weighed, capacities, goal, whole)
    is_sample = weighed.network is ResourceFunction.LINEAR and _are_draws(population.frequencies)
    draws = population.frequencies if is_sample else None
    few_rows = _few_rows(population.frequencies)
    known = {"is_hashed": population.rest is None, "is_complete": population.frequencies.complete_above == 0}
    plan = planned(whole, walk, found, goal, draws, **known, few_rows=few_rows is not None)
    remedies = plan.remedies
    if goal.rescaled is not None and capacities is None and plan.verdict_class is not VerdictClass.BALANCED:
        other = rescaled(whole, walk, goal.rescaled, goal.max_imbalance)
        remedies = (*remedies, *([] if other is None else [other]), Remedy(Way.KEY))
    is_moving = bool(plan.pins or plan.splits)
    state, after = whole.effect(plan.pins, plan.splits) if is_moving else (None, None)
    return Verdict(
        plan.verdict_class,
        today.channels,
        engine,
        goal.max_imbalance,
        found.imbalance,
        found.best_possible,
        *top,
        found.busy_keys,
        keys_to_pin=len(plan.pins) if is_moving else None,
        state_to_move=state,
        imbalance_after=after,
        keys_to_split=tuple(_named(population, row) for row in found.split[:MOST_NAMED]),
        number_to_split=len(found.split),
        split_share=found.split_share,
        proved=found.proved,
        confidence=_confidence(population.frequencies, weighed, each, found.best_possible, goal),
        out_of_sample=plan.tested,
        over_time=_over_time(panes, windows, today, weighed, each, goal.max_imbalance),
        sampled=plan.sampled,
        limits=goal.limits,
        estimate=population.is_estimate(weighed) or (windows is None and not is_known),
        few_rows=few_rows,
        mergeable=goal.mergeable,
        load="rows" if (by := population.frequencies.weight) is Weight.COUNT else by.value,
        busiest=busiest(keys, loads, _of_one(population, loads), placed, each, engine),
        moved_keys=moved_keys(whole, plan.pins, plan.splits),
        remedies=remedies,
        pins=plan.pins if is_moving else None,
        splits=plan.splits if is_moving else None,
        frontier=plan.frontier,
    )


def _of_one(population: Population, loads: Floats) -> Floats:
    """Load of each single key of an entry; shape (entries,)."""
    represented = population.represented
    return loads if represented is None else np.asarray(loads / np.maximum(represented, 1.0))


def _walk(
    panes: Sequence[CountedPane],
    routed: Floats | None,
    today: Partitioner,
    resources: Resources,
    capacities: Floats | None,
    goal: Goal,
    whole: Whole,
) -> Walk | None:
    """Plans on later windows; None with too few of them, or if loads do not add up by row."""
    at = [number for number, pane in enumerate(panes) if pane.frequencies.total > 0]
    held = [panes[number] for number in at]
    if len(held) <= FEWEST_PAST or resources.sources or resources.network is not ResourceFunction.LINEAR:
        return None
    loads = None if routed is None else routed[:, at]
    windows = Windows.from_panes(held, today, capacities, loads)
    return Walk.over(windows, goal.limits, whole.shares_of_state(windows.keys))


def _over_time(
    panes: Sequence[CountedPane],
    routed: Floats | None,
    today: Partitioner,
    resources: Resources,
    capacities: Floats,
    limit: float,
) -> OverTime | None:
    """Every window judged separately; None if no window has load, or if loads were measured in columns."""
    if resources.sources:
        return None
    judged = []
    for at, pane in enumerate(panes):
        if routed is None:
            population = Population.from_counts(pane.frequencies, today)
        else:
            population = Population.on_channels(pane.frequencies, today, routed[:, at])
        loads, placed = population.loads(resources.network), population.placed(today)
        found = classify(population, loads, placed, capacities, limit)
        if found is not None:
            judged.append(_judged(pane, population, loads, found))
    return OverTime(tuple(judged)) if len(judged) > 1 else None


def _judged(pane: CountedPane, population: Population, loads: Floats, found: Skewed) -> JudgedWindow:
    top = _top(population, loads)
    rows = pane.frequencies.rows
    return JudgedWindow(pane.start_us, rows, *top, found.imbalance, found.best_possible, found.verdict_class)


def _top(population: Population, loads: Floats) -> tuple[str, float]:
    """The hottest listed key and its share of the load."""
    if not population.listed:
        return "", 0.0
    row = int(np.argmax(loads[: population.listed]))
    return _named(population, row), float(loads[row]) / float(loads.sum())


def _named(population: Population, row: int) -> str:
    return key_shown(population.frequencies.keys[row].as_py())


def _confidence(
    frequencies: Frequencies, resources: Resources, capacities: Floats, floor: float, goal: Goal
) -> Confidence | None:
    """Confidence interval of f_max, and of the floor: by sampled rows, or the counter's error bound."""
    counted = top_share(frequencies)
    if resources.network is not ResourceFunction.LINEAR or counted is None or not len(frequencies.keys):
        return None
    are_draws = _are_draws(frequencies)
    if are_draws:
        draws = round(frequencies.rows / (goal.sample_effect or 1.0))
        low, high = (round(share * draws) for share in counted)
        ends = top_share_interval(low, high, draws)
    elif counted[1] > counted[0]:
        ends = counted
    else:
        return None
    share = counted[0]
    least, alone, most = (
        best_possible(each, 1.0, len(capacities), capacities) or 1.0 for each in (ends[0], share, ends[1])
    )
    if floor > alone * (1 + 1e-9) and share > 0:
        # Several keys together decide: what they add to the mean is as uncertain as the hottest of them, at most.
        least, most = (max(one, 1 + (floor - 1) * each / share) for one, each in zip((least, most), ends, strict=True))
    level, method = (LEVEL, METHOD) if are_draws else (None, BY_COUNTER)
    return Confidence(*ends, least, most, level, method, (least <= goal.max_imbalance) == (most <= goal.max_imbalance))


def _are_draws(frequencies: Frequencies) -> bool:
    """Whether every row has weight 1; a file of counts may hold shares."""
    keys = np.count_nonzero(frequencies.count_low[: frequencies.real])
    return frequencies.weight is Weight.COUNT and bool(keys <= frequencies.rows == round(frequencies.total))


def _few_rows(frequencies: Frequencies) -> int | None:
    """The number of rows, where these are too few to be judged."""
    are_rows = frequencies.weight is not Weight.COUNT or _are_draws(frequencies)
    return frequencies.rows if are_rows and frequencies.rows < FEWEST_ROWS else None
