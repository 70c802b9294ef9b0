"""Names of schemes and constructions; light enough for `--help`.

The schemes of engines are named in `core/engines/names.py`.
"""

from enum import StrEnum


class Scheme(StrEnum):
    """A scheme that assigns keys to channels, other than an engine's own."""

    UNIFORM = "uniform"
    CONSISTENT = "consistent"
    HYBRID = "hybrid"
    JUMP = "jump"
    RENDEZVOUS = "rendezvous"
    MAGLEV = "maglev"
    KEY_GROUPS = "key-groups"
    BOUNDED = "bounded"


DEFAULT_SCHEMES = (Scheme.UNIFORM, Scheme.CONSISTENT, Scheme.HYBRID)
"""Schemes compared by default."""

MAPPED_SCHEMES = frozenset({Scheme.HYBRID, Scheme.BOUNDED})
"""Schemes that pin keys, over a ring for all others; hybrid over any other scheme too."""

RING_SCHEMES = MAPPED_SCHEMES | {Scheme.CONSISTENT}
"""Schemes with a ring, hybrid unless it has another base; the others ignore the replicas of a plan."""


class Construction(StrEnum):
    """How the hybrid scheme assigns pinned keys."""

    SCAN = "scan"
    REDIST = "redist"
    READJ = "readj"
    READJ_PRINTED = "readj-printed"
    UNLOCKED = "unlocked"
    LEVEL = "level"


DEFAULT_CONSTRUCTION = Construction.LEVEL
"""Default: the best balance for about the least migration, and fast."""

DEFAULT_CONSTRUCTIONS = (Construction.SCAN, Construction.REDIST, Construction.READJ, Construction.LEVEL)
"""Constructions compared by default: the paper's three, and the default."""


class UtilityName(StrEnum):
    """How balance and migration penalties are combined.

    Source: partitioning functions, section 4.3.
    """

    A = "A"
    APM = "APM"
    APLM = "APLM"
    ATM = "ATM"
    ATLM = "ATLM"


DEFAULT_UTILITY = UtilityName.APM
"""Default of the constructions that have a utility."""
