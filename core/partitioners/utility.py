"""How the balance penalty and the migration penalty of a placement are combined; lower is better.

Source: partitioning functions, section 4.3.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from adapt.core.partitioners.names import UtilityName
from adapt.core.resources.functions import Floats

Utility: TypeAlias = Callable[[Floats, Floats], Floats]
"""From rho and gamma of each candidate to its utility; all of one shape."""


def balance_only(rho: Floats, gamma: Floats) -> Floats:  # noqa: ARG001 - a utility takes both
    """U_A = rho."""
    return rho


def plus_migration(rho: Floats, gamma: Floats) -> Floats:
    """U_APM = rho + gamma."""
    return rho + gamma


def plus_log_migration(rho: Floats, gamma: Floats) -> Floats:
    """U_APLM = rho + log(1 + gamma)."""
    return rho + np.log(1 + gamma)


def times_migration(rho: Floats, gamma: Floats) -> Floats:
    """U_ATM = rho (1 + gamma)."""
    return rho * (1 + gamma)


def times_log_migration(rho: Floats, gamma: Floats) -> Floats:
    """U_ATLM = rho (1 + log(1 + gamma))."""
    return np.asarray(rho * (1 + np.log(1 + gamma)))


UTILITIES: Mapping[UtilityName, Utility] = MappingProxyType(
    {
        UtilityName.A: balance_only,
        UtilityName.APM: plus_migration,
        UtilityName.APLM: plus_log_migration,
        UtilityName.ATM: times_migration,
        UtilityName.ATLM: times_log_migration,
    }
)
