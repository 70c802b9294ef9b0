"""What a replay through a stage comes to, in plain words."""

from collections.abc import Sequence
from dataclasses import dataclass

from adapt.core.phrases import counted
from adapt.core.stage.input.offered_load import Bounds
from adapt.core.stage.outcome import Outcome
from adapt.core.values import duration, size

KEEPS_UP = 0.98
"""From this share of what the workers can do on, nothing is to be gained."""

GAINS = 1.05
"""From this ratio of two shares on, one case is better than the other."""


COSTS = 2.0
"""Above this ratio of two latencies, one case is worse than the other."""


@dataclass(frozen=True, slots=True)
class FluxVerdict:
    """The cases against each other.

    Attributes:
        best: The policy that comes closest to what the workers can do; None if there is none.
        static_full_at: The speed-up at which the busiest worker has all the work it can do, on average.
        best_full_at: The same, of the best placement of whole partitions.
        sentence: What there is to know.
    """

    best: str | None
    static_full_at: float | None
    best_full_at: float | None
    sentence: str


def verdict_of(outcomes: Sequence[Outcome], bounds: Bounds, speedup: float | None) -> FluxVerdict:
    """Judge the policies against the static case, which comes first."""
    static, *moving = outcomes
    best = max(moving, key=lambda each: (round(each.of_capacity, 3), -_p99(each)), default=None)
    full = [
        None if load is None or speedup is None or load == 0 else speedup / load
        for load in (bounds.static_load, bounds.best_load)
    ]
    sentences = [_compared(static, best), *_left(static, best), *_limit(bounds, best or static), *_full(*full)]
    return FluxVerdict(best.case if best else None, full[0], full[1], " ".join(sentences))


def _compared(static: Outcome, best: Outcome | None) -> str:
    reached = f"{static.of_capacity:.1%} of what the workers can do"
    if static.of_capacity >= KEEPS_UP and not static.shed:
        return f"The static placement keeps up with all rows: nothing to gain in throughput.{_latencies(static, best)}"
    if best is None:
        return f"The static placement reaches {reached}."
    moved = f"{counted(len(best.simulated.moves), 'move')} ({size(best.moved_bytes)})"
    if best.of_capacity >= GAINS * static.of_capacity:
        return (
            f"{best.case} reaches {best.of_capacity:.1%} of what the workers can do, where the static placement reaches"
            f" {static.of_capacity:.1%}, with {moved}."
        )
    if not best.simulated.moves:
        return f"The static placement reaches {reached}, and {best.case} finds nothing to move."
    if best.of_capacity * GAINS > static.of_capacity:
        return f"The static placement reaches {reached}, and {best.case} as much ({best.of_capacity:.1%}) with {moved}."
    return f"The static placement reaches {reached}, and {best.case} only {best.of_capacity:.1%} with {moved}."


def _latencies(static: Outcome, best: Outcome | None) -> str:
    """What moving does to the latency where all rows are done anyway."""
    still, moved = (each.total.share_below_s(0.99) if each else None for each in (static, best))
    if best is None or still is None or moved is None or not best.simulated.moves:
        return ""
    sentence = f" The latency of 99% of the rows is at most {duration(still)}, and {duration(moved)} with {best.case}"
    if moved <= COSTS * still:
        return f"{sentence}."
    return f"{sentence}, whose {counted(len(best.simulated.moves), 'move')} only cost."


def _left(static: Outcome, best: Outcome | None) -> list[str]:
    """What was not done when a run was cut off, what was lost, and what was shed."""
    left = [f"{each.left:,} with {each.case}" for each in (static, best) if each is not None and each.left]
    lost = [f"{each.lost:,} with {each.case}" for each in (static, best) if each is not None and each.lost]
    shed = [f"{each.shed:,} with {each.case}" for each in (static, best) if each is not None and each.shed]
    return [
        *([f"Rows that were due and not processed at the end: {', '.join(left)}."] if left else []),
        *([f"Rows that died with a worker, and with them answers: {', '.join(lost)}."] if lost else []),
        *([f"Rows that workers dropped as they filled up: {', '.join(shed)}."] if shed else []),
    ]


def _p99(outcome: Outcome) -> float:
    return outcome.total.share_below_s(0.99) or 0.0


def _limit(bounds: Bounds, best: Outcome) -> list[str]:
    """What no placement of whole partitions can pass."""
    reachable = bounds.even_s / bounds.least_s if bounds.least_s else 1.0
    if best.of_capacity >= KEEPS_UP or reachable >= KEEPS_UP:
        return []
    return [
        f"The heaviest partition alone makes {bounds.heaviest_share:.1%} of the work, so that no placement of whole"
        f" partitions reaches more than {reachable:.1%}."
    ]


def _full(static: float | None, best: float | None) -> list[str]:
    if static is None or best is None:
        return []
    return [
        f"On average the busiest worker is full at about speed-up {_rounded(static)}, and the best placement of whole"
        f" partitions at {_rounded(best)}."
    ]


def _rounded(value: float) -> str:
    return f"{float(f'{value:.3g}'):,.10g}"
