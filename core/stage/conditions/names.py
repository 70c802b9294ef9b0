"""Names of routers, arrivals, drop curves and migration modes."""

from enum import StrEnum


class Router(StrEnum):
    """How tuples are routed from producers to consumers."""

    EXCHANGE = "exchange"
    """By content, with a queue per connection: a full one blocks the producer."""

    RIVER = "river"
    """To any consumer, drawn by the free space of its connection: an upper bound for content-insensitive routing."""

    FLUX = "flux"
    """By content, from a buffer shared by all partitions: tuples for slow consumers wait without blocking others."""


class QueueingName(StrEnum):
    """Whose queues a stage has."""

    FLUX = "flux"
    """A buffer per producer, shared by all partitions; a full one stops its producer."""

    FLINK = "flink"
    """Credits and bounded buffers per channel, and checkpoints; a full channel stops its producer."""

    KAFKA = "kafka"
    """A log per partition, read in fetches; no partition waits for another worker."""

    SPARK = "spark"
    """Micro-batches: the slowest worker ends the batch."""


class Arrivals(StrEnum):
    """When rows of a trace arrive."""

    TRACE = "trace"
    """By their timestamps."""

    SATURATE = "saturate"
    """As fast as producers accept them."""

    ROTATE = "rotate"
    """The same, but each 65,536 rows go to one worker after another: transient skew by arrival order."""


class DropCurve(StrEnum):
    """Shape of the drop probability between the threshold and a full worker."""

    ROOT = "root"
    LINEAR = "linear"
    QUADRATIC = "quadratic"
    CUBIC = "cubic"

    @property
    def exponent(self) -> float:
        """The power of the way from the threshold to a full worker."""
        return {DropCurve.ROOT: 0.5, DropCurve.LINEAR: 1.0, DropCurve.QUADRATIC: 2.0}.get(self, 3.0)


class Producers(StrEnum):
    """How rows are assigned to producers."""

    ROW = "row"
    """By the hash of the row's number."""

    STREAM = "stream"
    """By the hash of the row's stream."""


class Migrating(StrEnum):
    """How partitions move in a rescale."""

    ALL = "all"
    """All at once."""

    BATCHED = "batched"
    """In batches, one after the other."""

    ONE = "one"
    """One at a time."""

    HOTTEST = "hottest"
    """In batches, the hottest partitions first."""

    DEMAND = "demand"
    """One at a time from each worker, first those for which rows come."""

    RESTART = "restart"
    """Not live: stop, save, restore and start again."""


class RestartName(StrEnum):
    """Ways to restart, with the engine's own numbers."""

    FLINK_SAVEPOINT = "flink-savepoint"
    """Stop with a savepoint, deploy and restore."""

    FLINK_ADAPTIVE = "flink-adaptive"
    """Flink's adaptive scheduler: restart from the checkpoint that has just completed."""

    KAFKA_EAGER = "kafka-eager"
    """All consumers give up all partitions and rejoin."""

    KAFKA_COOPERATIVE = "kafka-cooperative"
    """Only partitions that move stop."""
