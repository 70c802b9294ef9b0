"""Judge a stream: action, evidence, confidence, variation over time."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.share_interval import LEVEL, METHOD, top_share_interval
from adapt.core.counting.tables import key_shown
from adapt.core.counting.top_share import top_share
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.out_of_sample.counted_panes import CountedPane
from adapt.core.out_of_sample.outcome import OutOfSample
from adapt.core.out_of_sample.sampling import Sampled, by_sampling
from adapt.core.out_of_sample.walk_forward import FEWEST_PAST, walk_forward
from adapt.core.out_of_sample.windows import Windows
from adapt.core.partitioning.measures.imbalance import max_over_mean
from adapt.core.partitioning.measures.imbalance_limit import MAX_IMBALANCE, check_max_imbalance
from adapt.core.partitioning.measures.population import Counted, Population
from adapt.core.partitioning.measures.resources import ResourceFunction, Resources
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import Weight
from adapt.core.verdict.classify import Skewed, classify
from adapt.core.verdict.moving import moved_within
from adapt.core.verdict.on_the_future import class_out_of_sample
from adapt.core.verdict.skew_over_time import JudgedWindow, OverTime
from adapt.core.verdict.verdict import Confidence, Verdict
from adapt.core.verdict.verdict_class import VerdictClass

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
    routed: Callable[[], Floats | None] | None = None,
    max_imbalance: float = MAX_IMBALANCE,
) -> Verdict | None:
    """Judge a stream as it is placed today; None without load.

    Args:
        resources: The network load is what is to be even; the state load is what moves. Default: "LLL".
        capacities: Of each channel, where they differ, shape (channels,).
        panes: The same stream cut by time, each to be judged by itself.
        routed: Routes every row of the panes; asked only where they do not list every key.
        max_imbalance: T, the most imbalance that is accepted.

    Raises:
        UsageError: `max_imbalance` is below 1.
    """
    check_max_imbalance(max_imbalance)
    weighed = resources or Resources()
    each = np.ones(today.channels) if capacities is None else capacities
    population = Population.from_counts(counted)
    loads, placed = population.loads(weighed.network), today.channels_of(population.keys)
    found = classify(population, loads, placed, each, max_imbalance)
    if found is None:
        return None
    top = _top(population, loads)
    verdict_class, tested, pins, sampled = found.verdict_class, None, None, None
    walked = _walked(panes, routed, today, weighed, capacities)
    if walked is not None:
        tested, pins = walked
        verdict_class = class_out_of_sample(found.verdict_class, tested, len(pins), max_imbalance)
    else:
        if found.verdict_class is VerdictClass.PINNING:
            pins = _fewest_pins(population, loads, placed, each, max_imbalance)
        if weighed.network is ResourceFunction.LINEAR and _are_draws(population.frequencies):
            sampled = _sampled(population, loads, placed, each, None if pins is None else max_imbalance)
        if sampled is not None and sampled.fails_held_out:
            verdict_class, pins = VerdictClass.UNKNOWN, None
    if verdict_class is VerdictClass.BALANCED:
        pins = None
    keys, state, after = _effect(population, loads, placed, each, weighed, pins)
    return Verdict(
        verdict_class,
        today.channels,
        engine,
        max_imbalance,
        found.imbalance,
        found.imbalance_floor,
        *top,
        found.busy_keys,
        keys_to_pin=keys,
        state_to_move=state,
        imbalance_after=after,
        keys_to_split=tuple(_named(population, row) for row in found.split[:MOST_NAMED]),
        number_to_split=len(found.split),
        split_share=found.split_share,
        proved=found.proved,
        confidence=_confidence(population.frequencies, weighed, today.channels, max_imbalance),
        out_of_sample=tested,
        over_time=_over_time(panes, today, weighed, each, max_imbalance),
        sampled=sampled,
        pins=pins,
    )


def _walked(
    panes: Sequence[CountedPane],
    routed: Callable[[], Floats | None] | None,
    today: Partitioner,
    resources: Resources,
    capacities: Floats | None,
) -> tuple[OutOfSample, ExplicitMap] | None:
    """What later windows showed, and the keys to pin; None with too few windows, or if loads do not add up by row."""
    at = [number for number, pane in enumerate(panes) if pane.frequencies.total > 0]
    held = [panes[number] for number in at]
    if len(held) <= FEWEST_PAST or resources.sources or resources.network is not ResourceFunction.LINEAR:
        return None
    is_whole = all(pane.frequencies.complete_above == 0 for pane in held)
    loads = None if routed is None or is_whole else routed()
    windows = Windows.from_panes(held, today, capacities, None if loads is None else loads[:, at])
    others = {scheme.value: make_partitioner(scheme, today.channels) for scheme in (Scheme.UNIFORM, Scheme.CONSISTENT)}
    walked = walk_forward(windows, others)
    if walked is None:
        return None
    tested, pins = walked
    return tested, ExplicitMap(windows.keys.take(pa.array(pins.rows)), pins.channels)


def _fewest_pins(
    population: Population, loads: Floats, placed: Channels, capacities: Floats, limit: float
) -> ExplicitMap | None:
    """The keys to pin so that the limit is met in-sample; None if they are not known."""
    moved = moved_within(placed, loads, population.frequencies.real, capacities, limit)
    if moved is None:
        return None
    rows = np.flatnonzero(moved != placed)
    return ExplicitMap(population.keys.take(pa.array(rows)), moved[rows])


def _sampled(
    population: Population, loads: Floats, placed: Channels, capacities: Floats, limit: float | None
) -> Sampled:
    """What the sampling of rows says of today's placement and, with a limit, of pins that keep it in-sample."""

    def plan(counts: Floats) -> Channels | None:
        return moved_within(placed, counts, population.listed, capacities, limit or 1.0)

    counted = population.frequencies
    unlisted = float(loads[population.listed :].sum())
    error = float(np.sqrt(unlisted * counted.complete_above / len(capacities)))  # of hashing keys of this weight
    return by_sampling(loads, counted.rows, placed, capacities, None if limit is None else plan, error)


