"""Experiments on construction times and plan sizes, measured in isolation."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import mmh3
import numpy as np
import pyarrow as pa

from adapt.core.keys.columns import ARROW_TYPES
from adapt.core.partitioning.constructions.registry import CONSTRUCTIONS
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.problem.problem import Problem
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.partitioning.schemes.names import Construction, Scheme
from adapt.core.stream import KeyType
from adapt.traces.store.manifest import Provenance
from adapt.traces.store.plans import write_plan
from paper.beside import module_at
from paper.experiments import Data
from paper.partitioning.chains import Recipe, hybrid_steps
from paper.partitioning.domain import BLOCK, Domain
from paper.partitioning.measured import HashedParts, sums_of

_ENOUGH_S = 1.0
"""Total time of a step's repeats, at most `_MOST` of them."""
_MOST = 5


@dataclass(frozen=True, slots=True)
class StepsTimed:
    """Time of a chain's last construction, by recipe and channels.

    Attributes:
        keys: |D|.
        skew: z.
        seed: Seed of the keys.
        channels: N of each timed step.
        recipes: Parameters of each chain.
        hashed: The sums of the ring.
    """

    alone: ClassVar[bool] = True
    keys: int
    skew: float
    seed: int
    channels: tuple[int, ...]
    recipes: tuple[Recipe, ...]
    hashed: tuple[HashedParts, ...]

    @property
    def label(self) -> str:
        """Description of the experiment."""
        return f"times of {len(self.recipes)} constructions, z = {self.skew:g}, seed {self.seed}"

    @property
    def needs(self) -> tuple[HashedParts, ...]:
        """Sums of the ring."""
        return self.hashed

    def measure(self, given: Sequence[Data]) -> Data:
        """Seconds and keys tracked, by recipe and N."""
        sums, domain = sums_of(self.hashed, given, self.skew), Domain(self.keys, self.skew, self.seed)
        found = []
        for recipe in self.recipes:
            steps = hybrid_steps(domain, sums, recipe, max(self.channels))
            found.append(
                [_timed(problem, recipe.construction) for problem, step in steps if step.channels in self.channels]
            )
        return found


@dataclass(frozen=True, slots=True)
class Cold:
    """A step from a ring to N channels with tracked keys.

    Attributes:
        construction: Construction that places them.
        tracked: Number of tracked keys.
        channels: N.
        replicas: Replicas per channel on the ring.
        letters: Resource functions.
    """

    construction: Construction
    tracked: int
    channels: int
    replicas: int = 1000
    letters: str = "LLL"


