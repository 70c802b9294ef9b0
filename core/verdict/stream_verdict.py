"""Judge a stream: action, evidence, confidence, variation over time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import LEVEL, METHOD, Frequencies, top_share, top_share_interval
from adapt.core.counting.tables import key_shown
from adapt.core.keys.columns import key_type_of
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.out_of_sample.frontier import Choices
from adapt.core.out_of_sample.outcome import LEVEL as LEVEL_OF_ROWS
from adapt.core.out_of_sample.outcome import OutOfSample
from adapt.core.out_of_sample.sampling import Sampled, by_sampling
from adapt.core.out_of_sample.walk_forward import FEWEST_PAST, Walk
from adapt.core.out_of_sample.windows import CountedPane, Whole, Windows
from adapt.core.partitioning.frontier.frontier import Frontier
from adapt.core.partitioning.frontier.today import Budget
from adapt.core.partitioning.measures.floors import best_possible
from adapt.core.partitioning.measures.population import Counted, Population
from adapt.core.partitioning.measures.resources import ResourceFunction, Resources
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import Weight
from adapt.core.verdict.classify import Skewed, classify
from adapt.core.verdict.goal import Goal
from adapt.core.verdict.moving import moved_within
from adapt.core.verdict.skew_over_time import JudgedWindow, OverTime
from adapt.core.verdict.verdict import Confidence, Verdict
from adapt.core.verdict.verdict_class import VerdictClass

_ROUNDING = 1e-9

_MUCH = 0.95
"""Rebuilding pays if it brings the median imbalance below this part of that of a plan that is kept."""


def class_out_of_sample(
    in_sample: VerdictClass, tested: OutOfSample, pins: int, limit: float, most_moved: float | None = None
) -> VerdictClass:
    """The class by tested windows.

    Balanced: today's placement is within the limit in half of them. Otherwise, if some of the hottest keys have to be
    split, the class in-sample, unless pinned keys keep the limit all the same; else pinning, where a plan has lowered
    the imbalance for certain, and refreshing where rebuilding it keeps the limit and keeping it does not, or lowers the
    imbalance much further; else nobody can tell.

    Args:
        in_sample: The class by all counted rows.
        pins: Number of keys that the recommended plan pins.
        limit: Tolerated imbalance, from 1.
        most_moved: Largest share of state that a refresh may move.
    """
    allowed = limit * (1 + _ROUNDING)
    kept, rebuilt = tested.kept.median, tested.rebuilt.median
    if tested.today.median <= allowed:
        return VerdictClass.BALANCED
    if pins and kept <= allowed:
        return VerdictClass.PINNING
    refreshed = bool(tested.rebuilt.pins) and rebuilt < _MUCH * min(kept, tested.today.median)
    refreshed &= most_moved is None or tested.rebuilt.state_to_move <= most_moved
    if refreshed and rebuilt <= allowed:
        return VerdictClass.REFRESHING
    if in_sample in (VerdictClass.SPLITTING, VerdictClass.ANOTHER_KEY):
        return in_sample
    if refreshed:
        return VerdictClass.REFRESHING
    return VerdictClass.PINNING if pins else VerdictClass.UNKNOWN


OF_SAMPLE = 0.95
"""Confidence of the imbalance of a topic by a sample of its records."""

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
    max_imbalance = goal.max_imbalance
    weighed = resources or Resources()
    each = np.ones(today.channels) if capacities is None else capacities
    population = Population.from_counts(counted, today)
    loads, placed = population.loads(weighed.network), population.placed(today)
    found = classify(population, loads, placed, each, max_imbalance)
    if found is None:
        return None
    top = _top(population, loads)
    is_known = bool(weighed.sources) or all(pane.frequencies.complete_above == 0 for pane in panes)
    windows = (None if is_known else routed()) if callable(routed) else routed
    whole = Whole(population.keys[: population.frequencies.real], loads, population.loads(weighed.state), placed, each)
    walk = _walk(panes, windows, today, weighed, capacities, goal.limits)
    is_sample = weighed.network is ResourceFunction.LINEAR and _are_draws(population.frequencies)
    draws = population.frequencies if is_sample else None
    plan = _planned(whole, walk, found.verdict_class, goal, draws, is_hashed=population.rest is None)
    few_rows = _few_rows(population.frequencies)
    if few_rows is not None:
        plan = replace(plan, verdict_class=VerdictClass.UNKNOWN, pins=None)
    pins = plan.pins
    state, after = (None, None) if pins is None else whole.effect(pins)
    return Verdict(
        plan.verdict_class,
        today.channels,
        engine,
        max_imbalance,
        found.imbalance,
        found.best_possible,
        *top,
        found.busy_keys,
        keys_to_pin=None if pins is None else len(pins),
        state_to_move=state,
        imbalance_after=after,
        keys_to_split=tuple(_named(population, row) for row in found.split[:MOST_NAMED]),
        number_to_split=len(found.split),
        split_share=found.split_share,
        proved=found.proved,
        confidence=_confidence(population.frequencies, weighed, each, found.best_possible, goal),
        out_of_sample=plan.tested,
        over_time=_over_time(panes, windows, today, weighed, each, max_imbalance),
        sampled=plan.sampled,
        limits=goal.limits,
        estimate=population.is_estimate(weighed) or (windows is None and not is_known),
        few_rows=few_rows,
        pins=pins,
        frontier=plan.frontier,
    )


def _walk(
    panes: Sequence[CountedPane],
    routed: Floats | None,
    today: Partitioner,
    resources: Resources,
    capacities: Floats | None,
    limits: Budget,
) -> Walk | None:
    """Plans on later windows; None with too few of them, or if loads do not add up by row."""
    at = [number for number, pane in enumerate(panes) if pane.frequencies.total > 0]
    held = [panes[number] for number in at]
    if len(held) <= FEWEST_PAST or resources.sources or resources.network is not ResourceFunction.LINEAR:
        return None
    loads = None if routed is None else routed[:, at]
    return Walk.over(Windows.from_panes(held, today, capacities, loads), limits)


@dataclass(frozen=True, slots=True)
class _Planned:
    """The class of a verdict, and its plan."""

    verdict_class: VerdictClass
    pins: ExplicitMap | None
    tested: OutOfSample | None
    sampled: Sampled | None
    frontier: Frontier | None


def _planned(
    whole: Whole, walk: Walk | None, in_sample: VerdictClass, goal: Goal, draws: Frequencies | None, *, is_hashed: bool
) -> _Planned:
    """The pins by the evidence of later windows, or the best within the limits; None where nothing is to be pinned.

    Args:
        draws: The counted rows, if they are independent draws.
        is_hashed: Whether the load of unlisted keys on a channel is that of made-up ones.
    """
    choices, limit = Choices(whole, walk, goal.limits), goal.max_imbalance
    channels = len(whole.capacities)
    others = {scheme.value: make_partitioner(scheme, channels) for scheme in (Scheme.UNIFORM, Scheme.CONSISTENT)}
    frontier: Frontier | None = None
    tested: OutOfSample | None = None
    pins: ExplicitMap | None = None
    verdict_class = in_sample
    if goal.is_limited:
        frontier, pins, tested = choices.best(others)
        if in_sample is VerdictClass.PINNING and not len(pins):
            verdict_class = VerdictClass.UNKNOWN
    elif walk is not None:
        tested, chosen = walk.chosen(others)
        pins = ExplicitMap(walk.windows.keys.take(pa.array(chosen.rows)), chosen.channels)
    elif in_sample is VerdictClass.PINNING:
        pins = _fewest_pins(whole, limit)
    sampled = None
    if draws is not None and (walk is None or goal.sample_effect is not None):
        judged_pins = pins is not None and walk is None and not goal.is_limited
        sampled = _sampled(whole, draws, limit if judged_pins else None, goal.sample_effect, is_hashed=is_hashed)
        if sampled.fails_held_out:
            verdict_class, pins = VerdictClass.UNKNOWN, None
    if tested is not None and pins is not None:
        verdict_class = class_out_of_sample(in_sample, tested, len(pins), limit, goal.limits.max_moved_state)
    if verdict_class is VerdictClass.BALANCED:
        pins = None
    if goal.shows_frontier and (frontier is None or pins is None):
        frontier = choices.frontier(
            ExplicitMap.from_mapping({}, key_type_of(whole.keys.type)) if pins is None else pins
        )
    return _Planned(verdict_class, pins, tested, sampled, frontier)


def _fewest_pins(whole: Whole, limit: float) -> ExplicitMap | None:
    """The keys to pin so that the limit is met in-sample; None if they are not known."""
    moved = moved_within(whole.home, whole.loads, len(whole.keys), whole.capacities, limit)
    return None if moved is None else whole.pins(np.flatnonzero(moved != whole.home), moved[moved != whole.home])


def _sampled(
    whole: Whole, counted: Frequencies, limit: float | None, effect: float | None, *, is_hashed: bool
) -> Sampled:
    """What the sampling of rows says of today's placement and, with a limit, of pins that keep it in-sample."""

    def plan(counts: Floats) -> Channels | None:
        return moved_within(whole.home, counts, len(whole.keys), whole.capacities, limit or 1.0)

    unlisted = float(whole.loads[len(whole.keys) :].sum())
    of_hashing = float(np.sqrt(unlisted * counted.complete_above / len(whole.capacities)))  # of keys of this weight
    made = None if limit is None else plan
    error = of_hashing if is_hashed else 0.0
    level, rows_a_draw = (LEVEL_OF_ROWS, 1.0) if effect is None else (OF_SAMPLE, effect)
    draws = whole.loads / rows_a_draw
    return by_sampling(draws, counted.rows, whole.home, whole.capacities, made, error / rows_a_draw, level)


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
