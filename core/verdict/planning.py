"""Remedies of a skewed stream, and the recommended one."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Frequencies
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.out_of_sample.frontier import Choices
from adapt.core.out_of_sample.outcome import LEVEL as LEVEL_OF_ROWS
from adapt.core.out_of_sample.outcome import TODAY, OutOfSample, Track
from adapt.core.out_of_sample.sampling import Sampled, by_sampling
from adapt.core.out_of_sample.walk_forward import NOTHING, Moves, Walk, plans_of
from adapt.core.out_of_sample.walk_forward import Way as Rule
from adapt.core.out_of_sample.windows import Whole, Windows, loads_of
from adapt.core.partitioning.frontier.frontier import Frontier
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.split_map import SplitMap
from adapt.core.verdict.classify import Skewed
from adapt.core.verdict.goal import Goal
from adapt.core.verdict.moving import moved_within
from adapt.core.verdict.remedies import Remedy, Way
from adapt.core.verdict.verdict_class import VerdictClass

OF_SAMPLE = 0.95
"""Confidence of the imbalance of a topic by a sample of its records."""

MOST_STEPS = 4
"""Another number of workers is at most this far away."""

_ROUNDING = 1e-9

_WAYS = {Rule.KEPT: Way.PIN, Rule.REBUILT: Way.REBUILD, Rule.SPLIT: Way.SPLIT}

_CLASSES = {
    Way.PIN: VerdictClass.PINNING,
    Way.REBUILD: VerdictClass.REBUILDING,
    Way.SPLIT: VerdictClass.SPLITTING,
}


@dataclass(frozen=True, slots=True)
class Planned:
    """A verdict class, its plan, and other remedies."""

    verdict_class: VerdictClass
    remedies: tuple[Remedy, ...]  # doing nothing first
    pins: ExplicitMap  # of the recommended remedy
    splits: SplitMap
    tested: OutOfSample | None = None
    sampled: Sampled | None = None
    frontier: Frontier | None = None

    @property
    def chosen(self) -> Remedy | None:
        """The recommended remedy.

        None where keys should be pinned, and too few are listed to name them.
        """
        return next((each for each in self.remedies if each.recommended), None)


def planned(
    whole: Whole,
    walk: Walk | None,
    found: Skewed,
    goal: Goal,
    draws: Frequencies | None,
    *,
    is_hashed: bool,
    is_complete: bool,
    few_rows: bool,
) -> Planned:
    """The remedies, and the plan of the recommended one.

    Args:
        draws: The counted rows, if they are independent draws.
        is_hashed: Whether the load of unlisted keys on a channel is that of made-up ones.
        is_complete: Whether every key is listed.
        few_rows: Whether rows are too few to recommend anything.
    """
    choices = Choices(whole, walk, goal.limits)
    plan = (
        _in_sample(whole, choices, found, goal, is_complete) if walk is None else _on_windows(whole, walk, found, goal)
    )
    if draws is not None and (walk is None or goal.sample_effect is not None):
        is_pinned = plan.verdict_class is VerdictClass.PINNING and walk is None and not goal.is_limited
        limit = goal.max_imbalance if is_pinned else None
        sampled = _sampled(whole, draws, limit, goal.sample_effect, is_hashed=is_hashed)
        plan, few_rows = replace(plan, sampled=sampled), few_rows or sampled.fails_held_out
    if few_rows:
        plan = _nothing(plan, whole)
    if goal.shows_frontier and (plan.frontier is None or plan.chosen is plan.remedies[0]):
        chosen = plan.chosen
        is_split = chosen is not None and chosen.splits > 0
        plan = replace(
            plan, frontier=choices.frontier(None if is_split else plan.pins, None if chosen is None else chosen.later)
        )
    return plan


def _nothing(plan: Planned, whole: Whole) -> Planned:
    """The same remedies, none of them certain enough to be recommended."""
    remedies = tuple(replace(each, recommended=each.way is Way.NOTHING) for each in plan.remedies)
    tested = None if plan.tested is None else replace(plan.tested, recommended=TODAY)
    return Planned(VerdictClass.UNKNOWN, remedies, *_mapped(whole, whole.keys, NOTHING), tested, plan.sampled)


def _on_windows(whole: Whole, walk: Walk, found: Skewed, goal: Goal) -> Planned:
    """The remedies as later windows judge them."""
    limit, today = goal.max_imbalance, walk.track_today
    is_balanced = today.median <= limit * (1 + _ROUNDING)
    tried = [] if is_balanced else [one for rule in Rule if (one := walk.best(rule, limit)) is not None]
    able = [one for one in tried if goal.mergeable or one.way is not Rule.SPLIT]
    chosen = walk.chosen(able, limit, goal.limits.max_moved_state)
    channels, windows = len(whole.capacities), len(walk.tested)
    nothing = Remedy(Way.NOTHING, workers=channels, imbalance=found.imbalance, state_moved=0.0)
    remedies = [replace(nothing.over(today, today, windows), recommended=chosen is None)]
    own = _mapped(whole, walk.windows.keys, NOTHING)
    for one in tried:
        is_chosen = one is chosen
        placed = _mapped(whole, walk.windows.keys, one.moves)
        share, after = whole.effect(*placed)
        moved = one.cost[0] if one.way is Rule.REBUILT else share
        remedy = Remedy(
            *(_WAYS[one.way], len(placed[0]), len(placed[1]), channels, after),
            state_moved=moved,
            certain=one.is_certain,
            recommended=is_chosen,
        )
        remedies.append(remedy.over(one.track, today, windows))
        own = placed if is_chosen else own
    needed = VerdictClass.UNKNOWN
    if found.verdict_class in (VerdictClass.SPLITTING, VerdictClass.ANOTHER_KEY):
        needed = found.verdict_class
    verdict_class = VerdictClass.BALANCED if is_balanced else needed if chosen is None else _CLASSES[_WAYS[chosen.way]]
    return Planned(verdict_class, tuple(remedies), *own, walk.outcome(tried, chosen, goal.others))


def _in_sample(whole: Whole, choices: Choices, found: Skewed, goal: Goal, is_complete: bool) -> Planned:
    """The remedies by all counted rows, where there are no later windows."""
    channels, verdict_class = len(whole.capacities), found.verdict_class
    none = _mapped(whole, whole.keys, NOTHING)
    nothing = Remedy(Way.NOTHING, workers=channels, imbalance=found.imbalance, state_moved=0.0)
    if verdict_class is VerdictClass.BALANCED:
        return Planned(verdict_class, (replace(nothing, recommended=True),), *none)
    placed, remedies, frontier = [none], [nothing], None
    fewest: ExplicitMap | None = None
    if goal.is_limited:
        frontier, fewest = choices.within()
        verdict_class = VerdictClass.UNKNOWN if verdict_class is VerdictClass.PINNING else verdict_class
    elif verdict_class is VerdictClass.PINNING:
        fewest = _fewest_pins(whole, goal.max_imbalance)
        if fewest is None and is_complete:
            _, fewest = choices.within()
    split = _split_in_sample(whole, goal)
    tried = [(Way.PIN, (fewest, none[1]))] if fewest else []
    tried += [] if split is None else [(Way.SPLIT, split)]
    for way, own in tried:
        share, after = whole.effect(*own)
        remedies.append(Remedy(way, len(own[0]), len(own[1]), channels, after, state_moved=share))
        placed.append(own)
    if verdict_class is VerdictClass.PINNING and fewest is None:
        return Planned(verdict_class, tuple(remedies), *none)
    open_ways = {Way.PIN, *([Way.SPLIT] if goal.mergeable else [])}
    able = [at for at, one in enumerate(remedies) if one.way in open_ways and (one.imbalance or 0) < found.imbalance]
    within = [at for at in able if (remedies[at].imbalance or 0) <= goal.max_imbalance * (1 + _ROUNDING)]
    best = min(within, key=lambda at: remedies[at].cost, default=None)
    if best is None:
        best = min(able, key=lambda at: remedies[at].imbalance or 0.0, default=0)
    remedies[best] = replace(remedies[best], recommended=True)
    verdict_class = _CLASSES[remedies[best].way] if best else verdict_class
    return Planned(verdict_class, tuple(remedies), *placed[best], frontier=frontier)


def _split_in_sample(whole: Whole, goal: Goal) -> tuple[ExplicitMap, SplitMap] | None:
    """The plan with split keys that the rule takes on all counted rows; None where none lowers the imbalance."""
    listed, total = len(whole.keys), float(whole.loads.sum())
    shares = (whole.loads[:listed] / total)[:, None]
    loads = np.bincount(whole.home, whole.loads / total, len(whole.capacities)).astype(np.float64)[:, None]
    one = Windows((0,), (1,), whole.keys, shares, whole.home[:listed], loads, whole.capacities, np.ones(1))
    state = whole.shares_of_state(whole.keys)
    found = []
    for moves in plans_of(one, 1, goal.limits, state):
        after = float(one.imbalances(moves.loads(one, 0))[0])
        is_within = after <= goal.max_imbalance * (1 + _ROUNDING)
        cost = (moves.moved(NOTHING, one, state), len(moves)) if is_within else (after, 0)
        if moves.splits and after < float(one.imbalances(loads)[0]):
            found.append((not is_within, cost, moves))
    best = min(found, key=lambda each: each[:2], default=None)
    return None if best is None else _mapped(whole, whole.keys, best[2])


def _mapped(whole: Whole, keys: pa.Array, moves: Moves) -> tuple[ExplicitMap, SplitMap]:
    """The keys of a plan's rows with their channels."""
    pins = ExplicitMap(keys.take(pa.array(moves.rows)), moves.channels)
    split = keys.take(pa.array(list(moves.splits), pa.int64())).to_pylist()
    return pins, SplitMap(dict(zip(split, moves.splits.values(), strict=True)), whole.key_type)


