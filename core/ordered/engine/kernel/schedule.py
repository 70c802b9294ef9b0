"""Scheduling heuristics: which operator a worker takes next.

Source: ordered streams, section 6.
"""

import numpy as np

from adapt.core.atomics import load_atomic, replace
from adapt.core.compiled import flattened, inlined, record_after
from adapt.core.ordered.engine.kernel.claiming import claimable_before
from adapt.core.ordered.engine.kernel.codes import CT, ET, LP, PARTITIONED, QST
from adapt.core.ordered.engine.kernel.estimates import cost_ns, selectivity
from adapt.core.ordered.engine.kernel.layout import Header, Operator, operator_at

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
