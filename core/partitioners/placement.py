"""A placement in progress: loads and migration of the tracked keys placed so far, and the price of the next one."""

from collections.abc import Collection, Mapping

import numpy as np

from adapt.core.frequencies.tracking import theta
from adapt.core.partitioners.explicit import ExplicitMap
from adapt.core.partitioners.hybrid import HybridPartitioner
from adapt.core.partitioners.partitioner import Partitioner
from adapt.core.resources.functions import Floats, ResourceFunction, Resources
from adapt.core.stream import Key

_LEAST_THETA = 1e-6
"""An alpha of 1 tolerates nothing: theta is 0 and rho infinite. A millionth keeps channels comparable instead, with
balance far above migration."""


class Placement:
    """Tracked keys on channels, some placed, some not yet; prices each channel for the next key.

    Resources with a constant function are left out of the balance, since the untracked keys balance them for free
    (section 4.4). The exponent of Eq. 20 then is one over the number of resources left; with none left, rho is 0.

    Source: partitioning functions, section 4.2.1.
    """

    def __init__(
        self,
        counts: Mapping[Key, float],
        tracked: Collection[Key],
        current: Partitioner,
        ring: Partitioner,
        resources: Resources,
    ) -> None:
        """Start with no key placed; keys that lose their explicit entry are moved, or not, by the ring.

        Args:
            counts: Count of each tracked key, and of each key that `current` tracks and that still occurs.
            tracked: Keys to place, D_p(t+1).
            current: The partitioner in force, p(t).
            ring: The consistent hash of the next one, H_c(t+1).
            resources: Load functions and tolerances.
        """
        channels = ring.channels
        departed = departing(current, tracked)
        balanced = [at for at, function in enumerate(resources.functions) if function is not ResourceFunction.CONSTANT]
        self._functions = [resources.functions[at] for at in balanced]
        thetas = [max(theta(resources.tolerance[at], channels), _LEAST_THETA) for at in balanced]
        self._theta = np.array(thetas).reshape(-1, 1)
        self._loads = np.zeros((len(balanced), channels))  # (balanced resources, channels)
        self._counts = counts
        self._state = resources.state
        self._channels = channels
        self._home = _channels_by_key(current, tracked)
        self._chosen: dict[Key, int] = {}
        self._moved = sum(self._state_of(key) for key in departed if current.channel_of(key) != ring.channel_of(key))
        self._ideal = (sum(map(self._state_of, tracked)) + sum(map(self._state_of, departed))) / channels

    @property
    def chosen(self) -> Mapping[Key, int]:
        """The channel of each key placed so far."""
        return self._chosen

    def balance_penalties(self, key: Key) -> Floats:
        """Rho (Eqs. 19, 20) after placing `key` on each channel; shape (channels,)."""
        load = self._loads_of(key)
        raised = self._loads + load
        heaviest = np.maximum(raised, self._loads.max(axis=1, keepdims=True))
        lowest, runner_up = _two_lightest(self._loads)
        lightest = np.where(self._loads == lowest, np.minimum(raised, runner_up), lowest)
        average = (self._loads.sum(axis=1, keepdims=True) + load) / self._channels
        return _geometric_mean(_ratio(heaviest - lightest, self._theta * average))

    def migration_penalties(self, key: Key) -> Floats:
        """Gamma (Eq. 18) after placing `key` on each channel; shape (channels,).

        0 where no tracked key holds any state.
        """
        leaves_home = np.arange(self._channels) != self._home[key]
        return _ratio(self._moved + self._state_of(key) * leaves_home, np.float64(self._ideal))

    def place(self, key: Key, channel: int) -> None:
        """Give `key` its channel, for good."""
        self._loads[:, channel] += self._loads_of(key)[:, 0]
        if channel != self._home[key]:
            self._moved += self._state_of(key)
        self._chosen[key] = channel

    def _loads_of(self, key: Key) -> Floats:
        """beta_k of one key; shape (balanced resources, 1)."""
        return np.array([function.of(self._counts[key]) for function in self._functions]).reshape(-1, 1)

    def _state_of(self, key: Key) -> float:
        """beta_s of one key, of count 0 if it has stopped coming."""
        return float(self._state.of(self._counts.get(key, 0.0)))


def _channels_by_key(partitioner: Partitioner, keys: Collection[Key]) -> dict[Key, int]:
    """The channel of each key, looked up as one column."""
    column = ExplicitMap.of(dict.fromkeys(keys, 0)).column
    return dict(zip(column.to_pylist(), partitioner.channels_of(column).tolist(), strict=True))


def departing(current: Partitioner, tracked: Collection[Key]) -> list[Key]:
    """D_o: the keys that `current` maps explicitly and the next partitioner will not, in the order of its map."""
    staying = set(tracked)
    return [key for key in explicit_map(current) if key not in staying]


def explicit_map(partitioner: Partitioner) -> ExplicitMap:
    """H_p: the keys that a partitioner maps one by one; empty for one that hashes all."""
    return partitioner.explicit if isinstance(partitioner, HybridPartitioner) else ExplicitMap.of({})


def _two_lightest(loads: Floats) -> tuple[Floats, Floats]:
    """The least and the second least load of each row, each of shape (rows, 1); the second of one is infinite."""
    if loads.shape[1] == 1:
        return loads, np.full_like(loads, np.inf)
    least = np.partition(loads, 1, axis=1)
    return least[:, :1], least[:, 1:2]


def _ratio(numerator: Floats, denominator: Floats | np.float64) -> Floats:
    """The quotient; 0 where the denominator is, since then there is no load and so none of it uneven or moved."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=np.asarray(denominator) > 0)


def _geometric_mean(values: Floats) -> Floats:
    """Over the rows; zeros without any rows."""
    rows, columns = values.shape
    return np.asarray(values.prod(axis=0) ** (1 / rows)) if rows else np.zeros(columns)