def rescaled(whole: Whole, walk: Walk | None, at: Callable[[int], Partitioner], limit: float) -> Remedy | None:
    """The nearest number of workers that keeps the limit.

    If none does, that of least imbalance. Keys that are not listed count as spread evenly.

    Args:
        at: Today's placement at a number of channels.
        limit: Tolerated imbalance, from 1.
    """
    channels, listed = len(whole.capacities), len(whole.keys)
    steps = [channels + step * sign for step in range(1, MOST_STEPS + 1) for sign in (1, -1)]
    in_sample = (whole.loads[:listed] / whole.loads.sum())[:, None]
    keys, shares = (whole.keys, in_sample) if walk is None else (walk.windows.keys, walk.windows.shares[:, walk.past :])
    found: dict[int, Floats] = {}  # imbalance by window, of each number that was tried
    for number in [number for number in steps if number > 1]:
        found[number] = _imbalances(at(number), keys, shares)
        if float(np.median(found[number])) <= limit:
            break
    if not found:
        return None
    best = min(found, key=lambda number: float(np.median(found[number])))
    placed, state = at(best).channels_of(whole.keys), float(whole.state.sum()) or 1.0
    moved = float(whole.state[:listed][placed != whole.home[:listed]].sum())
    after = float(_imbalances(at(best), whole.keys, in_sample)[0])
    remedy = Remedy(Way.WORKERS, workers=best, imbalance=after, state_moved=moved / state)
    if walk is None:
        return remedy
    return remedy.over(Track(tuple(found[best].tolist()), 0.0), walk.track_today, len(walk.tested))


def _imbalances(partitioner: Partitioner, keys: pa.Array, shares: Floats) -> Floats:
    """Imbalance of each window as a partitioner places its keys; shape (windows,)."""
    loads = loads_of(partitioner.channels_of(keys), shares, np.ones(partitioner.channels))
    return np.asarray(loads.max(axis=0) * partitioner.channels)


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
