"""Build plans from counted keys, a scheme and a channel count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.counting.frequencies import Frequencies
from adapt.core.engines.names import AnyScheme, Engine, hashing_of
from adapt.core.errors import BadInput, UsageError
from adapt.core.keys.key_text import key_to_text
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import Partitioner
from adapt.core.own.own_code import OwnCode
from adapt.core.partitioning.constructions.registry import LEAST_TRACKED, assigned
from adapt.core.partitioning.from_counts.bounded import USUAL, LimitedStep, bounded
from adapt.core.partitioning.measures.cells import Hashers, base_of
from adapt.core.partitioning.measures.imbalance import channel_loads
from adapt.core.partitioning.measures.metrics import Metrics, measure
from adapt.core.partitioning.measures.plan_settings import PlanSettings, refused
from adapt.core.partitioning.measures.population import Counted, Population, frequencies_in
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.plans.registry import Parts, follow, max_parallelism_of
from adapt.core.partitioning.problem.at_random import settled, spread_at_random
from adapt.core.partitioning.problem.constraints import (
    Constraint,
    Constraints,
    MigrationLimit,
    limits_nothing,
    refuse_unhonoured,
)
from adapt.core.partitioning.problem.problem import Problem, explicit_map, hashed_migration
from adapt.core.partitioning.problem.tracking import tracked_keys, with_held
from adapt.core.partitioning.schemes.consistent import DEFAULT_REPLICAS, ConsistentHash
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.partitioning.schemes.names import (
    DEFAULT_CONSTRUCTION,
    DEFAULT_UTILITY,
    Construction,
    Scheme,
    UtilityName,
)
from adapt.core.stream import Key, KeyType
from adapt.core.units.settings import same, settings

MOST_KEYS = 100_000
"""Hottest keys that a function sees at most."""


@dataclass(frozen=True, slots=True, eq=False)
class KeysView:
    """What a user's scheme sees; arrays are read-only."""

    channels: int
    keys: tuple[Key, ...]  # the hottest keys, hottest first; null is None
    counts: NDArray[np.float64]  # weight of each key, shape (keys,)
    total: float  # weight of all keys, listed or not
    hashed: NDArray[np.int32]  # channel of each key if it is not pinned, shape (keys,)
    today: NDArray[np.int32] | None  # channel of each key in the current plan, shape (keys,); None without one


def own_pins(
    own: OwnCode, counted: Counted, base: Partitioner, current: Partitioner | None, most: int | None = None
) -> ExplicitMap:
    """The keys that a user's function pins, with their channels.

    Args:
        base: Places the keys that are not pinned.
        current: The current partitioner.
        most: Show it at most this many keys.
    """
    frequencies = frequencies_in(counted)
    shown = min(MOST_KEYS, frequencies.real, MOST_KEYS if most is None else most)
    keys, counts = frequencies.keys.slice(0, shown), np.array(frequencies.count_low[:shown], np.float64)
    hashed = base.channels_of(keys)
    today = None if current is None else current.channels_of(keys)
    seen: list[NDArray[Any]] = [counts, hashed, *([] if today is None else [today])]
    for array in seen:
        array.flags.writeable = False
    view = KeysView(base.channels, tuple(keys.to_pylist()), counts, float(frequencies.total), hashed, today)
    try:
        answer = own.call(view)
    except Exception as error:
        raise own.failed(error, f"the assignment to {base.channels} channels") from error
    return ExplicitMap.from_mapping(_checked(own, view, answer), frequencies.key_type)


def _checked(own: OwnCode, view: KeysView, answer: object) -> dict[Key, int]:
    """The pins of an answer."""
    if not isinstance(answer, Mapping):
        raise BadInput(f"{own.kind} {own.name} must return a mapping of key to worker (got {type(answer).__name__})")
    known, pins = set(view.keys), {}
    for key, channel in answer.items():
        if key not in known:
            raise BadInput(f"{own.kind} {own.name} pins the key {key!r}, which is not among view.keys")
        try:
            to = index(channel)
        except TypeError:
            to = -1
        if not 0 <= to < view.channels:
            raise BadInput(
                f"{own.kind} {own.name} pins the key {key_to_text(key)} to worker {channel!r}, but workers are 0 to"
                f" {view.channels - 1}"
            )
        pins[key] = to
    return pins


