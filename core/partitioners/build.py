"""Building plans: from counted keys, a scheme and a channel count to a plan with its predictions."""

from dataclasses import dataclass, field
from typing import Any

from adapt.core.errors import BadInput, UsageError
from adapt.core.frequencies.frequencies import Frequencies
from adapt.core.frequencies.tracking import tracked_keys
from adapt.core.hashing.names import HashName
from adapt.core.partitioners.consistent import DEFAULT_REPLICAS, ConsistentHash
from adapt.core.partitioners.construct import CONSTRUCTIONS
from adapt.core.partitioners.explicit import ExplicitMap
from adapt.core.partitioners.hybrid import HybridPartitioner
from adapt.core.partitioners.names import ENGINE_SCHEMES, Construction, Scheme, UtilityName
from adapt.core.partitioners.partitioner import Channels, Partitioner
from adapt.core.partitioners.plan import Plan
from adapt.core.partitioners.problem import Problem, explicit_map
from adapt.core.partitioners.registry import Parts, follow, max_parallelism_of
from adapt.core.resources.functions import Resources
from adapt.core.resources.loads import channel_loads
from adapt.core.resources.metrics import Metrics, measure
from adapt.core.resources.population import Counted, Population


@dataclass(frozen=True, slots=True)
class Recipe:
    """How partitioners are built, whatever the channel count.

    Attributes:
        scheme: How keys are placed.
        construction: How the hybrid scheme chooses explicit channels; other schemes have none to choose.
        resources: Load functions, tolerances, sigma.
        utility: How balance and migration are combined.
        track: Place this many of the heaviest keys explicitly, instead of those that reach delta.
        hash: Places keys, and replicas on a ring.
        replicas: Of each channel on a ring.
        moves: How often a construction that moves keys about may move each; None, as often as it likes.
        max_parallelism: The key groups of a scheme that has them; None, those of the partitioner that is followed, or
            what Flink takes by default.
    """

    scheme: Scheme
    construction: Construction = Construction.SCAN
    resources: Resources = field(default_factory=Resources)
    utility: UtilityName = UtilityName.APM
    track: int | None = None
    hash: HashName = HashName.MURMUR3
    replicas: int = DEFAULT_REPLICAS
    moves: int | None = None
    max_parallelism: int | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """What a plan records of this: what its numbers and, for the hybrid scheme, its mapping depend on."""
        weighed = {"resources": self.resources.letters, "tolerance": list(self.resources.tolerance)}
        if self.scheme is not Scheme.HYBRID:
            return weighed
        limits = {} if self.moves is None else {"moves": self.moves}
        return weighed | {"sigma": self.resources.sigma, "utility": self.utility.value, "track": self.track} | limits


@dataclass(frozen=True, slots=True)
class Built:
    """A plan together with what was made to describe it, so that the next step need not make it again.

    Attributes:
        plan: The plan.
        partitioner: Its partitioner.
        placed: The channel of each key of the population that it was judged by, shape (keys,).
        metrics: Its predicted quality.
    """

    plan: Plan
    partitioner: Partitioner
    placed: Channels
    metrics: Metrics


