"""Self-similar key popularity: 20 % of the keys get 80 %."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError

MOST_KEYS = 1 << 53


@dataclass(frozen=True, slots=True)
class SelfSimilarKeys:
    """Self-similar keys, with the same hot share at every scale.

    The share h of the hottest keys gets the share 1 - h of the rows.

    Source: Gray, Sundaresan, Englert, Baclawski and Weinberger, Quickly generating billion-record synthetic databases,
    SIGMOD 1994, section 3.2.
    """

    domain: int = 1_000_000  # number of keys, 1 to 2^53
    hot: float = 0.2  # h, above 0 and at most 0.5, which is uniform

    def __post_init__(self) -> None:
        if not 1 <= self.domain <= MOST_KEYS:
            raise UsageError(f"--keys must be from 1 to {MOST_KEYS:,} (got {self.domain})")
        if not 0 < self.hot <= 0.5:
            raise UsageError(f"--hot-share must be above 0 and at most 0.5 (got {self.hot:.6g})")

    def ranks(self, uniforms: Floats) -> NDArray[np.int64]:
        """Rank, from 1, of each number in [0, 1); shape (rows,).

        The rank of u is 1 + floor(N u^(ln h / ln (1 - h))).
        """
        power = math.log(self.hot) / math.log1p(-self.hot)
        found = (self.domain * uniforms**power).astype(np.int64)
        return np.minimum(found, self.domain - 1) + 1
