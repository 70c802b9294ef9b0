"""Scheduling heuristics: which operator a worker takes next.

Source: ordered streams, section 6.

Estimates from recent windows.

Source: ordered streams, section 6.
"""

import numpy as np

from adapt.core.atomics import exchange, fetch_add, load_atomic, replace
from adapt.core.compiled import flattened, inlined, record_after
from adapt.core.ordered.engine.kernel.claiming import claimable_before
from adapt.core.ordered.engine.kernel.layout import CT, ET, LP, PARTITIONED, QST, Header, Operator, Tally, operator_at

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


_LEAST = 1e-9
"""Floor of the tuples that go on, to avoid a division by 0."""


@inlined
def waiting_tuples(operator: Operator) -> int:
    """Tuples that wait to be claimed."""
    return load_atomic(operator, "tail") - load_atomic(operator, "head")


@inlined
def _schedulable(header: Header, operator: Operator) -> bool:
    """Whether one more worker would find work here."""
    if load_atomic(operator, "working") >= operator.most_workers:
        return False
    if operator.work_queue == PARTITIONED:
        return waiting_tuples(operator) > 0
    return load_atomic(operator, "head") < claimable_before(header, operator)


@inlined
def _sum_of_shares(header: Header) -> float:
    """For `QST`: sum over operators of the outputs per input row."""
    shares, through = 0.0, 1.0
    for number in range(header.operators):
        through *= selectivity(operator_at(header, number))
        shares += through
    return shares


@flattened
def _score(header: Header, operator: Operator, heuristic: int, upstream: float, through: float, shares: float) -> float:
    """Score that a heuristic minimizes.

    `upstream` and `through` are the operator's inputs and outputs per input row. Section 6.2: with a minimum worklist
    size, "only operators with worklist at least as big as this threshold would be considered"; the others are scheduled
    here only if no such operator is left, the latest first, since the last tuples of a stream would wait for ever.
    """
    number = operator.number
    if heuristic == LP:
        if waiting_tuples(operator) < header.lp_minimum:
            return float(header.operators - number)
        return -float(number)
    if heuristic == QST:
        if number < header.operators - 1 and shares > 0:
            size = load_atomic(header, "qst_size") * through / shares
            if waiting_tuples(record_after(operator, 1)) > size:
                return float(np.inf)
        return float(number)
    working = load_atomic(operator, "working")
    if heuristic == ET:
        return -waiting_tuples(operator) * cost_ns(operator) / (working + 1.0)
    spent = load_atomic(operator, "window_time_ns") + working * float(load_atomic(header, "slice_ns"))
    of = upstream if heuristic == CT else through
    return spent / (cost_ns(operator) * max(of, _LEAST))


@inlined
def _lowest(header: Header, passed: int, heuristic: int) -> int:
    """The schedulable operator with a heuristic's lowest score; -1 if there is none."""
    shares = _sum_of_shares(header) if heuristic == QST else 0.0
    chosen, best, upstream = -1, np.inf, 1.0
    for number in range(header.operators):
        operator = operator_at(header, number)
        through = upstream * selectivity(operator)
        if not (passed >> number) & 1 and _schedulable(header, operator):
            score = _score(header, operator, heuristic, upstream, through, shares)
            if score < best:
                chosen, best = number, score
        upstream = through
    return chosen


@inlined
def _choose_in_batch(header: Header, passed: int) -> int:
    """The first operator that has not completed the micro-batch; -1 while others are completing it.

    While the next work queue is full, so that it cannot complete, the next operator.
    """
    for number in range(header.operators):
        operator = operator_at(header, number)
        if load_atomic(operator, "next") == load_atomic(operator, "tail"):
            continue
        if not (passed >> number) & 1 and _schedulable(header, operator):
            return number
        if number == header.operators - 1:
            break
        down = record_after(operator, 1)
        if load_atomic(down, "tail") - load_atomic(down, "next") < header.queue:
            break
    return -1


@inlined
def choose_operator(header: Header, passed: int) -> int:
    """The schedulable operator with the lowest score; -1 if there is none.

    If tied, the earliest. Of a micro-batch, the operator that is due.

    `passed` has a bit for each operator to skip.
    """
    if header.batch:
        return _choose_in_batch(header, passed)
    return _lowest(header, passed, header.heuristic)


@inlined
def enter(operator: Operator) -> bool:
    """Enter an operator as a worker, if it may have one more."""
    while True:
        working = load_atomic(operator, "working")
        if working >= operator.most_workers:
            return False
        if replace(operator, "working", working, working + 1):
            return True
