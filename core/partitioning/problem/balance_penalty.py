"""Balance penalty: rho of Eqs. 19 and 20, or b."""

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.partitioning.problem.problem import Problem
from adapt.core.partitioning.problem.utility import UTILITIES

NEXT_TO_NOTHING = 0.001
"""Load of an empty channel in b, relative to the mean, so that ratios stay finite and comparable."""


@dataclass(frozen=True, slots=True)
class Balance:
    """Rho of Eqs. 19 and 20, with equal resources merged.

    rho = scale * (product over resources of ((max - min) / sum)^power)^(1 / root), 0 without any resource.

    Eq. 20 with resources of equal load merged, since only their theta may differ: LLL has one such resource, LQL two.
    Without the constant resources, the exponent of Eq. 20 is one over the number of the others (section 4.4).

    With the objective b (1 + m), it is b without tolerances and constant resources: (product of (max / min)^power)^(1 /
    root), 1 without any resource.

    Attributes:
        loads: Each distinct load of each key, shape (distinct, keys); at most three.
        on_channels: The load that each channel has without these keys, shape (distinct, channels).
        powers: How many resources have that load, shape (distinct,); 1 if there is no other.
        units: The weight of a unit of each distinct load, shape (distinct,), as in the problem.
        root: Number of resources; 1 if they all have one load, 0 without any.
        scale: Product of (channels / theta)^(1 / resources); 1 for b.
        least: Load of an empty channel, relative to the sum, for b; 0 for rho.

    Source: partitioning functions, section 4.2.1.
    """

    loads: Floats
    on_channels: Floats
    powers: NDArray[np.int64]
    units: Floats
    root: int
    scale: float
    least: float

    @classmethod
    def from_problem(cls, problem: Problem) -> "Balance":
        """The penalty of a problem's resources."""
        rows = np.concatenate((problem.loads, problem.on_channels), axis=1)
        same, is_b = same_rows(rows), UTILITIES[problem.utility].objective
        distinct = [row for row in sorted(set(same)) if not is_b or rows[row].any()]
        powers = [same.count(row) for row in distinct]
        root = _RESOURCES if is_b and powers else sum(powers)
        if powers == [root]:
            powers, root = [1], 1
        scale = 1.0 if is_b else prod((problem.channels / problem.theta).tolist()) ** (1 / max(len(same), 1))
        return cls(
            loads=np.ascontiguousarray(problem.loads[distinct]),
            on_channels=np.ascontiguousarray(problem.on_channels[distinct]),
            powers=np.array(powers, np.int64),
            units=problem.units[distinct],
            root=root,
            scale=scale,
            least=NEXT_TO_NOTHING / problem.channels if is_b else 0.0,
        )


_RESOURCES = 3
"""State, computation and network."""


def same_rows(rows: Floats) -> list[int]:
    """The first equal row of each row."""
    return [next(j for j in range(k + 1) if np.array_equal(rows[j], rows[k])) for k in range(len(rows))]
