"""Building plans: from counted keys, a scheme and a channel count to a plan with its predictions."""

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.counting.frequencies import Frequencies
from adapt.core.engines.names import AnyScheme, Engine
from adapt.core.errors import BadInput, UsageError
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.partitioning.constructions.registry import CONSTRUCTIONS, LEAST_TRACKED
from adapt.core.partitioning.from_counts.weighted import weighted
from adapt.core.partitioning.measures.channel_loads import channel_loads
from adapt.core.partitioning.measures.metrics import Metrics, measure
from adapt.core.partitioning.measures.population import Counted, Population
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.plans.registry import Parts, follow, max_parallelism_of
from adapt.core.partitioning.problem.constraints import Constraints, limits_nothing, refuse_unhonoured
from adapt.core.partitioning.problem.problem import Problem, explicit_map
from adapt.core.partitioning.problem.tracking import tracked_keys
from adapt.core.partitioning.schemes.consistent import DEFAULT_REPLICAS, ConsistentHash
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.partitioning.schemes.names import (
    DEFAULT_CONSTRUCTION,
    TRACKING_SCHEMES,
    Construction,
    Scheme,
    UtilityName,
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How partitioners are built, whatever the channel count.

    Attributes:
        construction: How the hybrid scheme chooses explicit channels; other schemes have none to choose.
        track: Place this many of the heaviest keys explicitly, instead of those that reach delta and, where the
            construction tracks a number at least (`LEAST_TRACKED`), so many.
        replicas: Of each channel on a ring.
        moves: How often a construction that moves keys about may move each; None, as often as it likes.
        max_parallelism: The key groups of a scheme that has them; None, those of the partitioner that is followed, or
            what Flink takes by default.
        track_keys: Track exactly these keys, as far as they are listed, instead of the heaviest.
    """

    scheme: AnyScheme = Scheme.HYBRID
    construction: Construction = DEFAULT_CONSTRUCTION
    resources: Resources = field(default_factory=Resources)
    utility: UtilityName = UtilityName.APM
    track: int | None = None
    hash: HashName = HashName.MURMUR3
    replicas: int = DEFAULT_REPLICAS
    moves: int | None = None
    max_parallelism: int | None = None
    track_keys: pa.Array | None = None
    constraints: Constraints = field(default_factory=Constraints)

    @property
    def parameters(self) -> dict[str, Any]:
        """What a plan records of this: what its numbers and, where keys are tracked, its mapping depend on."""
        weighed = self.resources.as_data() | self.constraints.parameters
        if self.scheme not in TRACKING_SCHEMES:
            return weighed
        weighed |= {"sigma": self.resources.sigma, "track": self.track}
        weighed |= {} if self.track_keys is None else {"track_keys": len(self.track_keys)}
        if self.scheme is not Scheme.HYBRID:
            return weighed
        return weighed | {"utility": self.utility.value} | ({} if self.moves is None else {"moves": self.moves})


@dataclass(frozen=True, slots=True)
class Built:
    """A plan together with what was made to describe it, so that the next step need not make it again.

    Attributes:
        placed: The channel of each key of the population that it was judged by, shape (keys,).
    """

    plan: Plan
    partitioner: Partitioner
    placed: Channels
    metrics: Metrics


def build_plan(
    frequencies: Frequencies, recipe: Recipe, channels: int, *, previous: Plan | None = None, trace: str | None = None
) -> Plan:
    """Build one plan, following `previous` if there is one.

    Without it the construction starts from hashing alone, over the same channels: what a first deployment would do
    by itself. Nothing is migrated then, so the metrics of migration are None. Only listed keys are placed explicitly;
    keys that a lossy counter did not list are stood in for in the loads and the metrics (`Population`).

    Args:
        channels: N, from 1.
        previous: The plan in force, of any scheme and channel count.

    Raises:
        UsageError: `channels` or `replicas` below 1, or `track` below 0, or fewer key groups than channels; a
            constraint does not fit the channels, the scheme cannot honour it, or migration is limited without
            `previous`, or to less than what must migrate.
        BadInput: `previous` has another hash or another type of keys; a pinned key is not among those counted.
    """
    recipe.constraints.check_keys(frequencies)
    if previous is None and recipe.constraints.max_migration is not None:
        raise UsageError(f"{limits_nothing(recipe.constraints.max_migration)}: give the plan in force (--from)")
    if previous is None:
        return describe(frequencies, recipe, build_partitioner(frequencies, recipe, channels), trace=trace).plan
    _refuse_other_keys(previous, frequencies, recipe.hash)
    current = previous.partitioner()
    partitioner = build_partitioner(frequencies, recipe, channels, current)
    population = Population.from_counts(frequencies)
    before = current.channels_of(population.keys)
    return describe(population, recipe, partitioner, before, previous.content_hash(), trace).plan


def build_partitioner(
    counted: Counted, recipe: Recipe, channels: int, current: Partitioner | None = None
) -> Partitioner:
    """The partitioner of a recipe for a channel count, following `current` if there is one.

    Raises:
        UsageError: `channels` or the recipe's `replicas` below 1, or its `track` below 0; a constraint does not fit the
            channels, or the scheme cannot honour it.
    """
    if channels < 1:
        raise UsageError(f"{channels} channels cannot carry a stream: give 1 or more")
    constraints = recipe.constraints
    constraints.check_channels(channels)
    refuse_unhonoured(recipe.scheme, recipe.construction, constraints)
    if recipe.scheme not in TRACKING_SCHEMES:
        parts = Parts(channels, recipe.hash, recipe.replicas, max_parallelism=recipe.max_parallelism)
        return follow(recipe.scheme, counted, recipe.resources.network, parts, current, constraints)
    ring = ConsistentHash(channels, recipe.replicas, recipe.hash)
    if recipe.scheme is Scheme.WEIGHTED:
        frequencies = counted.frequencies if isinstance(counted, Population) else counted
        tracked = _tracked(frequencies, recipe, channels)
        return weighted(counted, tracked, ring, recipe.resources, current, constraints)
    problem = problem_of(counted, recipe, channels, current)
    placed = ExplicitMap(problem.keys, CONSTRUCTIONS[recipe.construction](problem))
    return HybridPartitioner(placed.over(constraints.pinned), ring)


def problem_of(counted: Counted, recipe: Recipe, channels: int, current: Partitioner | None = None) -> Problem:
    """What a construction of the recipe is given for a channel count, following `current` if there is one.

    Raises:
        UsageError: as `build_partitioner` does.
    """
    ring = ConsistentHash(channels, recipe.replicas, recipe.hash)
    frequencies = counted.frequencies if isinstance(counted, Population) else counted
    tracked = _tracked(frequencies, recipe, channels)
    return Problem.from_counts(
        current or ring, ring, counted, tracked, recipe.resources, recipe.utility, recipe.moves, recipe.constraints
    )


def describe(
    counted: Counted,
    recipe: Recipe,
    partitioner: Partitioner,
    before: Channels | None = None,
    parent: str | None = None,
    trace: str | None = None,
) -> Built:
    """Route the population once, and write down what that foretells.

    Args:
        before: The channel of each key of the population until now, shape (keys,); none, no migration.
        parent: Content hash of the plan until now.
    """
    population = Population.from_counts(counted)
    frequencies = population.frequencies
    placed = partitioner.channels_of(population.keys)
    loads = channel_loads(placed, population, recipe.resources, partitioner.channels)
    metrics = measure(partitioner, population, recipe.resources, placed, loads, before, recipe.constraints.unequal)
    plan = Plan(
        scheme=recipe.scheme,
        channels=partitioner.channels,
        key_type=frequencies.key_type,
        construction=recipe.construction if recipe.scheme is Scheme.HYBRID else None,
        hash=recipe.hash,
        replicas=partitioner.ring.replicas if isinstance(partitioner, HybridPartitioner) else recipe.replicas,
        explicit=explicit_map(partitioner),
        max_parallelism=max_parallelism_of(partitioner),
        trace=trace,
        parent=parent,
        predicted_loads=dict(zip(("state", "computation", "network"), loads.tolist(), strict=True)),
        metrics=metrics.as_data(),
        parameters=recipe.parameters | ({} if frequencies.exact else frequencies.as_counted()),
    )
    return Built(plan, partitioner, placed, metrics)


def _tracked(frequencies: Frequencies, recipe: Recipe, channels: int) -> pa.Array:
    """The listed keys to map explicitly, by falling count, then key bytes: those that are tracked, and all pins."""
    if recipe.track_keys is not None and channels > 1:
        tracked = recipe.track_keys.cast(frequencies.keys.type)
    else:
        least = LEAST_TRACKED.get(recipe.construction, 0) if recipe.scheme is Scheme.HYBRID else 0
        tracked = tracked_keys(frequencies, recipe.resources, channels, recipe.track, least)
    pinned = recipe.constraints.pinned.column
    if recipe.track_keys is None and not len(pinned):
        return tracked
    either = pa.concat_arrays([tracked, pinned.cast(tracked.type)])
    return frequencies.keys.filter(pc.is_in(frequencies.keys, value_set=either))


def _refuse_other_keys(previous: Plan, frequencies: Frequencies, hash: HashName) -> None:
    """A change of hash or key type would move nearly every key, and is never meant; an engine has its own hash."""
    if previous.hash is not hash and not isinstance(previous.scheme, Engine):
        raise BadInput(
            f"the previous plan hashes with {previous.hash}, but this one is to hash with {hash}: choose"
            f" {previous.hash}, or build without a previous plan"
        )
    if previous.key_type is not frequencies.key_type:
        raise BadInput(
            f"the previous plan has {previous.key_type} keys, but the counted keys are {frequencies.key_type}: count"
            f" them as {previous.key_type}, or build without a previous plan"
        )
