"""Zipf shares of keys."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.counting.zipf import MOST_RANKS, zipf_table
from adapt.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class ZipfKeys:
    """The key of rank k has the share k^-z / sum.

    Attributes:
        domain: Number of keys, 1 to `MOST_RANKS`; 8 bytes each are kept where rows are made.
        exponent: z, 0 (uniform) or more.

    Raises:
        UsageError: an attribute is out of its range.
    """

    domain: int = 1_000_000
    exponent: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.domain <= MOST_RANKS:
            raise UsageError(f"--domain is {self.domain}, but a stream has from 1 to {MOST_RANKS:,} keys")
        if not (self.exponent >= 0 and math.isfinite(self.exponent)):
            raise UsageError(f"--exponent is {self.exponent}, but it must be 0 (uniform) or more")

    def ranks(self, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """The rank, from 1, of each number in [0, 1); shape (rows,)."""
        return zipf_table(self.domain, self.exponent).ranks(uniforms)
