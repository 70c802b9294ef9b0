"""Names of triggers and of the cases of a live replay."""

from enum import StrEnum


class TriggerName(StrEnum):
    """When a new plan is adopted."""

    PERIOD = "period"
    VIOLATION = "violation"
    WORTH = "worth"


STATIC, FLUX, IN_SAMPLE = "static", "flux", "in-sample"
"""What a trigger is compared with."""
