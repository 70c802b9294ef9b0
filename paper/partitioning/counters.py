"""Experiments on lossy counters: their size, and plans built from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.compiled import compiled
from adapt.core.counting.lossy import LossyCounter, window_of
from adapt.core.counting.zipf import zipf_table
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.build import Recipe as BuildRecipe
from adapt.core.partitioning.build import build_partitioner
from adapt.core.partitioning.measures.metrics import evaluate
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.problem.tracking import epsilon_for, tracked_keys
from adapt.core.partitioning.schemes.names import Construction, Scheme
from paper.experiments import Data
from paper.partitioning.domain import Domain
from paper.partitioning.rings import ring_of


@dataclass(frozen=True, slots=True)
class CounterSizes:
    """Keys in a lossy counter before and after a purge.

    Row by row, as in the paper.

    Attributes:
        keys: |D|.
        skew: z.
        seed: Random seed.
        rows: Tuples counted.
        epsilons: Error of each counter; all count the same tuples.
    """

    alone: ClassVar[bool] = False
    keys: int
    skew: float
    seed: int
    rows: int
    epsilons: tuple[float, ...]

    @property
    def label(self) -> str:
        """Description of the experiment."""
        return f"{len(self.epsilons)} lossy counters, z = {self.skew:g}, seed {self.seed}"

    @property
    def needs(self) -> tuple["CounterSizes", ...]:
        """No other experiments."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """Mean entries of each counter before and after a purge.

        Over the second half of the purges.
        """
        ranks = _drawn(self.keys, self.skew, self.seed, self.rows) - 1
        return [list(purged_entries(ranks, self.keys, window_of(epsilon))) for epsilon in self.epsilons]


def purged_entries(ranks: NDArray[np.int64], keys: int, window: int) -> tuple[float, float]:
    """Mean keys held before and after a purge.

    Over the second half of the purges, at least one.

    If the rows do not fill a window, the keys of all rows count as held before and after.

    Args:
        ranks: The rank of each tuple, from 0 to before `keys`; shape (rows,).
        keys: |D|.
        window: w = ceil(1/epsilon), the rows between purges.
    """
    held = entries_at_purges(ranks, keys, window)
    if not len(held):
        distinct = float(len(np.unique(ranks)))
        return distinct, distinct
    before, after = held[len(held) // 2 :].mean(axis=0)
    return float(before), float(after)


def entries_at_purges(ranks: NDArray[np.int64], keys: int, window: int) -> NDArray[np.int64]:
    """Keys before and after each purge; shape (purges, 2).

    Source: section 4.1.2.
    """
    held = np.zeros((len(ranks) // window, 2), np.int64)
    _count(ranks, np.zeros(keys, np.int64), np.zeros(keys, np.int64), np.zeros(keys, np.int64), window, held)
    return held


@compiled
def _count(
    ranks: NDArray[np.int64],
    counts: NDArray[np.int64],
    errors: NDArray[np.int64],
    listed: NDArray[np.int64],
    window: int,
    held: NDArray[np.int64],
) -> None:
    entries = 0
    for closed in range(len(held)):
        for row in range(closed * window, (closed + 1) * window):
            rank = ranks[row]
            if counts[rank] == 0:
                errors[rank] = closed
                listed[entries] = rank
                entries += 1
            counts[rank] += 1
        held[closed, 0] = entries
        kept = 0
        for at in range(entries):
            rank = listed[at]
            if counts[rank] + errors[rank] > closed + 1:
                listed[kept] = rank
                kept += 1
            else:
                counts[rank] = 0
        entries = kept
        held[closed, 1] = entries


@dataclass(frozen=True, slots=True)
class BuiltFromLossy:
    """The default construction over lossy counts, measured on the true frequencies.

    Attributes:
        keys: |D|; z = 1.
        seed: Random seed of the keys and the draws.
        channels: N.
        rows: Tuples counted, by measurement.
    """

    alone: ClassVar[bool] = False
    keys: int
    seed: int
    channels: int
    rows: tuple[int, ...]

    @property
    def label(self) -> str:
        """Description of the experiment."""
        return f"readj from lossy counts, seed {self.seed}"

    @property
    def needs(self) -> tuple["BuiltFromLossy", ...]:
        """No other experiments."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """Keys tracked, b (LCL) and m by number of rows."""
        domain, resources = Domain(self.keys, 1.0, self.seed), Resources.parse("LCL")
        recipe = BuildRecipe(Scheme.HYBRID, Construction.READJ, resources)
        epsilon, whole, found = epsilon_for(resources, self.channels, self.keys), domain.whole(), []
        for rows in self.rows:
            counter = LossyCounter(epsilon, pa.int64())
            counter.update(pa.array(_drawn(self.keys, 1.0, self.seed, rows) - 1 + self.seed * self.keys))
            counted = counter.summary().frequencies(epsilon)
            before: Partitioner | None = None
            after: Partitioner | None = None
            with ring_of(self.seed):
                for channels in range(1, self.channels + 1):
                    before, after = after, build_partitioner(counted, recipe, channels, after)
            assert after is not None
            metrics = evaluate(after, whole, resources, before)
            tracked = len(tracked_keys(counted, resources, self.channels))
            found.append({"rows": rows, "tracked": tracked, "b": metrics.b, "m": metrics.m})
        return found


def _drawn(keys: int, skew: float, seed: int, rows: int) -> NDArray[np.int64]:
    """Independent draws of ranks from 1."""
    return zipf_table(keys, skew).ranks(np.random.default_rng(seed).random(rows))
