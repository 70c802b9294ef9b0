"""Names of triggers and of the cases of a replay."""

from enum import StrEnum


class TriggerName(StrEnum):
    """When the loop adopts a new plan."""

    PERIOD = "period"
    VIOLATION = "violation"
    WORTH = "worth"


STATIC, FLUX, IN_SAMPLE = "static", "flux", "in-sample"
"""What triggers are compared with."""
