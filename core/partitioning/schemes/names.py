"""The names by which schemes and constructions are chosen; light enough for `--help`.

The placements of engines are schemes too; their names are in `core/engines/names.py`.
"""

from enum import StrEnum


class Scheme(StrEnum):
    """A way of placing keys on channels that is our own."""

    UNIFORM = "uniform"
    CONSISTENT = "consistent"
    HYBRID = "hybrid"
    JUMP = "jump"
    RENDEZVOUS = "rendezvous"
    MAGLEV = "maglev"
    KEY_GROUPS = "key-groups"
    BOUNDED = "bounded"
    BOUNDED_TIGHT = "bounded-1.05"
    GREEDY = "greedy"
    WEIGHTED = "weighted"


DEFAULT_SCHEMES = (Scheme.UNIFORM, Scheme.CONSISTENT, Scheme.HYBRID)
"""Those that are compared if nothing is said."""

MAPPED_SCHEMES = frozenset({Scheme.HYBRID, Scheme.BOUNDED, Scheme.BOUNDED_TIGHT, Scheme.GREEDY, Scheme.WEIGHTED})
"""Those with an explicit map, over a ring for every other key."""

TRACKING_SCHEMES = frozenset({Scheme.HYBRID, Scheme.WEIGHTED})
"""Those of them that map the heavy keys alone, as many as are tracked."""

RING_SCHEMES = MAPPED_SCHEMES | {Scheme.CONSISTENT}
"""Those with a ring; in the others the replicas of a plan mean nothing."""


class Construction(StrEnum):
    """How the hybrid scheme places the keys it tracks."""

    SCAN = "scan"
    REDIST = "redist"
    READJ = "readj"
    READJ_PRINTED = "readj-printed"
    UNLOCKED = "unlocked"
    LEVEL = "level"


DEFAULT_CONSTRUCTION = Construction.LEVEL
"""The one that plans are built with if nothing is said: the best balance for about the least migration, and fast."""

DEFAULT_CONSTRUCTIONS = (Construction.SCAN, Construction.REDIST, Construction.READJ, Construction.LEVEL)
"""Those that are compared if nothing is said: the paper's three, and the default."""


class UtilityName(StrEnum):
    """How balance and migration penalties are combined (partitioning functions, section 4.3)."""

    A = "A"
    APM = "APM"
    APLM = "APLM"
    ATM = "ATM"
    ATLM = "ATLM"
