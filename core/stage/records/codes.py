"""What the numbers mean that records hold, and for which the compiled part returns."""

NONE = -1
"""No tuple, partition or worker: the end of a list."""

IDLE, SERVING, IN_JOB, FREE, DEAD, BLOCKED = range(6)
"""What a consumer does: wait for input, process a tuple, do a job, nothing yet, being about to choose (or waiting for a
CPU that it shares), nothing, or wait until the stage after it has room for what it has made."""

REACHED, ROWS_WANTED, QUIESCED, JOB_DONE, BACKLOG_DONE, SPILL_FULL = range(6)
"""Why the compiled part returns: its time is reached; the source must give more rows; all pauses of a worker are
acknowledged; a job is done; the spilled input of a partition is processed; the place for spilled tuples is used up."""
