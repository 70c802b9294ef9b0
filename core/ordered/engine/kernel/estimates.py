"""Estimates from recent windows, and what is tuned by them.

Source: ordered streams, section 6.
"""

import numpy as np

from adapt.core.atomics import exchange, fetch_add, load_atomic, publish, replace
from adapt.core.compiled import flattened, inlined
from adapt.core.ordered.engine.kernel.codes import TUNE_QST, TUNE_SLICE, TUNE_WINDOW
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

SLICE_IN_QUERIES = 100
"""A tuned slice is this many times a query, so that queries take 1 % of a worker's time."""

SHORTEST_SLICE_NS, LONGEST_SLICE_NS = 1_000, 10_000_000

SLICES_IN_WINDOW, LONGEST_WINDOW_NS = 10, 1_000_000_000
"""A tuned window has at least this many slices, and at most a second."""

UNEVEN, EVEN = 0.1, 0.02
"""Difference of the operators' n, as a share of the highest, above which a window doubles and below which it halves."""

_LEAST = 1e-9


@inlined
def note_query(header: Header, ns: int) -> None:
    """Follow the median time of queries.

    A few are long, since the worker was interrupted.
    """
    typical = load_atomic(header, "query_ns")
    step = max(typical >> 4, 1)
    publish(header, "query_ns", typical + step if ns > typical else max(typical - step, 1))


@flattened
def tune(header: Header) -> None:
    """Tune slice, window and C at the end of a window.

    The paper has constants for all three, and says what good ones are.

    Slice: the longer, the "better amortization of scheduling overheads", but "a larger value of s impedes the
    responsiveness". It is the shortest whose queries take 1 % of the time.

    Window: "ideally, we would like to use a window size that would have same n for all the operators at the end of the
    window", where n is Eq. 3. It doubles if they differ by more than a tenth, and halves if by less than a fiftieth.

    C (Eq. 1): the outputs of all operators "when C / sum of cs tuples are processed in the overall pipeline". It is
    what all workers process there in one slice for each operator.

    Source: ordered streams, section 6; the rules are ours.
    """
    slice_ns = load_atomic(header, "slice_ns")
    if header.tunes & TUNE_SLICE:
        slice_ns = SLICE_IN_QUERIES * load_atomic(header, "query_ns")
        slice_ns = min(max(slice_ns, SHORTEST_SLICE_NS), LONGEST_SLICE_NS)
        publish(header, "slice_ns", slice_ns)
    least, most, work_ns, shares, through = np.inf, 0.0, 0.0, 0.0, 1.0
    for number in range(header.operators):
        operator = operator_at(header, number)
        row_ns = cost_ns(operator) * max(through, _LEAST)
        processed = load_atomic(operator, "window_time_ns") / row_ns
        least, most, work_ns = min(least, processed), max(most, processed), work_ns + row_ns
        through *= selectivity(operator)
        shares += through
    if header.tunes & TUNE_WINDOW and most > 0:
        window_ns = load_atomic(header, "window_ns")
        if most - least > UNEVEN * most:
            window_ns = min(2 * window_ns, LONGEST_WINDOW_NS)
        elif most - least < EVEN * most:
            window_ns = max(window_ns // 2, SLICES_IN_WINDOW * slice_ns)
        publish(header, "window_ns", window_ns)
    if header.tunes & TUNE_QST:
        rows = header.workers * slice_ns * header.operators / work_ns
        publish(header, "qst_size", max(int(rows * shares), 1))


@inlined
def renew_window(header: Header, now: int) -> None:
    """At a window's end, tune, and halve the data behind estimates.

    Costs rise with the workers on an operator, and streams change, so estimates favor the last windows.
    """
    start = load_atomic(header, "window_start")
    if now - start > load_atomic(header, "window_ns") and replace(header, "window_start", start, now):
        if header.tunes:
            tune(header)
        for number in range(header.operators):
            operator = operator_at(header, number)
            exchange(operator, "window_time_ns", 0)
            if load_atomic(operator, "inputs") >= 2 * _REMEMBERED:
                fetch_add(operator, "time_ns", -(load_atomic(operator, "time_ns") // 2))
                fetch_add(operator, "outputs", -(load_atomic(operator, "outputs") // 2))
                fetch_add(operator, "inputs", -(load_atomic(operator, "inputs") // 2))
