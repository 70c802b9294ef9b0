"""The names by which arrivals and ways of routing are chosen; light enough for `--help`."""

from enum import StrEnum


class Router(StrEnum):
    """How a producer's tuples find their consumer."""

    EXCHANGE = "exchange"
    """By content, one queue a connection: a producer that meets a full one waits, whatever room the others have."""

    RIVER = "river"
    """To any consumer, drawn by the room in its connection: what content-insensitive routing could reach."""

    FLUX = "flux"
    """By content, from a buffer that all partitions share: tuples for slow consumers wait, the others go on."""


class Arrivals(StrEnum):
    """When the rows of a trace arrive."""

    TRACE = "trace"
    """By their times."""

    SATURATE = "saturate"
    """As soon as there is room for them."""


class DropCurve(StrEnum):
    """Shape of the drop probability between the threshold and a full worker."""

    LINEAR = "linear"
    QUADRATIC = "quadratic"


class Producers(StrEnum):
    """How rows are assigned to producers."""

    ROW = "row"
    """By the hash of the row's number."""

    STREAM = "stream"
    """By the hash of the row's stream."""


class Migrating(StrEnum):
    """How the partitions of a scale step move."""

    ALL = "all"
    """All at once."""

    BATCHED = "batched"
    """In portions, one after the other."""

    ONE = "one"
    """One at a time."""

    HOTTEST = "hottest"
    """In portions, the heaviest partitions first."""
