"""Experiments behind most figures: hashing a domain, and chains over it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import ClassVar

from adapt.core.partitioning.schemes.names import Scheme
from paper.experiments import Data
from paper.partitioning.chains import Recipe, Step, hashed_chain, hybrid_chain
from paper.partitioning.domain import Domain, blocks
from paper.partitioning.hashing import Sums, hashed_sums

RANKS = 1 << 22
"""Ranks of a domain per experiment; larger domains take several experiments."""


@dataclass(frozen=True, slots=True)
class HashedParts:
    """Sums of a hashing scheme over ranks; fields as in `hashed_sums`."""

    alone: ClassVar[bool] = False
    keys: int
    seed: int
    skews: tuple[float, ...]
    scheme: Scheme
    channels: tuple[int, ...]
    first: int
    last: int
    max_parallelism: int | None

    @property
    def label(self) -> str:
        """Description of the experiment."""
        return f"{self.scheme}, {self.keys:,} keys, seed {self.seed}"

    @property
    def needs(self) -> tuple["HashedParts", ...]:
        """No other experiments."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """One `Sums` per skew."""
        sums = hashed_sums(
            self.keys,
            self.seed,
            self.skews,
            self.scheme,
            self.channels,
            self.first,
            self.last,
            self.max_parallelism,
        )
        return [each.as_data() for each in sums]


@dataclass(frozen=True, slots=True)
class ChainsBuilt:
    """Chains of hybrid partitioners over one domain, from one channel to `channels`.

    Attributes:
        keys: |D|.
        skew: z.
        seed: Seed of the keys.
        channels: N of the last step.
        recipes: Parameters of each chain.
        hashed: Sums of the ring over all ranks; z is one of their skews.
    """

    alone: ClassVar[bool] = False
    keys: int
    skew: float
    seed: int
    channels: int
    recipes: tuple[Recipe, ...]
    hashed: tuple[HashedParts, ...]

    @property
    def label(self) -> str:
        """Description of the experiment."""
        return f"{len(self.recipes)} chains, {self.keys:,} keys, z = {self.skew:g}, seed {self.seed}"

    @property
    def needs(self) -> tuple[HashedParts, ...]:
        """Sums of the ring."""
        return self.hashed

    def measure(self, given: Sequence[Data]) -> Data:
        """Steps by recipe."""
        sums = sums_of(self.hashed, given, self.skew)
        domain = Domain(self.keys, self.skew, self.seed)
        return [
            [step.as_data() for step in hybrid_chain(domain, sums, recipe, self.channels)] for recipe in self.recipes
        ]


def hashed_parts(
    keys: int,
    seed: int,
    skews: tuple[float, ...],
    scheme: Scheme,
    channels: tuple[int, ...],
    max_parallelism: int | None = None,
    ranks: int = RANKS,
) -> tuple[HashedParts, ...]:
    """Experiments that together cover a whole domain."""
    return tuple(
        HashedParts(keys, seed, skews, scheme, channels, first, last, max_parallelism)
        for first, last in blocks(0, keys, ranks)
    )


def sums_of(parts: Sequence[HashedParts], results: Sequence[Data], skew: float) -> Sums:
    """Sums of a whole domain for one skew, from its parts."""
    at = parts[0].skews.index(skew)
    return reduce(add, (Sums.from_data(result[at]) for result in results))


def hashed_steps(parts: Sequence[HashedParts], results: Sequence[Data], skew: float) -> list[Step]:
    """Steps of a hashing scheme, from the results of its parts."""
    sums = sums_of(parts, results, skew)
    heaviest = Domain(parts[0].keys, skew, parts[0].seed).counts(0, min(parts[0].keys, max(sums.channels)))
    return hashed_chain(sums, heaviest)
