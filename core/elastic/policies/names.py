"""The names by which ways of scaling are chosen; light enough for `--help`."""

from enum import StrEnum


class ScalingPolicy(StrEnum):
    """What decides how many workers there are."""

    FIXED = "fixed"
    """Nothing: the workers at the start are those at the end."""

    THRESHOLDS = "thresholds"
    """As ESJ has it: more workers while they are fuller than tau3, fewer below tau0, towards tau1."""

    DS2 = "ds2"
    """As DS2 has it: at once as many as the input needs, by what a worker does in a second of work."""

    LAG = "lag"
    """As scalers of Kafka consumers have it: a worker for so many rows that wait."""


class Signal(StrEnum):
    """What thresholds are compared with."""

    HELD = "held"
    """What workers hold, after shedding; what they work, where they hold nothing."""

    OFFERED = "offered"
    """What they would hold, or work, if nothing were shed."""


class Alignment(StrEnum):
    """Which numbers of workers there may be."""

    ANY = "any"
    """Any."""

    FACTORS = "factors"
    """Those that divide the partitions, so that every worker can have as many."""
