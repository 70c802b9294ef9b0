"""Names of scaling policies and signals, light enough for `--help`."""

from enum import StrEnum


class ScalingPolicy(StrEnum):
    """A scaling policy."""

    FIXED = "fixed"
    """The number of workers never changes."""

    THRESHOLDS = "thresholds"
    """ESJ: scale out above tau3 and in below tau0, to a utilization of tau1."""

    DS2 = "ds2"
    """DS2: one rescale to the arrival rate over the true processing rate of a worker."""

    LAG = "lag"
    """One worker for a fixed number of waiting rows, as KEDA scales Kafka consumers."""

    FLINK = "flink"
    """The autoscaler of Flink's Kubernetes operator: by true processing rate, lag and restart time."""

    SPARK = "spark"
    """Spark's dynamic allocation: 1, 2, 4 more workers while rows wait; removes idle ones."""


ALL_POLICIES = "all"
"""Every scaling policy."""


class Signal(StrEnum):
    """The utilization that the thresholds are compared with."""

    HELD = "held"
    """Measured: rows in the buffers after shedding, or busy time without buffers."""

    OFFERED = "offered"
    """Offered: what it would be if nothing were shed."""


class Alignment(StrEnum):
    """Which numbers of workers are allowed."""

    ANY = "any"
    """Any number."""

    FACTORS = "factors"
    """Divisors of the number of partitions, so that all workers get equally many."""
