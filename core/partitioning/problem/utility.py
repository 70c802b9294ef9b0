"""Utility of an assignment: balance and migration penalties combined, lower is better.

Source: partitioning functions, section 4.3.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType

import numpy as np

from adapt.core.compiled import inlined
from adapt.core.partitioning.schemes.names import UtilityName


class Weighing(IntEnum):
    """Weight of the migration penalty: w(gamma)."""

    NOTHING = 0
    PLAIN = 1
    LOGARITHM = 2


@dataclass(frozen=True, slots=True)
class Utility:
    """A utility of the paper: rho + w(gamma), or its product."""

    weighing: Weighing  # w: 0, gamma or log(1 + gamma)
    times: bool  # whether rho is multiplied by 1 + w, instead of adding w


UTILITIES: Mapping[UtilityName, Utility] = MappingProxyType(
    {
        UtilityName.A: Utility(Weighing.NOTHING, False),
        UtilityName.APM: Utility(Weighing.PLAIN, False),
        UtilityName.APLM: Utility(Weighing.LOGARITHM, False),
        UtilityName.ATM: Utility(Weighing.PLAIN, True),
        UtilityName.ATLM: Utility(Weighing.LOGARITHM, True),
    }
)

_NOTHING, _LOGARITHM = int(Weighing.NOTHING), int(Weighing.LOGARITHM)


@inlined
def weighed(gamma: float, weighing: int) -> float:
    """w(gamma) (section 4.3)."""
    if weighing == _NOTHING:
        return 0.0
    return float(np.log1p(gamma)) if weighing == _LOGARITHM else gamma


@inlined
def utility(rho: float, weight: float, times: bool) -> float:
    """U (section 4.3) of rho and w(gamma)."""
    return rho * (1 + weight) if times else rho + weight
