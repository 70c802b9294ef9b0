"""Names of the places where work is done."""

from enum import StrEnum

RUNNER_LOG = "adapt.runner"
"""Name of the log that says where each piece of work ran."""


class RunnerName(StrEnum):
    """A place where work on rows runs."""

    AUTO = "auto"
    """This process for few rows, Spark for others."""
    SPARK = "spark"
    """Spark tasks."""
    IN_PROCESS = "in-process"
    """Threads of this process."""
