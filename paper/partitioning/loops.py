"""Experiment on the splitter's loop: N grows, then the hot keys change."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from adapt.core.counting.sliding import SlidingWindow
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.loop.splitter import Splitter
from adapt.core.partitioning.measures.imbalance import max_over_min, relative_imbalance
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.schemes.names import Construction
from adapt.core.stream import KeyType
from adapt.core.units.row_or_time_span import Length
from paper.experiments import Data
from paper.partitioning.domain import Domain
from paper.partitioning.rings import ring_of

LETTERS, ALPHA = "LLL", 1.2

AFTER = 5
"""Periods after the one in which the hot keys change."""


@dataclass(frozen=True, slots=True)
class LoopRan:
    """The loop over a Zipf stream, with one more channel each period.

    Then the ranks of all keys change at once, at a fixed number of channels. A plan is adopted on each change of N, and
    when the counted imbalance is beyond tolerance.

    Attributes:
        keys: |D|.
        skew: z.
        seed: Seed of the keys and of the stream.
        construction: Construction of the plans.
        channels: N of the last period that adds one.
        rows: Tuples of a period, and least tuples in the sliding window.
    """

    alone: ClassVar[bool] = False
    keys: int
    skew: float
    seed: int
    construction: Construction
    channels: int
    rows: int

    @property
    def label(self) -> str:
        """Description of the experiment."""
        return f"loop with {self.construction}, {self.keys:,} keys, z = {self.skew:g}, seed {self.seed}"

    @property
    def needs(self) -> tuple["LoopRan", ...]:
        """No other experiments."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """N, b on the period's tuples, and m at its start, by period."""
        resources = Resources.parse(LETTERS, ALPHA)
        window = SlidingWindow(Length(self.rows, in_rows=True))
        with ring_of(self.seed):
            recipe = Recipe(construction=self.construction, resources=resources)
            splitter = Splitter(1, recipe, window=window, key_type=KeyType.INT64)
            measured: list[list[float | None]] = []
            ratio: float | None = 1.0
            for period, keys in enumerate(self._periods()):
                channels, adopted = min(period + 1, self.channels), None
                is_over = ratio is None or ratio > ALPHA
                if period and (channels != splitter.plan.channels or (splitter.is_full and is_over)):
                    adopted = splitter.propose(channels)
                    splitter.adopt(adopted)
                ratio = max_over_min(np.bincount(splitter.route(keys), minlength=channels).astype(np.float64))
                splitter.observe(keys)
                b = None if ratio is None else relative_imbalance([ratio] * 3, [ALPHA] * 3)
                measured.append([channels, b, None if adopted is None else adopted.m])
            return measured

    def _periods(self) -> Iterator[pa.Array]:
        """Keys of the tuples of each period."""
        random = np.random.default_rng(self.seed)
        domain = Domain(self.keys, self.skew, self.seed)
        upto = np.cumsum(domain.counts(0, self.keys))
        names = domain.names(0, self.keys)
        for period in range(self.channels + 1 + AFTER):
            ranks = np.searchsorted(upto, random.random(self.rows) * upto[-1], side="right")
            if period >= self.channels:
                ranks = (ranks + self.keys // 2) % self.keys
            yield names.take(pa.array(ranks))
