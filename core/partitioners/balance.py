"""The balance penalty rho of Eqs. 19 and 20, folded so that it costs little to evaluate."""

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from adapt.core.partitioners.problem import Problem
from adapt.core.resources.functions import Floats


@dataclass(frozen=True, slots=True)
class Balance:
    """rho = scale * (product over resources of ((max - min) / sum)^power)^(1 / root), 0 without any resource.

    This is Eq. 20 with the resources of one function taken together, since their loads are equal and only their theta
    may differ: LLL has one such resource, LQL two. With constant resources left out, the exponent of Eq. 20 is one
    over the number of those that are left (section 4.4).

    Attributes:
        loads: beta of each key for each distinct function, shape (distinct, keys); at most two.
        powers: How many resources have that function, shape (distinct,); 1 if there is no other function.
        root: How many resources there are; 1 if they are all of one function, 0 if there are none.
        scale: Product of (channels / theta)^(1 / resources).

    Source: partitioning functions, section 4.2.1.
    """

    loads: Floats
    powers: NDArray[np.int64]
    root: int
    scale: float

    @classmethod
    def of(cls, problem: Problem) -> "Balance":
        """The penalty of a problem's resources."""
        functions = problem.functions
        distinct = list(dict.fromkeys(functions))
        rows = [functions.index(function) for function in distinct]
        powers = [functions.count(function) for function in distinct] if len(distinct) > 1 else [1] * len(distinct)
        scale = prod((problem.channels / problem.theta).tolist()) ** (1 / max(len(functions), 1))
        return cls(np.ascontiguousarray(problem.loads[rows]), np.array(powers, np.int64), sum(powers), scale)