@settings()
class Recipe:
    """How partitioners are built, for any channel count.

    Attributes:
        construction: How the hybrid scheme assigns pinned keys; other schemes ignore it.
        utility: What scan, redist and readj minimize. Default: `DEFAULT_UTILITY`.
        max_pins: Pin this many of the hottest keys. Default: those that reach delta, and at least `LEAST_TRACKED` where
            the construction has such a number.
        replicas: Virtual nodes of each channel on the hash ring.
        max_parallelism: Number of key groups. Default: those of the current partitioner, else Flink's default.
        base: The scheme of the keys that hybrid does not pin, one of `BASES`; other schemes ignore it.
        own: A user's function that pins keys instead of a construction of the hybrid scheme.
        key_type: The type of the keys before any were counted. Default: that of their column.
        cap: Largest load of a channel / mean load, in the bounded scheme.
    """

    scheme: AnyScheme = Scheme.HYBRID
    construction: Construction = DEFAULT_CONSTRUCTION
    resources: Resources = field(default_factory=Resources)
    utility: UtilityName | None = None
    max_pins: int | None = same(PlanSettings, "max_pins")
    hash: HashName = HashName.MURMUR3
    replicas: int = DEFAULT_REPLICAS
    max_parallelism: int | None = None
    constraints: Constraints = field(default_factory=Constraints)
    base: AnyScheme = Scheme.CONSISTENT
    own: OwnCode | None = None
    key_type: KeyType | None = None
    cap: float = USUAL

    @property
    def given(self) -> tuple[Constraint, ...]:
        """What is asked for that not every scheme supports."""
        return (*self.constraints.given, *([] if self.utility is None else [Constraint.UTILITY]))

    @property
    def constructs(self) -> bool:
        """Whether a construction assigns its pinned keys."""
        return self.scheme is Scheme.HYBRID and self.own is None

    @property
    def hashing(self) -> AnyScheme:
        """The scheme of the keys that are not pinned."""
        return hashing_of(self.scheme, self.base)

    def parts(self, channels: int, key_type: KeyType) -> Parts:
        """What makes its partitioners, for a type of keys."""
        return Parts(
            *(channels, self.hash, self.replicas), max_parallelism=self.max_parallelism, key_type=key_type, cap=self.cap
        )

    def as_data(self) -> dict[str, Any]:
        """All that decides its plans, as JSON data."""
        return {
            "scheme": self.scheme.value,
            "construction": self.construction.value if self.constructs else None,
            **({} if self.hashing in (self.scheme, Scheme.CONSISTENT) else {"base": self.hashing.value}),
            "hash": None if isinstance(self.hashing, Engine) else self.hash.value,
            "replicas": self.replicas if self.hashing is Scheme.CONSISTENT else None,
            **self.parameters,
        }

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters that a plan records: those that decide its metrics and mapping."""
        weighed = self.resources.as_data() | self.constraints.parameters
        if self.scheme is Scheme.BOUNDED:
            return weighed | {"cap": self.cap}
        if self.scheme is not Scheme.HYBRID:
            return weighed
        weighed |= {"sigma": self.resources.sigma, "max_pins": self.max_pins}
        if self.own is not None:
            return weighed | {"own_scheme": self.own.as_data()}
        return weighed | {"utility": (self.utility or DEFAULT_UTILITY).value}


@dataclass(frozen=True, slots=True)
class Built:
    """A plan with its partitioner, kept for the next step."""

    plan: Plan
    partitioner: Partitioner
    metrics: Metrics


def build_plan(
    counted: Counted, recipe: Recipe, channels: int, *, previous: Plan | None = None, trace: str | None = None
) -> Plan:
    """Build one plan, starting from the current one if given.

    Without a current plan, the construction starts from hashing alone over the same channels. Nothing migrates then, so
    the migration metrics are None. Only listed keys are pinned; keys that a lossy counter did not list count in the
    loads and the metrics (`Population`).

    Args:
        channels: N, from 1.
        previous: The current plan, of any scheme and channel count.
    """
    recipe.constraints.check_keys(frequencies_in(counted))
    counted = Population.from_counts(spread_at_random(counted, recipe.hashing, channels, recipe.constraints.pinned))
    if previous is None and recipe.constraints.max_migration is not None:
        raise refused(f"{limits_nothing(recipe.constraints.max_migration)}; give one to build from")
    if previous is None:
        return describe(counted, recipe, build_partitioner(counted, recipe, channels), trace=trace).plan
    _refuse_other_keys(previous, frequencies_in(counted), recipe)
    current = previous.partitioner()
    partitioner = build_partitioner(counted, recipe, channels, current)
    return describe(counted, recipe, partitioner, current, previous.content_hash(), trace).plan


def build_partitioner(
    counted: Counted, recipe: Recipe, channels: int, current: Partitioner | None = None
) -> Partitioner:
    """The partitioner of a recipe for a channel count.

    Starts from the current one if given.
    """
    if channels < 1:
        raise UsageError(f"the number of workers must be at least 1 (got {channels})")
    constraints = recipe.constraints
    constraints.check_channels(channels)
    if recipe.own is not None:
        for constraint in recipe.given:
            raise refused(f"scheme {recipe.own} does not support {{{constraint}}}; use scheme {Scheme.HYBRID}")
        base = _without_construction(recipe.hashing, counted, recipe, channels, current)
        return HybridPartitioner(own_pins(recipe.own, counted, base, current, recipe.max_pins), base)
    refuse_unhonoured(recipe.scheme, recipe.construction, recipe.given)
    if constraints.max_migration is not None and recipe.scheme is not Scheme.HYBRID:
        return _limited(counted, recipe, channels, current, constraints.max_migration)
    if recipe.scheme is not Scheme.HYBRID:
        return _without_construction(recipe.scheme, counted, recipe, channels, current)
    base = _without_construction(recipe.hashing, counted, recipe, channels, current)
    problem, placed = assigned(recipe.construction, *_problems(counted, recipe, base, current))
    return HybridPartitioner(ExplicitMap(problem.keys, placed).over(constraints.pinned), base)


def problem_of(counted: Counted, recipe: Recipe, channels: int) -> Problem:
    """The input of the recipe's construction for a channel count."""
    base = _without_construction(recipe.hashing, counted, recipe, channels, None)
    problems = _problems(counted, recipe, base, None)
    return problems[0] if len(problems) == 1 else assigned(recipe.construction, *problems)[0]


