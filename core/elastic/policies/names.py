"""Names and settings of scaling policies, light enough for `--help`."""

from enum import StrEnum

from adapt.core.stage.conditions.stage_settings import UNCHANGED
from adapt.core.units.settings import ABOVE_0, SECONDS, Range, knob, settings


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


OURS = (ScalingPolicy.THRESHOLDS, ScalingPolicy.DS2, ScalingPolicy.LAG)
"""Policies with a scale-out delay and cooldown around them."""

_PATIENT = f"policy {'|'.join((*OURS, ALL_POLICIES))}"
SCALE_OUT_DELAY, COOLDOWN, WINDOW = 2, 10, 10
"""Times at an offered load, in control periods."""

_USUAL = "(default: {}). At an offered load, {} periods."


@settings("policy")
class ScalerSettings:
    """Parameters of scaling policies."""

    signal: Signal = knob(
        "Utilization, after shedding (held) or before (offered).",
        default=Signal.HELD,
        of=(ScalingPolicy.THRESHOLDS,),
    )
    scale_on: str = knob(
        "Worker whose utilization counts: the busiest, the mean, or a share at or above the threshold.",
        "busiest|mean|P%",
        default="busiest",
        of=(ScalingPolicy.THRESHOLDS,),
    )
    utilization: float = knob(
        "Target utilization.", "RATIO", default=0.8, range=Range(above=0, at_most=1), of=(ScalingPolicy.DS2,)
    )
    lag_rows: float = knob(
        "Lag threshold of a worker.", "ROWS", default=1000.0, typed="rows", range=ABOVE_0, of=(ScalingPolicy.LAG,)
    )
    alignment: Alignment = knob(
        "Allowed numbers of workers: any, or those that divide the number of partitions.",
        default=Alignment.ANY,
        of=OURS,
    )
    times: float | None = knob(
        "Multiply the policy's own times by this (default: 1). At an offered load, 1/speedup.",
        "FACTOR",
        default=None,
        range=ABOVE_0,
        of=tuple(each for each in ScalingPolicy if each not in (ScalingPolicy.FIXED, ScalingPolicy.THRESHOLDS)),
    )


@settings(panel="Scaling")
class ScalingSettings:
    """When and how far a stage scales."""

    pool: int = knob("Maximum number of workers.", "WORKERS", default=16, panel="Options")
    workers: int | None = knob(
        "Workers at the start, and the minimum (default: what the mean rate needs).",
        "WORKERS",
        default=None,
        panel="Options",
    )
    period_s: float | None = knob(
        "How often the controller runs (default: 1s). At an offered load, 1/100 of the replay.",
        "1s",
        default=None,
        unit=SECONDS,
        range=ABOVE_0,
        unless=UNCHANGED,
    )
    scale_out_delay_s: float | None = knob(
        f"How long more workers must be needed before scaling out {_USUAL.format('by policy', SCALE_OUT_DELAY)}",
        "5s",
        default=None,
        unit=SECONDS,
        range=ABOVE_0,
        needs=_PATIENT,
    )
    cooldown_s: float | None = knob(
        f"How long fewer workers must be enough before scaling in {_USUAL.format('by policy', COOLDOWN)}",
        "30s",
        default=None,
        unit=SECONDS,
        range=ABOVE_0,
        needs=_PATIENT,
    )


@settings()
class CountingSettings:
    """How the load of partitions is counted."""

    window_s: float | None = knob(
        f"How much recent history a plan is built from {_USUAL.format('30s', WINDOW)}",
        "30s",
        default=None,
        unit=SECONDS,
        range=ABOVE_0,
        unless=UNCHANGED,
    )
