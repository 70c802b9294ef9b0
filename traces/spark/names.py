"""Names of the places where work is done."""

from enum import StrEnum


class RunnerName(StrEnum):
    """A place where keys are counted and plans are evaluated."""

    AUTO = "auto"
    """This process for short traces, Spark for others."""
    SPARK = "spark"
    """Spark tasks."""
    IN_PROCESS = "in-process"
    """Threads of this process."""
