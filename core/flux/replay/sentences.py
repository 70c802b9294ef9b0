"""Verdict of a Flux replay."""

from collections.abc import Sequence
from dataclasses import dataclass

from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.phrases import counted
from adapt.core.stage.input.offered_load import Bounds
from adapt.core.stage.input.own_rate import stressed
from adapt.core.stage.outcome import Outcome
from adapt.core.values import duration, size

KEEPS_UP = 0.98
"""Share of capacity from which there is nothing to gain."""

GAINS = 1.05
"""Ratio of throughput from which one case is better."""


COSTS = 2.0
"""Ratio of latency from which one case is worse."""


@dataclass(frozen=True, slots=True)
class FluxVerdict:
    """Verdict on the cases of a replay."""

    best: str | None  # the policy closest to capacity; None without policies
    static_full_at: float | None  # speed-up at which the busiest worker is fully utilized on average
    best_full_at: float | None  # the same for the best placement of whole partitions
    sentence: str


def verdict_of(
    outcomes: Sequence[Outcome],
    bounds: Bounds,
    workers: int,
    speedup: float | None,
    uniform_at: float | None = None,
) -> FluxVerdict:
    """Compare the policies with the static case, which comes first.

    The optimum, which no one can run, is recommended only if it is alone.

    Args:
        uniform_at: Speed-up at which uniform hashing saturates, if the placement is a plan.
    """
    static, *moving = outcomes
    real = [each for each in moving if each.case != FluxPolicy.OPTIMUM]
    best = max(real or moving, key=lambda each: (round(each.of_capacity, 3), -_p99(each)), default=None)
    static_at, best_at = bounds.full_at(speedup)
    own = bounds.own_rate(speedup)
    this = "this placement" if uniform_at is None else "this plan"
    places = {this: static_at, "uniform hashing": uniform_at, "the best placement of whole partitions": best_at}
    stress = stressed(speedup or 1.0, bounds.last_s, bounds.static_load, "the busiest worker")
    sentences = [
        *([] if own is None else [own.sentence(workers, places), stress]),
        *(_compared(static, best), *_left(static, best), *_limit(bounds, best or static)),
        *(_gap(one, real) for one in moving if one.case == FluxPolicy.OPTIMUM and real),
    ]
    return FluxVerdict(best.case if best else None, static_at, best_at, " ".join(sentences))


def _compared(static: Outcome, best: Outcome | None) -> str:
    reached = f"{static.of_capacity:.1%} of capacity{_with_p99(static)}"
    keep_up = best is not None and min(best.of_capacity, static.of_capacity) >= KEEPS_UP
    if best is not None and keep_up and not (static.shed or best.shed) and _p99(static) > COSTS * _p99(best):
        return (
            f"Use {best.case}: both placements keep up with all rows, but its p99 latency is {duration(_p99(best))},"
            f" against {duration(_p99(static))} with the static one. It makes"
            f" {counted(len(best.simulated.moves), 'move')} ({size(best.moved_bytes)})."
        )
    if static.of_capacity >= KEEPS_UP and not static.shed:
        return f"Keep the static placement: it keeps up with all rows{_with_p99(static)}.{_latencies(static, best)}"
    if best is None:
        return f"The static placement reaches {reached}."
    moved = f"{counted(len(best.simulated.moves), 'move')} ({size(best.moved_bytes)}){_with_p99(best)}"
    if best.of_capacity >= GAINS * static.of_capacity:
        return (
            f"Use {best.case}: it reaches {best.of_capacity:.1%} of capacity with {moved}; the static placement reaches"
            f" {static.of_capacity:.1%}{_with_p99(static)}."
        )
    if not best.simulated.moves:
        return f"Keep the static placement: it reaches {reached}; {best.case} finds nothing to move."
    least = "" if best.of_capacity * GAINS > static.of_capacity else "only "
    return f"Keep the static placement: it reaches {reached}; {best.case} {least}{best.of_capacity:.1%} with {moved}."


def _with_p99(one: Outcome) -> str:
    """Its p99 latency, if it processed rows."""
    p99 = one.total.share_below_s(0.99)
    return "" if p99 is None else f", p99 latency {duration(p99)}"


def _latencies(static: Outcome, best: Outcome | None) -> str:
    """Effect of moves on latency if the static placement keeps up."""
    if best is None or not best.simulated.moves or best.total.share_below_s(0.99) is None:
        return ""
    sentence = f" With {best.case} p99 latency is {duration(_p99(best))}"
    return f"{sentence}." if _p99(best) <= COSTS * _p99(static) else f"{sentence}: moves only cost latency."


def _left(static: Outcome, best: Outcome | None) -> list[str]:
    """Rows not processed at the end, lost in crashes, and shed."""
    left = [f"{each.left:,} with {each.case}" for each in (static, best) if each is not None and each.left]
    lost = [f"{each.lost:,} with {each.case}" for each in (static, best) if each is not None and each.lost]
    shed = [f"{each.shed:,} with {each.case}" for each in (static, best) if each is not None and each.shed]
    return [
        *([f"Rows not processed at the end: {', '.join(left)}."] if left else []),
        *([f"Rows lost in crashes: {', '.join(lost)}."] if lost else []),
        *([f"Rows dropped by load shedding: {', '.join(shed)}."] if shed else []),
    ]


def _p99(outcome: Outcome) -> float:
    return outcome.total.share_below_s(0.99) or 0.0


def _limit(bounds: Bounds, best: Outcome) -> list[str]:
    """Limit of any placement of whole partitions."""
    reachable = bounds.even_s / bounds.least_s if bounds.least_s else 1.0
    if best.of_capacity >= KEEPS_UP or reachable >= KEEPS_UP:
        return []
    return [
        f"The hottest partition alone has {bounds.heaviest_share:.1%} of the work, which limits any placement of whole"
        f" partitions to {reachable:.1%} of capacity."
    ]


def _gap(optimum: Outcome, others: Sequence[Outcome]) -> str:
    """Rate and latency of each policy over those of the optimum."""
    gaps = ", ".join(
        f"{each.case} has {each.of_capacity / optimum.of_capacity:.1%} of its rate and"
        f" {_p99(each) / _p99(optimum):.2f} times its latency"
        for each in others
    )
    return f"Against optimum ({optimum.of_capacity:.1%} of capacity, p99 {duration(_p99(optimum))}): {gaps}."
