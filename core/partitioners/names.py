"""The names by which schemes and constructions are chosen; light enough for `--help`.

What stands behind each name is in `registry.py` (schemes), `construct.py` and `utility.py`, whose keys are exactly
these members.
"""

from enum import StrEnum


class Scheme(StrEnum):
    """A way of placing keys on channels."""

    UNIFORM = "uniform"
    CONSISTENT = "consistent"
    HYBRID = "hybrid"


class Construction(StrEnum):
    """How the hybrid scheme places the keys it tracks."""

    SCAN = "scan"


class UtilityName(StrEnum):
    """How balance and migration penalties are combined (partitioning functions, section 4.3)."""

    A = "A"
    APM = "APM"
    APLM = "APLM"
    ATM = "ATM"
    ATLM = "ATLM"
