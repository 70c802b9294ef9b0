"""Balance penalty: rho of Eqs. 19 and 20."""

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.partitioning.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class Balance:
    """Rho of Eqs. 19 and 20, with equal resources merged.

    rho = scale * (product over resources of ((max - min) / sum)^power)^(1 / root), 0 without any resource.

    Eq. 20 with resources of equal load merged, since only their theta may differ: LLL has one such resource, LQL two.
    Without the constant resources, the exponent of Eq. 20 is one over the number of the others (section 4.4).

    Source: partitioning functions, section 4.2.1.
    """

    loads: Floats  # each distinct load of each key, shape (distinct, keys); at most three
    powers: NDArray[np.int64]  # how many resources have that load, shape (distinct,); 1 if there is no other
    units: Floats  # the weight of a unit of each distinct load, shape (distinct,), as in the problem
    root: int  # number of resources; 1 if they all have one load, 0 without any
    scale: float  # product of (channels / theta)^(1 / resources)

    @classmethod
    def from_problem(cls, problem: Problem) -> "Balance":
        """The penalty of a problem's resources."""
        same = same_rows(problem.loads)
        distinct = sorted(set(same))
        powers = [same.count(row) for row in distinct]
        root = sum(powers)
        if powers == [root]:
            powers, root = [1], 1
        scale = prod((problem.channels / problem.theta).tolist()) ** (1 / max(len(same), 1))
        return cls(
            loads=np.ascontiguousarray(problem.loads[distinct]),
            powers=np.array(powers, np.int64),
            units=problem.units[distinct],
            root=root,
            scale=scale,
        )


def same_rows(rows: Floats) -> list[int]:
    """The first equal row of each row."""
    return [next(j for j in range(k + 1) if np.array_equal(rows[j], rows[k])) for k in range(len(rows))]
