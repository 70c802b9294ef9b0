"""Numeric codes of settings and run outcomes in kernels."""

GOES_ON, FINISHED, STALLED, FAULTY, DEAD = range(5)
"""How a run ends: not yet; all tuples left; stalled; a function failed; a worker died."""

SHARED_QUEUE, HYBRID, PARTITIONED = range(3)
"""Work queue of an operator: without partitions; hybrid; partitioned."""

CLAIM, RETRY, LOCK = range(3)
"""Reorder buffers, see `Reorder`."""

MOST_CHUNK = 1024
"""Most tuples that a worker claims at once."""

CT, LP, ET, QST, CT_LITERAL = range(5)
"""Scheduling heuristics, see `Heuristic`."""
