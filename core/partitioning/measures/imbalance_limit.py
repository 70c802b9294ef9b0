"""The limit on the imbalance that a verdict judges by."""

from adapt.core.errors import UsageError

MAX_IMBALANCE = 1.2
"""Default limit: load of the busiest channel / mean load."""


def check_max_imbalance(limit: float) -> None:
    """Check a limit on the imbalance."""
    if not limit >= 1:
        raise UsageError(f"--max-imbalance must be at least 1, the imbalance of equal loads (got {limit:g})")