@dataclass(frozen=True, slots=True)
class ColdTimed:
    """Time of single steps that start from pure hashing; z = 1.

    Attributes:
        keys: |D|.
        seed: Seed of the keys.
        steps: Steps to time.
    """

    alone: ClassVar[bool] = True
    keys: int
    seed: int
    steps: tuple[Cold, ...]

    @property
    def label(self) -> str:
        """Description of the experiment."""
        return f"times of {len(self.steps)} cold steps, seed {self.seed}"

    @property
    def needs(self) -> tuple["ColdTimed", ...]:
        """No other experiments."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """Seconds and keys tracked, by step."""
        whole, found = Domain(self.keys, 1.0, self.seed).whole(), []
        for step in self.steps:
            before, after = (ConsistentHash(channels, step.replicas) for channels in (step.channels - 1, step.channels))
            problem = Problem.from_counts(
                before, after, whole, whole.keys[: step.tracked], Resources.parse(step.letters)
            )
            found.append(_timed(problem, step.construction))
        return found


@dataclass(frozen=True, slots=True)
class AgainstLiteral:
    """The compiled construction against its literal form, on one step.

    Attributes:
        keys: |D|; z = 1.
        seed: Seed of the keys.
        recipe: Parameters of the chain.
        channels: N of the step.
        hashed: The sums of the ring.
    """

    alone: ClassVar[bool] = True
    keys: int
    seed: int
    recipe: Recipe
    channels: int
    hashed: tuple[HashedParts, ...]

    @property
    def label(self) -> str:
        """Description of the experiment."""
        return f"literal {self.recipe.construction}, sigma {self.recipe.sigma:g}"

    @property
    def needs(self) -> tuple[HashedParts, ...]:
        """Sums of the ring."""
        return self.hashed

    def measure(self, given: Sequence[Data]) -> Data:
        """Seconds of both, the keys tracked, and whether the mappings are identical."""
        sums, domain = sums_of(self.hashed, given, 1.0), Domain(self.keys, 1.0, self.seed)
        *_, (problem, _) = hybrid_steps(domain, sums, self.recipe, self.channels)
        timed = _timed(problem, self.recipe.construction)
        literal: Callable[[Problem], list[int]] = module_at("tests/core/partitioning/constructions/literal.py").LITERAL[
            self.recipe.construction.value
        ]
        began = perf_counter()
        mapping = literal(problem)
        took = perf_counter() - began
        same = CONSTRUCTIONS[self.recipe.construction](problem).tolist() == mapping
        return {**timed, "literal_s": took, "is_identical": same}


@dataclass(frozen=True, slots=True)
class RoutingTimed:
    """Routing speed of a hybrid plan, against a `mmh3` loop.

    Attributes:
        rows: Keys routed.
        explicit: Number of pinned keys.
        channels: N of each measurement.
    """

    alone: ClassVar[bool] = True
    rows: int
    explicit: int
    channels: tuple[int, ...]

    @property
    def label(self) -> str:
        """Description of the experiment."""
        return f"routing {self.rows:,} keys"

    @property
    def needs(self) -> tuple["RoutingTimed", ...]:
        """No other experiments."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """Keys per second of both, by N."""
        keys = [f"user-{number}" for number in np.random.default_rng(0).zipf(1.2, self.rows) % 10**9]
        column, some = pa.array(keys), keys[: self.rows // 10]
        heavy = list(dict.fromkeys(keys))[: self.explicit]
        found = []
        for channels in self.channels:
            mapped = ExplicitMap.from_mapping({key: at % channels for at, key in enumerate(heavy)})
            partitioner = HybridPartitioner(mapped, ConsistentHash(channels))
            ours = _best(partial(partitioner.channels_of, column))
            loop = _best(partial(_loop, some, channels))
            found.append({"keys_a_second": self.rows / ours, "loop_keys_a_second": len(some) / loop})
        return found


@dataclass(frozen=True, slots=True)
class PlanSizes:
    """Size of plan files by number of pinned keys.

    Attributes:
        mapped: Numbers of pinned keys.
        channels: N.
    """

    alone: ClassVar[bool] = True
    mapped: tuple[int, ...]
    channels: int

    @property
    def label(self) -> str:
        """Description of the experiment."""
        return f"sizes of {len(self.mapped)} plans"

    @property
    def needs(self) -> tuple["PlanSizes", ...]:
        """No other experiments."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """Bytes of the plan with its side file.

        By number and type of keys.
        """
        found = []
        with tempfile.TemporaryDirectory() as folder:
            for number in (0, *self.mapped):
                for key_type, keys in _keys_of_types(number):
                    path = Path(folder) / f"{number}-{key_type}.plan"
                    owners = np.arange(number) % self.channels
                    explicit = ExplicitMap(pa.array(keys, ARROW_TYPES[key_type]), owners)
                    plan = Plan(Scheme.HYBRID, self.channels, key_type, Construction.LEVEL, explicit=explicit)
                    write_plan(plan, path, Provenance("paper", {}, []))
                    size = sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
                    found.append({"key_type": key_type.value, "mapped": number, "bytes": size})
        return found


@dataclass(frozen=True, slots=True)
class MemoryOfBlocks:
    """Peak memory of summing a domain, in a separate process.

    Attributes:
        keys: |D|.
        blocks: Number of blocks, by measurement.
    """

    alone: ClassVar[bool] = True
    keys: int
    blocks: tuple[int, ...]

    @property
    def label(self) -> str:
        """Description of the experiment."""
        return f"memory over {self.keys:,} keys"

    @property
    def needs(self) -> tuple["MemoryOfBlocks", ...]:
        """No other experiments."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """Keys summed and peak bytes so far, by ascending number of blocks."""
        code = (
            "import resource\n"
            "from adapt.core.partitioning.schemes.names import Scheme\n"
            "from paper.partitioning.hashing import hashed_sums\n"
            f"for blocks in {self.blocks}:\n"
            f"    hashed_sums({self.keys}, 0, [1.0], Scheme.CONSISTENT, range(1, 11), 0, blocks * {BLOCK})\n"
            "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        root = Path(__file__).parent.parent.parent
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
        return [
            {"keys": blocks * BLOCK, "bytes": int(kilobytes) * 1024}
            for blocks, kilobytes in zip(self.blocks, told.stdout.split(), strict=True)
        ]


def _timed(problem: Problem, construction: Construction) -> dict[str, Any]:
    """Best time of a construction in seconds, without preparation, and the number of keys it places."""
    rest = problem.residual()
    known = replace(problem, residual=lambda: rest.copy())
    return {"tracked": len(problem.keys), "seconds": _best(lambda: CONSTRUCTIONS[construction](known))}


def _best(work: Callable[[], Any]) -> float:
    """Best time of some runs in seconds, after a warm-up run unless that was long."""
    first = _seconds(work)
    if first > _ENOUGH_S:
        return min(first, _seconds(work))
    times: list[float] = []
    while len(times) < _MOST and sum(times) < _ENOUGH_S:
        times.append(_seconds(work))
    return min(times)


def _seconds(work: Callable[[], Any]) -> float:
    began = perf_counter()
    work()
    return perf_counter() - began


def _loop(keys: Sequence[str], channels: int) -> list[int]:
    return [mmh3.hash128(key, 0) % channels for key in keys]


def _keys_of_types(number: int) -> Iterator[tuple[KeyType, list[Any]]]:
    yield KeyType.INT64, [10**12 + 7919 * at for at in range(number)]
    yield KeyType.STRING, [f"user-{10**10 + 7919 * at}" for at in range(number)]