def build_plan(
    frequencies: Frequencies,
    scheme: Scheme,
    channels: int,
    *,
    construction: Construction = Construction.SCAN,
    resources: Resources | None = None,
    utility: UtilityName = UtilityName.APM,
    track: int | None = None,
    previous: Plan | None = None,
    hash: HashName = HashName.MURMUR3,
    replicas: int = DEFAULT_REPLICAS,
    max_parallelism: int | None = None,
    trace: str | None = None,
) -> Plan:
    """Build one plan, following `previous` if there is one.

    Without it the construction starts from hashing alone, over the same channels: what a first deployment would do
    by itself. Nothing is migrated then, so the metrics of migration are None. Only listed keys are placed explicitly;
    keys that a lossy counter did not list are stood in for in the loads and the metrics (`Population`).

    Args:
        frequencies: The counted keys.
        scheme: How keys are placed.
        channels: N, from 1.
        construction: How the hybrid scheme chooses explicit channels.
        resources: Load functions, tolerances, sigma; "LLL", 1.2 and 0.1 if not given.
        utility: How balance and migration are combined.
        track: Place this many of the heaviest keys explicitly, instead of those that reach delta.
        previous: The plan in force, of any scheme and channel count.
        hash: Places keys, and replicas on a ring.
        replicas: Of each channel on a ring.
        max_parallelism: The key groups of a scheme that has them; if not given, those of `previous` or Flink's default.
        trace: Fingerprint of the trace that was counted.

    Raises:
        UsageError: `channels` or `replicas` below 1, or `track` below 0, or fewer key groups than channels.
        BadInput: `previous` has another hash or another type of keys.
    """
    weighed = resources or Resources()
    recipe = Recipe(scheme, construction, weighed, utility, track, hash, replicas, max_parallelism=max_parallelism)
    if previous is None:
        return describe(frequencies, recipe, build_partitioner(frequencies, recipe, channels), trace=trace).plan
    _refuse_other_keys(previous, frequencies, hash)
    current = previous.partitioner()
    partitioner = build_partitioner(frequencies, recipe, channels, current)
    population = Population.of(frequencies)
    before = current.channels_of(population.keys)
    return describe(population, recipe, partitioner, before, previous.content_hash(), trace).plan


def build_partitioner(
    counted: Counted, recipe: Recipe, channels: int, current: Partitioner | None = None
) -> Partitioner:
    """The partitioner of a recipe for a channel count, following `current` if there is one.

    Raises:
        UsageError: `channels` or the recipe's `replicas` below 1, or its `track` below 0.
    """
    if channels < 1:
        raise UsageError(f"{channels} channels cannot carry a stream: give 1 or more")
    if recipe.scheme is not Scheme.HYBRID:
        parts = Parts(channels, recipe.hash, recipe.replicas, max_parallelism=recipe.max_parallelism)
        return follow(recipe.scheme, counted, recipe.resources.network, parts, current)
    ring = ConsistentHash(channels, recipe.replicas, recipe.hash)
    frequencies = counted.frequencies if isinstance(counted, Population) else counted
    tracked = tracked_keys(frequencies, recipe.resources, channels, recipe.track)
    problem = Problem.of(current or ring, ring, counted, tracked, recipe.resources, recipe.utility, recipe.moves)
    return HybridPartitioner(ExplicitMap(tracked, CONSTRUCTIONS[recipe.construction](problem)), ring)


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
        counted: The counted keys.
        recipe: How the partitioner was built.
        partitioner: What was built.
        before: The channel of each key of the population until now, shape (keys,); none, no migration.
        parent: Content hash of the plan until now.
        trace: Fingerprint of the trace that was counted.
    """
    population = Population.of(counted)
    frequencies = population.frequencies
    placed = partitioner.channels_of(population.keys)
    loads = channel_loads(placed, population, recipe.resources, partitioner.channels)
    metrics = measure(partitioner, population, recipe.resources, placed, loads, before)
    plan = Plan(
        scheme=recipe.scheme,
        channels=partitioner.channels,
        key_type=frequencies.key_type,
        construction=recipe.construction if recipe.scheme is Scheme.HYBRID else None,
        hash=recipe.hash,
        replicas=recipe.replicas,
        explicit=explicit_map(partitioner),
        max_parallelism=max_parallelism_of(partitioner),
        trace=trace,
        parent=parent,
        predicted_loads=dict(zip(("state", "computation", "network"), loads.tolist(), strict=True)),
        metrics=metrics.as_data(),
        parameters=recipe.parameters | ({} if frequencies.exact else frequencies.as_counted()),
    )
    return Built(plan, partitioner, placed, metrics)


def _refuse_other_keys(previous: Plan, frequencies: Frequencies, hash: HashName) -> None:
    """A change of hash or key type would move nearly every key, and is never meant; an engine has its own hash."""
    if previous.hash is not hash and previous.scheme not in ENGINE_SCHEMES:
        raise BadInput(
            f"the previous plan hashes with {previous.hash}, but this one is to hash with {hash}: choose"
            f" {previous.hash}, or build without a previous plan"
        )
    if previous.key_type is not frequencies.key_type:
        raise BadInput(
            f"the previous plan has {previous.key_type} keys, but the counted keys are {frequencies.key_type}: count"
            f" them as {previous.key_type}, or build without a previous plan"
        )
