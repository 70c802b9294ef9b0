"""Names and settings of rebalancing policies."""

from enum import StrEnum

from adapt.core.units.settings import ABOVE_0, SECONDS, Range, knob, settings


class FluxPolicy(StrEnum):
    """Rebalancing policy."""

    NONE = "none"
    """Do nothing: the static case, without moves."""

    LOAD = "load"
    """The paper's load policy: balances utilization, one partition per pair of workers."""

    MEMORY = "memory"
    """The paper's memory policy: balances free memory."""

    HYBRID = "hybrid"
    """The paper's hybrid policy: memory while any partition is on disk, else load."""

    LOAD_GUARDED = "load-guarded"
    """Load policy that is robust against receivers that only look idle."""

    LOAD_SEVERAL = "load-several"
    """Guarded policy with several moves per round, and finer ones while the load is stable."""

    MEMORY_SEVERAL = "memory-several"
    """Memory policy with several moves per round."""

    HYBRID_SEVERAL = "hybrid-several"
    """Hybrid policy with several moves per round, and finer ones while the load is stable."""

    SLICER = "slicer"
    """Slicer's weighted moves: the best benefit per key moved, up to 9 % of the keys a round."""


class Imbalance(StrEnum):
    """What a move must reduce between donor and receiver.

    Source: Flux, section 5.3, whose threshold is on "the utilization ratio (i.e. imbalance)", and whose policy moves
    the first partition that "will reduce the utilization imbalance".
    """

    DIFFERENCE = "difference"
    """The difference of their utilizations."""

    RATIO = "ratio"
    """The ratio of their utilizations, the higher over the lower."""


_PAIRING = tuple(one for one in FluxPolicy if one not in (FluxPolicy.NONE, FluxPolicy.SLICER))
"""Policies that pair workers."""

_BY_LOAD = tuple(one for one in _PAIRING if one not in (FluxPolicy.MEMORY, FluxPolicy.MEMORY_SEVERAL))


@settings("policy")
class PairSettings:
    """Which pairs of workers exchange partitions.

    Source: Flux, section 5.3: lambda_min and u_max.
    """

    min_imbalance: float = knob(
        "Smallest utilization ratio of two workers that triggers a move.",
        "RATIO",
        default=1.2,
        range=Range(1),
        of=_PAIRING,
    )
    max_receiver_utilization: float = knob(
        "Workers above this receive no partitions.", "RATIO", default=0.95, range=Range(above=0, at_most=1), of=_BY_LOAD
    )
    imbalance: Imbalance = knob(  # by the ratio, an idle worker receives nothing: it is predicted to stay idle
        "What a move must reduce, of utilization.",
        default=Imbalance.DIFFERENCE,
        of=(FluxPolicy.LOAD, FluxPolicy.HYBRID),
    )


@settings()
class RoundSettings:
    """How long rounds of the controller take, and which partitions are split."""

    min_collection_s: float | None = knob(
        "Shortest time to collect statistics per round (default: 150ms). At an offered load, at most 1/100 of the"
        " replay.",
        "150ms",
        default=None,
        unit=SECONDS,
        range=ABOVE_0,
        unless=("policy none", "router river"),
    )
    split_hot: str | None = knob(
        "Split a partition above this share of a worker's time, for count, sum, min and max. Its parts are merged every"
        " 250 ms; 50%@1s sets another interval.",
        "50%|50%@1s",
        default=None,
        unless="stages",
    )