def hashers_of(
    recipe: Recipe, counted: Counted, channels: Sequence[int], current: Partitioner | None = None
) -> list[Hashers]:
    """Hashers of a chain of plans, each step with the one before.

    Args:
        channels: The channel counts, in order.
        current: The partitioner before the first step.
    """
    groups: list[Hashers] = []
    last = current
    for count in channels:
        base = _without_construction(recipe.hashing, counted, recipe, count, last)
        groups.append((base,) if last is None else (base_of(last), base))
        last = base
    return groups


def _limited(
    counted: Counted, recipe: Recipe, channels: int, current: Partitioner | None, limit: MigrationLimit
) -> Partitioner:
    """The partitioner of a scheme that is computed without a limit: as it is if the limit allows, else held back."""
    free = replace(recipe, constraints=replace(recipe.constraints, max_migration=None))
    wanted = build_partitioner(counted, free, channels, current)
    if current is None:
        return wanted
    population = Population.from_counts(counted, current, wanted)
    step = LimitedStep(limit, population, current, channels, recipe.resources, free.constraints)
    if step.fits(wanted):
        return wanted
    ring = ConsistentHash(channels, recipe.replicas, recipe.hash)
    return step.hottest_moved(
        lambda held: bounded(population, ring, recipe.resources.network, recipe.cap, free.constraints, held)
    )


def _problems(counted: Counted, recipe: Recipe, base: Partitioner, current: Partitioner | None) -> list[Problem]:
    """The problem of a step; where pins and migration are limited, a second one that holds all keys pinned now."""
    utility, limits = recipe.utility or DEFAULT_UTILITY, recipe.constraints
    holds = [False, True] if limits.max_migration and recipe.max_pins and current is not None else [False]
    problems = []
    for hold in holds:
        tracked = _tracked(counted, recipe, base, current, hold=hold)
        problems.append(Problem.from_counts(current or base, base, counted, tracked, recipe.resources, utility, limits))
    return problems


