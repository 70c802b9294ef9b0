"""How the balance penalty and the migration penalty of a placement are combined; lower is better.

Source: partitioning functions, section 4.3.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType

import numpy as np

from adapt.core.partitioning.measures.resources import Floats
from adapt.core.partitioning.schemes.names import UtilityName


class Weighing(IntEnum):
    """What the migration penalty gamma counts as: w(gamma)."""

    NOTHING = 0
    PLAIN = 1
    LOGARITHM = 2


@dataclass(frozen=True, slots=True)
class Utility:
    """U = rho + w(gamma), or rho (1 + w(gamma)): all five utilities of the paper, as kernels take them.

    Attributes:
        weighing: w: 0, gamma or log(1 + gamma).
        times: Whether rho is multiplied by 1 + w, instead of w being added.
    """

    weighing: Weighing
    times: bool

    def __call__(self, rho: Floats, gamma: Floats) -> Floats:
        """The utility of each candidate from its rho and gamma; all of one shape."""
        match self.weighing:
            case Weighing.NOTHING:
                return rho
            case Weighing.PLAIN:
                weight = gamma
            case Weighing.LOGARITHM:
                weight = np.log1p(gamma)
        return rho * (1 + weight) if self.times else rho + weight


UTILITIES: Mapping[UtilityName, Utility] = MappingProxyType(
    {
        UtilityName.A: Utility(Weighing.NOTHING, False),
        UtilityName.APM: Utility(Weighing.PLAIN, False),
        UtilityName.APLM: Utility(Weighing.LOGARITHM, False),
        UtilityName.ATM: Utility(Weighing.PLAIN, True),
        UtilityName.ATLM: Utility(Weighing.LOGARITHM, True),
    }
)
