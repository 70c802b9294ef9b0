"""Estimates from recent windows.

Source: ordered streams, section 6.
"""

from adapt.core.atomics import exchange, fetch_add, load_atomic, replace
from adapt.core.compiled import inlined
from adapt.core.ordered.engine.kernel.layout import Header, Operator, Tally, operator_at

_REMEMBERED = 64
"""Minimum inputs of an estimate: with fewer, nothing is forgotten."""


@inlined
def tuples_done(tally: Tally) -> int:
    """Tuples that a worker has processed, without those that carry no data."""
    return tally.done - tally.bare_done


@inlined
def outputs_made(tally: Tally) -> int:
    """Outputs of the processed tuples."""
    return tally.made - tally.bare_made


@inlined
def cost_ns(operator: Operator) -> float:
    """Cost of a tuple: measured, or guessed before the first measurement."""
    inputs = load_atomic(operator, "inputs")
    if inputs > 0:
        return max(load_atomic(operator, "time_ns") / inputs, 1.0)
    return float(operator.guessed_ns)


@inlined
def selectivity(operator: Operator) -> float:
    """Outputs per tuple: measured, or guessed before the first measurement."""
    inputs = load_atomic(operator, "inputs")
    if inputs > 0:
        return load_atomic(operator, "outputs") / inputs
    return operator.guessed_outputs / 1048576.0


@inlined
def quota_of(header: Header, operator: Operator) -> int:
    """Tuples of a slice.

    Before the first measurement one chunk, or one tuple if chunks adapt to the cost. Then a slice is not too short for
    its claims: else each tuple would be claimed by itself, and its cost would be that of its claim.
    """
    least = max(header.chunk, 1)
    if not load_atomic(operator, "inputs"):
        return least
    time_ns = load_atomic(header, "slice_ns")
    if not header.chunk:
        time_ns = max(time_ns, LEAST_ADAPTED_NS)
    return max(int(time_ns / cost_ns(operator)), least)


LEAST_ADAPTED_NS = 5_000
"""Shortest slice of chunks that adapt to the cost: a claim may take 1 to 2 us while many workers make them."""


@inlined
def renew_window(header: Header, now: int) -> None:
    """At a window's end, halve the data behind estimates.

    Costs rise with the workers on an operator, and streams change, so estimates favor the last windows.
    """
    start = load_atomic(header, "window_start")
    if now - start > load_atomic(header, "window_ns") and replace(header, "window_start", start, now):
        for number in range(header.operators):
            operator = operator_at(header, number)
            exchange(operator, "window_time_ns", 0)
            if load_atomic(operator, "inputs") >= 2 * _REMEMBERED:
                fetch_add(operator, "time_ns", -(load_atomic(operator, "time_ns") // 2))
                fetch_add(operator, "outputs", -(load_atomic(operator, "outputs") // 2))
                fetch_add(operator, "inputs", -(load_atomic(operator, "inputs") // 2))
