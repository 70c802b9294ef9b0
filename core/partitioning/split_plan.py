"""Plans that split hot keys over fixed channels."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.partitioning.build import Recipe, build_partitioner, problem_of
from adapt.core.partitioning.measures.imbalance import channel_loads
from adapt.core.partitioning.measures.metrics import Metrics, Migration, metrics_of, migration
from adapt.core.partitioning.measures.population import Counted, Population
from adapt.core.partitioning.measures.resources import listed_loads, load_of
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.plans.registry import max_parallelism_of
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.partitioning.schemes.split_map import SplitMap, SplitPartitioner
from adapt.core.partitioning.splitting.split import MergeCost
from adapt.core.stream import Key

LARGEST_PARTS = (1.0, 0.5, 0.25, 0.125)
"""Sizes of the largest share of a split key, in mean loads; larger ones need fewer merge messages."""


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """A plan with split keys, measured."""

    plan: Plan
    metrics: Metrics
    merge: MergeCost


def split_plan(
    counted: Counted,
    recipe: Recipe,
    channels: int,
    limit: float,
    trace: str | None = None,
    before: Partitioner | None = None,
) -> SplitPlan:
    """Split the keys above the mean load, and pin others as needed.

    A key is split into equal parts that are at most a fraction of the mean load: the largest fraction of
    `LARGEST_PARTS` that keeps the limit, else the one of least imbalance. Split keys, hottest first, go to the least
    loaded channels, all different. Other keys stay where their hash has them, until the limit is kept: as long as
    a channel is above it, its hottest key that fits on the least loaded channel is pinned there.

    Args:
        recipe: The base, the load, and the keys that may be pinned.
        limit: Highest tolerated imbalance.
        before: The placement from which state migrates, which may split keys. Default: migration is not measured.
    """
    hybrid = replace(recipe, scheme=Scheme.HYBRID)
    base = build_partitioner(counted, replace(recipe, scheme=hybrid.hashing), channels)
    population = Population.from_counts(counted, base, *(() if before is None else (_whole(before),)))
    hot = problem_of(population, hybrid, channels).keys
    found: SplitPlan | None = None
    for largest in LARGEST_PARTS:
        dealer = _assigned(population, recipe, base, hot, limit, largest)
        metrics = dealt_metrics(population, recipe, dealer, before)
        if found is None or (metrics.imbalance or 0.0) < (found.metrics.imbalance or 0.0):
            found = _described(population, hybrid, dealer, metrics, trace)
        if (metrics.imbalance or 0.0) <= limit:
            break
    assert found is not None
    return found


def dealt_metrics(
    population: Population, recipe: Recipe, dealer: SplitPartitioner, before: Partitioner | None = None
) -> Metrics:
    """The metrics of a plan with split keys; floors of whole keys.

    Args:
        before: The placement from which state migrates.
    """
    resources = recipe.resources
    rows = dealer.rows_of(population.keys)
    kept = np.ones(population.entries, np.bool_)
    kept[np.flatnonzero(rows >= 0)] = False
    loads = channel_loads(population.placed(dealer.whole), population, resources, dealer.channels, kept)
    split = population.keys.filter(pa.array(rows >= 0))
    counts = population.frequencies.count_low[np.flatnonzero(rows[: population.listed] >= 0)]
    dealing = dealer.deal(split)
    parts = counts[dealing.rows] * dealing.share
    loads = loads + np.stack(
        [np.bincount(dealing.channels, load_of(load, parts), dealer.channels) for load in resources.loads]
    )
    whole = dealer.whole
    return metrics_of(
        loads,
        resources,
        total=float(population.loads(resources.network).sum()),
        heavy=population.heaviest(resources.network),
        pair_floor=None,
        pinned_keys=len(whole.explicit) if isinstance(whole, HybridPartitioner) else 0,
        moved=None if before is None else _migration(population, recipe, before, dealer),
    )


def _migration(population: Population, recipe: Recipe, before: Partitioner, after: SplitPartitioner) -> Migration:
    """The state that moves.

    A split key has an equal part on each of its channels; parts stay where it has a channel again.
    """
    old, new = population.placed(_whole(before)), population.placed(after.whole)
    leaving = (old != new).astype(np.float64)
    former = before.splits if isinstance(before, SplitPartitioner) else SplitMap({}, population.frequencies.key_type)
    for key in {*former, *after.splits}:
        row = pc.index(population.keys, pa.scalar(key, population.keys.type)).as_py()
        if row >= 0:
            places = {*former.get(key, (int(old[row]),))}
            leaving[row] = len(places - {*after.splits.get(key, (int(new[row]),))}) / len(places)
    state = population.loads(recipe.resources.state)
    return migration(old, new, state, after.channels, population.represented, leaving)


def _whole(partitioner: Partitioner) -> Partitioner:
    """What places the keys that are not split."""
    return partitioner.whole if isinstance(partitioner, SplitPartitioner) else partitioner


def _assigned(
    population: Population, recipe: Recipe, base: Partitioner, hot: pa.Array, limit: float, largest: float
) -> SplitPartitioner:
    """Split and pinned keys; a part has at most `largest` mean loads."""
    channels = base.channels
    loads, rows = listed_loads(population.frequencies, recipe.resources.network), _rows(population, hot)
    weights, home = loads[rows], base.channels_of(hot)
    mean = float(population.loads(recipe.resources.network).sum()) / channels
    listed = np.bincount(base.channels_of(population.keys[: population.listed]), loads, channels)
    filled = listed.astype(np.float64) + population.rest_on(base, recipe.resources.network)
    parts = np.where(weights > mean, np.minimum(np.ceil(weights / (largest * mean)), channels), 1).astype(np.int64)
    parts[hot.is_null().to_numpy(zero_copy_only=False)] = 1  # no salt can be added to null
    splits: dict[Key, tuple[int, ...]] = {}
    np.subtract.at(filled, home[parts > 1], weights[parts > 1])
    for at in np.flatnonzero(parts > 1)[np.argsort(-weights[parts > 1], kind="stable")].tolist():
        owners = np.argsort(filled, kind="stable")[: parts[at]]
        filled[owners] += weights[at] / parts[at]
        splits[hot[at].as_py()] = tuple(sorted(owners.tolist()))
    whole = np.flatnonzero(parts == 1)
    moved = _moved(weights[whole], home[whole], filled, limit * mean)
    pins = ExplicitMap(hot.take(pa.array(whole[moved >= 0])), moved[moved >= 0])
    return SplitPartitioner(SplitMap(splits, population.frequencies.key_type), HybridPartitioner(pins, base))


def _moved(weights: Floats, home: Channels, filled: Floats, most: float) -> Channels:
    """The channel that each key moves to, or -1; changes `filled`."""
    moved = np.full(len(weights), -1, np.int32)
    order = np.argsort(-weights, kind="stable")
    on = [order[home[order] == channel].tolist() for channel in range(len(filled))]
    while filled.max() > most:
        busiest, least = int(np.argmax(filled)), int(np.argmin(filled))
        fitting = (at for at in on[busiest] if filled[least] + weights[at] <= max(most, filled[busiest] - weights[at]))
        key = next(fitting, None)
        if key is None:
            break
        on[busiest].remove(key)
        moved[key] = least
        filled[busiest] -= weights[key]
        filled[least] += weights[key]
    return moved


def _rows(population: Population, keys: pa.Array) -> NDArray[np.int64]:
    """The row of each key among the listed ones."""
    return np.asarray(pc.index_in(keys, value_set=population.frequencies.keys).to_numpy(), np.int64)


def _described(
    population: Population, recipe: Recipe, dealer: SplitPartitioner, metrics: Metrics, trace: str | None
) -> SplitPlan:
    whole = dealer.whole
    assert isinstance(whole, HybridPartitioner)
    plan = Plan(
        scheme=Scheme.HYBRID,
        channels=dealer.channels,
        key_type=population.frequencies.key_type,
        hash=recipe.hash,
        replicas=recipe.replicas,
        explicit=whole.explicit,
        max_parallelism=max_parallelism_of(whole),
        base=recipe.hashing,
        splits=dealer.splits,
        trace=trace,
        metrics=metrics.as_data(),
        parameters=recipe.parameters,
    )
    further = len(dealer.splits.channels) - len(dealer.splits)
    keys = max(population.frequencies.distinct, population.listed, 1)
    return SplitPlan(plan, metrics, MergeCost(1 + further / keys, further))
