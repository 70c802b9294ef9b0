"""Size of the experiments, and those that several figures share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from adapt.core.partitioning.schemes.names import Construction, Scheme
from paper.estimates import Estimate
from paper.experiments import Results
from paper.partitioning.chains import Recipe, Step
from paper.partitioning.measured import ChainsBuilt, HashedParts, hashed_parts, hashed_steps

PAPERS_OWN = (Construction.SCAN, Construction.REDIST, Construction.READJ)
"""The paper's three constructions."""

LEVEL = Recipe(Construction.LEVEL, track=1000)
"""The construction beyond the paper that is shown with its three, with its intended number of tracked keys."""

CHANNELS = 10
"""Default N (Table 1)."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Size of the experiments.

    Attributes:
        seeds: Seeds from 0.
        keys: Default |D|.
        most_channels: N of the longest chain, from 32.
        skews: Values of z, for all resource functions.
        quadratic_skews: Values of z with quadratic computation.
        sigmas: Threshold scalers with constant or linear computation.
        quadratic_sigmas: Those of them also used with quadratic computation.
        domains: Values of |D| to compare, with the seeds of each.
        alphas: Tolerances, above 1.
        rows: Tuples that the lossy counter counts.
        timed_seeds: Seeds of timed experiments.
        mapped: Numbers of pinned keys in the plans that are written.
        is_quick: Whether this is a rehearsal.
    """

    seeds: int = 20
    keys: int = 10**6
    most_channels: int = 100
    skews: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    quadratic_skews: tuple[float, ...] = (0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
    sigmas: tuple[float, ...] = (0.008, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5, 0.7, 1.0)
    quadratic_sigmas: tuple[float, ...] = (0.008, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5, 0.7, 1.0)
    domains: tuple[tuple[int, int], ...] = ((10**4, 20), (10**5, 20), (10**6, 20), (10**7, 20))
    alphas: tuple[float, ...] = (1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 4.0)
    rows: int = 2_000_000
    timed_seeds: int = 5
    mapped: tuple[int, ...] = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)
    is_quick: bool = False

    @classmethod
    def quick(cls) -> "Scope":
        """A rehearsal: three seeds, 100,000 keys, only needed values."""
        return cls(
            seeds=3,
            keys=10**5,
            most_channels=32,
            skews=(0.25, 0.5, 0.8, 1.0),
            quadratic_skews=(0.25, 0.5),
            sigmas=(0.008, 0.1, 0.25, 0.5),
            quadratic_sigmas=(0.25, 0.5),
            domains=((10**4, 3), (2 * 10**4, 3), (10**5, 3)),
            alphas=(1.1, 4.0),
            rows=200_000,
            timed_seeds=2,
            mapped=(100, 1000, 10_000),
            is_quick=True,
        )

    def with_seeds(self, most: int) -> "Scope":
        """The same with fewer seeds.

        Their results are part of the full scope.
        """
        domains = tuple((keys, min(seeds, most)) for keys, seeds in self.domains)
        return replace(self, seeds=min(self.seeds, most), domains=domains, timed_seeds=min(self.timed_seeds, most))

    def hashed(self, scheme: Scheme, seed: int, keys: int | None = None, skew: float = 1.0) -> tuple[HashedParts, ...]:
        """Sums of a hashing scheme, up to the longest chain."""
        keys = self.keys if keys is None else keys
        is_usual = keys == self.keys and skew == 1.0
        channels = tuple(range(1, (self.most_channels if is_usual else CHANNELS) + 1))
        others = tuple(sorted({*self.skews, *self.quadratic_skews} - {1.0}))
        return hashed_parts(keys, seed, (1.0,) if skew == 1.0 else others, scheme, channels)

    def chains(
        self,
        recipes: tuple[Recipe, ...],
        *,
        keys: int | None = None,
        skew: float = 1.0,
        channels: int = CHANNELS,
        seeds: int | None = None,
    ) -> list[ChainsBuilt]:
        """Chains of some recipes, one experiment per seed."""
        keys = self.keys if keys is None else keys
        return [
            ChainsBuilt(keys, skew, seed, channels, recipes, self.hashed(Scheme.CONSISTENT, seed, keys, skew))
            for seed in range(self.seeds if seeds is None else seeds)
        ]


def built(experiments: Sequence[ChainsBuilt], results: Results, recipe: Recipe) -> list[list[Step]]:
    """Steps of one recipe's chain, by seed."""
    at = experiments[0].recipes.index(recipe)
    return [[Step.from_data(row) for row in results[experiment][at]] for experiment in experiments]


def hashed(
    scope: Scope,
    results: Results,
    scheme: Scheme,
    *,
    keys: int | None = None,
    skew: float = 1.0,
    seeds: int | None = None,
) -> list[list[Step]]:
    """Steps of a scheme that hashes all keys, by seed."""
    steps = []
    for seed in range(scope.seeds if seeds is None else seeds):
        parts = scope.hashed(scheme, seed, keys, skew)
        steps.append(hashed_steps(parts, [results[part] for part in parts], skew))
    return steps


Number = Callable[[Step], float | None]


def at_channels(chains: Sequence[Sequence[Step]], channels: int, number: Number) -> list[float]:
    """A metric of the step to N channels, one per seed."""
    found = [number(steps[channels - 1]) for steps in chains]
    return [float("inf") if value is None else value for value in found]


def b_of(letters: str, alpha: float = 1.2) -> Number:
    """b for three resource functions."""
    return lambda step: step.b(letters, alpha)


def m_of(letter: str = "L") -> Number:
    """m for this function of state."""
    return lambda step: None if step.m is None else step.m[letter]


def r_of(letter: str, alpha: float = 1.2) -> Number:
    """b_k: r of one function over its tolerance."""

    def relative(step: Step) -> float | None:
        ratio = step.r[letter]
        return None if ratio is None else ratio / alpha

    return relative


def estimate(values: Sequence[float]) -> Estimate | None:
    """The mean over seeds; None if undefined or infinite for one."""
    return Estimate.of(values) if values and all(value < float("inf") for value in values) else None


def ratios(values: Sequence[float], others: Sequence[float]) -> list[float]:
    """Ratio of two series, seed by seed."""
    return [value / other for value, other in zip(values, others, strict=True)]


def differences(values: Sequence[float], others: Sequence[float]) -> list[float]:
    """Difference of two series, seed by seed."""
    return [value - other for value, other in zip(values, others, strict=True)]
