"""Limits on the number of channels."""

from adapt.core.errors import UsageError


def check_channels(channels: int, most: int = 2**31 - 1) -> None:
    """Check a number of channels."""
    if not 1 <= channels <= most:
        raise UsageError(f"this scheme needs from 1 to {most:,} workers (got {channels})")