def _effect(
    population: Population,
    loads: Floats,
    placed: Channels,
    capacities: Floats,
    resources: Resources,
    pins: ExplicitMap | None,
) -> tuple[int | None, float | None, float | None]:
    """Keys to pin, their share of the state, the imbalance after; all None without pins."""
    if pins is None:
        return None, None, None
    rows = pins.rows_of(population.keys[: population.listed])
    moved = placed.copy()
    moved[: len(rows)] = np.where(rows >= 0, pins.channels[rows] if len(pins) else 0, moved[: len(rows)])
    state, is_moved = population.loads(resources.state), moved != placed
    total = float(state.sum())
    share = float(state[is_moved].sum()) / total if total else 0.0
    return len(pins), share, max_over_mean(np.bincount(moved, loads, len(capacities)).astype(np.float64), capacities)


def _over_time(
    panes: Sequence[CountedPane], today: Partitioner, resources: Resources, capacities: Floats, limit: float
) -> OverTime | None:
    """Every window judged separately; None if no window has load, or if loads were measured in columns."""
    if resources.sources:
        return None
    judged = []
    for pane in panes:
        population = Population.from_counts(pane.frequencies)
        loads, placed = population.loads(resources.network), today.channels_of(population.keys)
        found = classify(population, loads, placed, capacities, limit)
        if found is not None:
            judged.append(_judged(pane, population, loads, found))
    return OverTime(tuple(judged)) if len(judged) > 1 else None


def _judged(pane: CountedPane, population: Population, loads: Floats, found: Skewed) -> JudgedWindow:
    top = _top(population, loads)
    rows = pane.frequencies.rows
    return JudgedWindow(pane.start_us, rows, *top, found.imbalance, found.imbalance_floor, found.verdict_class)


def _top(population: Population, loads: Floats) -> tuple[str, float]:
    """The hottest listed key and its share of the load."""
    if not population.listed:
        return "", 0.0
    row = int(np.argmax(loads[: population.listed]))
    return _named(population, row), float(loads[row]) / float(loads.sum())


def _named(population: Population, row: int) -> str:
    return key_shown(population.frequencies.keys[row].as_py())


def _confidence(frequencies: Frequencies, resources: Resources, channels: int, limit: float) -> Confidence | None:
    """Confidence interval of f_max: of sampled rows, or the counter's error bound for weighted rows."""
    counted = top_share(frequencies)
    if resources.network is not ResourceFunction.LINEAR or counted is None or not len(frequencies.keys):
        return None
    are_draws = _are_draws(frequencies)
    if are_draws:
        low, high = (round(share * frequencies.rows) for share in counted)
        ends = top_share_interval(low, high, frequencies.rows)
    elif counted[1] > counted[0]:
        ends = counted
    else:
        return None
    least, most = max(1.0, channels * ends[0]), max(1.0, channels * ends[1])
    level, method = (LEVEL, METHOD) if are_draws else (None, BY_COUNTER)
    return Confidence(*ends, least, most, level, method, (least <= limit) == (most <= limit))


def _are_draws(frequencies: Frequencies) -> bool:
    """Whether every row has weight 1."""
    return frequencies.weight is Weight.COUNT and frequencies.rows == round(frequencies.total)
