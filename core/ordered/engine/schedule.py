"""Scheduling heuristics: which operator a worker takes next."""

import numpy as np

from adapt.core.atomics import load_atomic, replace
from adapt.core.compiled import inlined, record_after
from adapt.core.ordered.engine.claiming import claimable_before
from adapt.core.ordered.engine.codes import CT, ET, LP, PARTITIONED, QST
from adapt.core.ordered.engine.estimates import cost_ns, selectivity
from adapt.core.ordered.engine.layout import Header, Operator, operator_at

_LEAST = 1e-9


@inlined
def waiting_tuples(operator: Operator) -> int:
    return load_atomic(operator, "tail") - load_atomic(operator, "head")


@inlined
def _schedulable(header: Header, operator: Operator) -> bool:
    """Whether a worker more could do something here."""
    if load_atomic(operator, "working") >= operator.most_workers:
        return False
    if operator.worklist == PARTITIONED:
        return waiting_tuples(operator) > 0
    return load_atomic(operator, "head") < claimable_before(header, operator)


@inlined
def choose_operator(header: Header, passed: int) -> int:
    """The operator that the heuristic names among those that are schedulable and not passed over; -1 if there is none.

    Of equals it is the earliest. `passed` has a bit for each operator.
    """
    heuristic, chain = header.heuristic, header.operators
    shares = 0.0
    if heuristic == QST:
        through = 1.0
        for number in range(chain):
            through *= selectivity(operator_at(header, number))
            shares += through
    chosen, best, upstream = -1, np.inf, 1.0
    for number in range(chain):
        operator = operator_at(header, number)
        through = upstream * selectivity(operator)
        if not (passed >> number) & 1 and _schedulable(header, operator):
            if heuristic == LP:
                score = -float(number)
            elif heuristic == ET:
                working = load_atomic(operator, "working")
                score = -waiting_tuples(operator) * cost_ns(operator) / (working + 1.0)
            elif heuristic == QST:
                score = float(number)
                if number < chain - 1 and shares > 0:
                    size = header.qst_size * through / shares
                    if waiting_tuples(record_after(operator, 1)) > size:
                        score = np.inf
            else:
                working = load_atomic(operator, "working")
                spent = load_atomic(operator, "window_time_ns") + working * float(header.slice_ns)
                of = upstream if heuristic == CT else through
                score = spent / (cost_ns(operator) * max(of, _LEAST))
            if score < best:
                chosen, best = number, score
        upstream = through
    return chosen


@inlined
def enter(operator: Operator) -> bool:
    """Become one of an operator's workers, if it may have one more."""
    while True:
        working = load_atomic(operator, "working")
        if working >= operator.most_workers:
            return False
        if replace(operator, "working", working, working + 1):
            return True
