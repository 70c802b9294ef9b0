"""Numbers that stand for choices and ends of runs in kernels."""

GOES_ON, FINISHED, STALLED, FAULTY, DEAD = range(5)
"""Why a run ends: it does not; all tuples left; no tuple moves; a function failed; a worker died."""

SHARED_QUEUE, HYBRID, PARTITIONED, LOCKED_TOO_LATE = range(4)
"""Work queue of an operator: one without partitions; delegating; a queue a partition; a partition locked once its tuple
is taken."""

CLAIM, RETRY, LOCK = range(3)
"""How outputs come into order, see `Reorder`."""

CT, LP, ET, QST, CT_LITERAL = range(5)
"""Scheduling heuristics, see `Heuristic`."""
