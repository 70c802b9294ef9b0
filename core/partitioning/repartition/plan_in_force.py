"""Current plan of a replay, and its rebuild from the last period."""

from collections.abc import Callable
from dataclasses import replace

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Frequencies
from adapt.core.engines.names import AnyScheme
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.partitioning.build import Recipe, build_partitioner
from adapt.core.partitioning.measures.channel_loads import channel_loads
from adapt.core.partitioning.measures.imbalance import max_over_mean
from adapt.core.partitioning.measures.key_loads import listed_loads
from adapt.core.partitioning.measures.metrics import Metrics, measure
from adapt.core.partitioning.measures.migration import Migration, migration
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.partitioning.problem.constraints import refuse_unhonoured
from adapt.core.stream import KeyType


class PlanInForce:
    """Routes periods, and rebuilds the plan from the last one."""

    def __init__(self, recipe: Recipe, channels: int, clock: Callable[[], float] | None = None) -> None:
        """Start with hashing alone: the scheme of the recipe without pinned keys.

        Raises:
            UsageError: the scheme does not support what the recipe asks for.
        """
        refuse_unhonoured(recipe.scheme, recipe.construction, recipe.given)
        self._recipe = recipe
        self._clock = clock
        self._partitioner = _hashing(recipe.hashing, channels, recipe, recipe.key_type)
        self._routed: tuple[Frequencies, Channels] | None = None
        self._change: Migration | None = None
        self.build_s: float | None = None

    def route(self, frequencies: Frequencies) -> tuple[Metrics, Floats]:
        """Measure the current plan on the keys of a period.

        Returns:
            The metrics, with the migration of the last rebuild (None before the first); and the loads of the channels,
            shape (3, channels).
        """
        resources, channels = self._recipe.resources, self._partitioner.channels
        placed = self._partitioner.channels_of(frequencies.keys)
        loads = channel_loads(placed, frequencies, resources, channels)
        capacities = self._recipe.constraints.unequal
        metrics = measure(self._partitioner, frequencies, resources, placed, loads, capacities=capacities)
        self._routed = frequencies, placed
        return _with_migration(metrics, self._change), loads

    def rebuild(self, channels: int) -> None:
        """Build the next plan from the last routed period, whose state migrates.

        Raises:
            ValueError: nothing was routed since the last rebuild.
        """
        if self._routed is None:
            raise ValueError("a rebuild needs a routed period")
        frequencies, before = self._routed
        self._routed = None
        started = self._clock() if self._clock else 0.0
        self._partitioner = build_partitioner(frequencies, self._recipe, channels, self._partitioner)
        self.build_s = self._clock() - started if self._clock else None
        after = self._partitioner.channels_of(frequencies.keys)
        self._change = migration(before, after, listed_loads(frequencies, self._recipe.resources.state), channels)


def imbalance_of_nothing(today: AnyScheme, channels: int, recipe: Recipe, frequencies: Frequencies) -> float | None:
    """Imbalance of doing nothing in a period; None without load."""
    partitioner = _hashing(today, channels, recipe, frequencies.key_type)
    loads = channel_loads(partitioner.channels_of(frequencies.keys), frequencies, recipe.resources, channels)
    return max_over_mean(loads[2], recipe.constraints.unequal)


def _hashing(scheme: AnyScheme, channels: int, recipe: Recipe, key_type: KeyType | None) -> Partitioner:
    """The partitioner of a scheme without pinned keys."""
    groups = recipe.max_parallelism
    return make_partitioner(scheme, channels, recipe.hash, recipe.replicas, max_parallelism=groups, key_type=key_type)


def _with_migration(metrics: Metrics, change: Migration | None) -> Metrics:
    """The metrics with the migration of a plan change."""
    if change is None:
        return metrics
    b, m = metrics.b, change.relative
    return replace(
        metrics,
        m=m,
        b_times_1_plus_m=None if b is None or m is None else b * (1 + m),
        migrated_keys=change.keys,
        migrated_state=change.state,
    )
