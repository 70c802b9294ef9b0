"""Other schemes: bounded, which sees every key, and key splitting."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from adapt.core.partitioning.build import Recipe, build_partitioner
from adapt.core.partitioning.measures.metrics import evaluate
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.partitioning.splitting.split import Messages, measure_split, merge_cost, split
from paper.experiments import Data
from paper.partitioning.domain import Domain
from paper.partitioning.rings import ring_of


@dataclass(frozen=True, slots=True)
class WholeMaps:
    """The bounded scheme, which places every key by its count.

    Attributes:
        keys: |D|; z = 1.
        seed: Seed of the keys and the ring.
        cap: Its cap.
        channels: N of each measurement; m is from N - 1.
    """

    alone: ClassVar[bool] = False
    keys: int
    seed: int
    cap: float
    channels: tuple[int, ...]

    @property
    def label(self) -> str:
        """Description of the experiment."""
        return f"bounded, cap {self.cap:g}, {self.keys:,} keys, seed {self.seed}"

    @property
    def needs(self) -> tuple["WholeMaps", ...]:
        """No other experiments."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """r, m and the number of pinned keys, by N."""
        whole, found = Domain(self.keys, 1.0, self.seed).whole(), []
        recipe = Recipe(Scheme.BOUNDED, cap=self.cap)
        for channels in self.channels:
            with ring_of(self.seed):
                before = build_partitioner(whole, recipe, channels - 1)
                after = build_partitioner(whole, recipe, channels, before)
            metrics = evaluate(after, whole, Resources(), before)
            found.append({"r": metrics.r_n, "m": metrics.m, "pinned_keys": metrics.pinned_keys})
        return found


@dataclass(frozen=True, slots=True)
class SplitKeys:
    """Ways of splitting keys, on a stream in random order.

    Attributes:
        keys: |D|; z = 1.
        seed: Seed of the keys and of the order.
        messages: Largest number of messages.
        channels: N of each measurement.
    """

    alone: ClassVar[bool] = False
    keys: int
    seed: int
    messages: int
    channels: tuple[int, ...]

    @property
    def label(self) -> str:
        """Description of the experiment."""
        return f"key splitting, seed {self.seed}"

    @property
    def needs(self) -> tuple["SplitKeys", ...]:
        """No other experiments."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """r and the channels per key, by way of splitting and N."""
        whole = Domain(self.keys, 1.0, self.seed).whole()
        messages = Messages.of_counts(whole, np.random.default_rng(self.seed), self.messages)
        found = {}
        for way in SPLITTINGS:
            for channels in self.channels:
                done = split(messages, way, channels)
                r = measure_split(done, messages, Resources()).r_n
                found[f"{way} {channels}"] = {"r": r, "channels_per_key": merge_cost(done).channels_per_key}
        return found


SPLITTINGS = (Splitting.PKG, Splitting.D_CHOICES, Splitting.W_CHOICES)
"""The ways that split keys."""
