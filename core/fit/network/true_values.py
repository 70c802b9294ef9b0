"""True costs and selectivities of operators, which change over time."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.fit.network.names import OperatorKind
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.wiring import Wiring

LEGS = 10
"""Parts of a replay: drawn values drift from one end to the other, or are constant."""

_DRAWN = re.compile(r"(drift|jump|noise):([0-9.eE+-]+)")

_FORM = "drift:RATIO, jump:RATIO or noise:RATIO, separated by commas, then @SEED"


class TrueValues:
    """True values in each tick.

    Attributes:
        costs: CPU seconds per tuple, shape (ticks, operators).
        selectivities: Tuples out / tuples in, likewise.
        mean_costs: Costs without fluctuation from tick to tick.
        mean_selectivities: Likewise.
    """

    def __init__(
        self, network: Network, costs: Floats, selectivities: Floats, noise: float = 0.0, seed: int = 0
    ) -> None:
        """Values that fluctuate around means.

        Args:
            costs: Means, shape (ticks, operators).
            selectivities: Means; reduced to 1 at filters.
            noise: Standard deviation of a value in a tick, as a share of its mean. Unions pass every tuple on.
            seed: Random seed of the fluctuation.
        """
        self._network, self._at = network, -1
        most = [1.0 if operator.kind is OperatorKind.FILTER else np.inf for operator in network.operators]
        self.mean_costs, self.mean_selectivities = costs, np.minimum(selectivities, most)
        sigma = float(np.sqrt(np.log1p(noise**2)))
        normal = np.random.default_rng([seed, 2]).standard_normal((len(costs), 2, costs.shape[1]))
        factors = np.exp(sigma * normal - sigma**2 / 2)
        factors[:, 1, _unions(network)] = 1.0
        self.costs = costs * factors[:, 0]
        self.selectivities = np.minimum(self.mean_selectivities * factors[:, 1], most)

    def wiring(self, tick: int) -> Wiring:
        """The network in a tick; the same object while nothing changes."""
        first = int(self._first[tick])
        if first != self._at:
            self._at, self._wiring = first, self._made(self.costs[tick], self.selectivities[tick])
        return self._wiring

    def highest(self) -> Wiring:
        """The network with the highest values of all ticks."""
        return self._made(self.costs.max(axis=0), self.selectivities.max(axis=0))

    def constant(self) -> Iterator[tuple[slice, Wiring]]:
        """Stretches of ticks without a change, each with its network."""
        starts = [*np.unique(self._first).tolist(), len(self.costs)]
        for start, end in pairwise(starts):
            yield slice(start, end), self.wiring(start)

    @cached_property
    def _first(self) -> Floats:
        """The first tick with the same values as each, shape (ticks,)."""
        both = np.concatenate((self.costs, self.selectivities), axis=1)
        new = np.concatenate(([True], (both[1:] != both[:-1]).any(axis=1)))
        return np.maximum.accumulate(np.where(new, np.arange(len(both)), 0))

    def _made(self, costs: Floats, selectivities: Floats) -> Wiring:
        return Wiring.from_network(with_values(self._network, costs, selectivities))


class TrueSource(Protocol):
    """Gives true values over time."""

    def over(self, network: Network, at_us: NDArray[np.int64]) -> TrueValues:
        """The values in ticks that start at these times of the replay."""
        ...

    def as_data(self) -> Mapping[str, Any]:
        """What determines the values, as JSON data."""
        ...


@dataclass(frozen=True, slots=True)
class Given:
    """The values of the network itself."""

    cost_scale: float = 1.0  # actual costs of operators / declared costs

    def over(self, network: Network, at_us: NDArray[np.int64]) -> TrueValues:
        """The same values in each tick."""
        costs, selectivities = np.repeat(values_of(network)[:, None], len(at_us), axis=1)
        return TrueValues(network, costs * self.cost_scale, selectivities)

    def as_data(self) -> Mapping[str, Any]:
        """The parameters."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Drawn:
    """True values drawn at random.

    A value drawn with ratio R is at most 1 + R times that of the network, at least that / (1 + R), and uniform in
    logarithms in between; the first is that of the network. Unions pass every tuple on.
    """

    # R of values that move along straight lines, in logarithms, with a drawn one at each tenth of the replay
    drift: float = 0.0
    jump: float = 0.0  # R of values that are constant in each tenth of the replay
    noise: float = 0.0  # standard deviation of a value in a tick, as a share of its mean
    seed: int = 0  # random seed

    @classmethod
    def from_text(cls, text: str) -> "Drawn | None":
        """Read `drift:0.5,noise:0.1@7`; None if the text does not begin like that."""
        if not re.match(r"(drift|jump|noise):", text):
            return None
        kinds, _, seed = text.partition("@")
        found = [_DRAWN.fullmatch(part.strip()) for part in kinds.split(",")]
        try:
            values = {match[1]: float(match[2]) for match in found if match}
            drawn = cls(**values, seed=int(seed or 0))
            valid = len(values) == len(found) and all(0 < value < np.inf for value in values.values())
            if not valid or not 0 <= drawn.seed < 2**63:
                raise ValueError
        except ValueError:
            raise UsageError(f"true values are a file, or {_FORM} (got {text!r})") from None
        return drawn

    def over(self, network: Network, at_us: NDArray[np.int64]) -> TrueValues:
        """The values in each tick."""
        ticks, operators = len(at_us), len(network.operators)
        drawn = np.random.default_rng([self.seed, 1]).uniform(-1, 1, (2, LEGS, 2, operators))
        points = np.concatenate((np.zeros((1, 2, operators)), drawn[0] * np.log1p(self.drift)))
        steps = drawn[1] * np.log1p(self.jump)
        steps[0] = 0.0
        leg, share = np.divmod((np.arange(ticks) + 0.5) / ticks * LEGS, 1)
        at, share = leg.astype(np.int64), share[:, None, None]
        logs = points[at] * (1 - share) + points[at + 1] * share + steps[at]
        logs[:, 1, _unions(network)] = 0.0
        values = values_of(network) * np.exp(logs)
        return TrueValues(network, values[:, 0], values[:, 1], self.noise, self.seed)

    def as_data(self) -> Mapping[str, Any]:
        """The parameters."""
        return asdict(self)


def values_of(network: Network) -> Floats:
    """Costs, then selectivities; shape (2, operators)."""
    return np.array([[each.cost for each in network.operators], [each.selectivity for each in network.operators]])


def with_values(network: Network, costs: Floats, selectivities: Floats) -> Network:
    """A network with other costs and selectivities, shape (operators,) each."""
    operators = tuple(
        replace(operator, cost=float(cost), selectivity=float(selectivity))
        for operator, cost, selectivity in zip(network.operators, costs, selectivities, strict=True)
    )
    return replace(network, operators=operators)


def _unions(network: Network) -> list[bool]:
    return [operator.kind is OperatorKind.UNION for operator in network.operators]
