"""Codes in records, and return codes of the compiled engine."""

NONE = -1
"""No tuple, partition or worker; end of a list."""

ANSWERED = 2
"""A tuple in service at a replica that its owner has committed already."""

UNUSED = 2**62
"""Number at a free place of the spill; bytes by which state may grow without a limit."""

IDLE, SERVING, IN_JOB, FREE, DEAD, BLOCKED = range(6)
"""State of a consumer: waiting for input, processing a tuple, running a job, about to choose (or waiting for a shared
CPU), dead, or blocked until the next stage has room."""

REACHED, ROWS_WANTED, QUIESCED, JOB_DONE, BACKLOG_DONE, SPILL_FULL, GROWN = range(7)
"""Why the compiled engine returns: its time is reached; more rows are needed; all pauses of a worker are acknowledged;
a job is finished; the spilled input of a partition is processed; the space for spilled tuples is full; the state of a
worker exceeds its room."""
