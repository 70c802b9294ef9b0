"""Self-similar shares of keys: 20 % of the keys have 80 % of the rows, and of those again, at every scale."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError

MOST_KEYS = 1 << 53


@dataclass(frozen=True, slots=True)
class SelfSimilarKeys:
    """The first share h of any first keys has the share 1 - h of their rows.

    Attributes:
        domain: Number of keys, 1 to 2^53.
        hot: h, above 0 and at most 1/2, which is uniform.

    Raises:
        UsageError: an attribute is out of its range.

    Source: Gray, Sundaresan, Englert, Baclawski and Weinberger, Quickly generating billion-record synthetic databases,
    SIGMOD 1994, section 3.2.
    """

    domain: int = 1_000_000
    hot: float = 0.2

    def __post_init__(self) -> None:
        if not 1 <= self.domain <= MOST_KEYS:
            raise UsageError(f"--domain is {self.domain}, but a stream has from 1 to {MOST_KEYS:,} keys")
        if not 0 < self.hot <= 0.5:
            raise UsageError(
                f"--hot is {self.hot:.6g}, but the keys that have all other rows are a share above 0, at most 1/2"
            )

    def ranks(self, uniforms: Floats) -> NDArray[np.int64]:
        """The rank, from 1, of each number in [0, 1): 1 + floor(N u^(ln h / ln (1 - h))). Shape (rows,)."""
        power = math.log(self.hot) / math.log1p(-self.hot)
        found = (self.domain * uniforms**power).astype(np.int64)
        return np.minimum(found, self.domain - 1) + 1
