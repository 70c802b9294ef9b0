"""Zipf key popularity."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.counting.zipf import MOST_RANKS, zipf_table
from adapt.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class ZipfKeys:
    """Zipf keys, with shares proportional to rank^-z."""

    domain: int = 1_000_000  # number of keys, 1 to `MOST_RANKS`; a process that draws rows holds 8 bytes per key
    exponent: float = 1.0  # z, 0 (uniform) or more

    def __post_init__(self) -> None:
        if not 1 <= self.domain <= MOST_RANKS:
            raise UsageError(f"--keys must be from 1 to {MOST_RANKS:,} (got {self.domain})")
        if not (self.exponent >= 0 and math.isfinite(self.exponent)):
            raise UsageError(f"--exponent must be 0 or more (got {self.exponent})")

    def ranks(self, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """Rank, from 1, of each number in [0, 1); shape (rows,)."""
        return zipf_table(self.domain, self.exponent).ranks(uniforms)