def _without_construction(
    scheme: AnyScheme, counted: Counted, recipe: Recipe, channels: int, current: Partitioner | None
) -> Partitioner:
    """The partitioner of the recipe's scheme, or of its base."""
    parts = recipe.parts(channels, frequencies_in(counted).key_type)
    return follow(scheme, counted, recipe.resources.network, parts, current, recipe.constraints)


def describe(
    counted: Counted,
    recipe: Recipe,
    partitioner: Partitioner,
    before: Partitioner | None = None,
    parent: str | None = None,
    trace: str | None = None,
) -> Built:
    """Route the population once and record the predictions as a plan.

    Args:
        before: The current partitioner. Default: no migration.
        parent: Content hash of the current plan.
    """
    population = Population.from_counts(counted, partitioner, *([] if before is None else [before]))
    frequencies = population.frequencies
    hashed = partitioner.base if isinstance(partitioner, HybridPartitioner) else partitioner
    placed = population.placed(partitioner)
    was = None if before is None else population.placed(before)
    loads = channel_loads(placed, population, recipe.resources, partitioner.channels)
    was = None if was is None else settled(was, placed, frequencies)
    metrics = measure(partitioner, population, recipe.resources, placed, loads, was, recipe.constraints.unequal)
    plan = Plan(
        scheme=recipe.scheme,
        channels=partitioner.channels,
        key_type=frequencies.key_type,
        construction=recipe.construction if recipe.constructs else None,
        hash=recipe.hash,
        replicas=hashed.replicas if isinstance(hashed, ConsistentHash) else recipe.replicas,
        explicit=explicit_map(partitioner),
        max_parallelism=max_parallelism_of(partitioner),
        base=recipe.base,
        trace=trace,
        parent=parent,
        predicted_loads=dict(zip(("state", "computation", "network"), loads.tolist(), strict=True)),
        metrics=metrics.as_data(),
        parameters=recipe.parameters
        | ({} if frequencies.exact and not frequencies.complete_above else population.as_counted(recipe.resources)),
    )
    return Built(plan, partitioner, metrics)


def _tracked(
    counted: Counted, recipe: Recipe, base: Partitioner, current: Partitioner | None, *, hold: bool = False
) -> pa.Array:
    """The listed keys to pin, by falling count, then key bytes: the tracked ones and all of --pin."""
    frequencies, limit = frequencies_in(counted), recipe.constraints.max_migration
    least = LEAST_TRACKED.get(recipe.construction, 0) if recipe.scheme is Scheme.HYBRID else 0
    held = None
    if (least or limit) and current is not None:
        now = explicit_map(current)
        column = now.column.cast(frequencies.keys.type)
        held = column.filter(pa.array(now.channels != base.channels_of(column)))
    tracked = tracked_keys(frequencies, recipe.resources, base.channels, recipe.max_pins, least, held)
    if limit and recipe.max_pins and current is not None and held is not None:
        hashed, total = hashed_migration(counted, tracked, recipe.resources, current, base)
        excess = np.inf if hold else hashed - limit.state(total, base.channels)
        tracked = with_held(frequencies, recipe.resources, tracked, held, excess)
    if frequencies.stand_ins is not None:
        tracked = tracked.filter(pc.invert(pc.is_in(tracked, value_set=frequencies.stand_ins)))
    pinned = recipe.constraints.pinned.column
    if not len(pinned):
        return tracked
    either = pa.concat_arrays([tracked, pinned.cast(tracked.type)])
    return frequencies.keys.filter(pc.is_in(frequencies.keys, value_set=either))


def _refuse_other_keys(previous: Plan, frequencies: Frequencies, recipe: Recipe) -> None:
    """Refuse a change of hash or key type, which would move nearly every key; engines have their own hash."""
    engine = isinstance(previous.hashing, Engine) or isinstance(recipe.hashing, Engine)
    if previous.hash is not recipe.hash and not engine:
        raise BadInput(
            f"the current plan hashes with {previous.hash}, the new one would with {recipe.hash}; use"
            f" {previous.hash}, or build from no plan"
        )
    previous.check_keys(frequencies.key_type, "the count", "the current plan")
