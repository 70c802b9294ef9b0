"""How many channels a scheme can have."""

from adapt.core.errors import UsageError


def check_channels(channels: int, most: int = 2**31 - 1) -> None:
    """Do nothing if there are from 1 to `most` channels.

    Raises:
        UsageError: there are not.
    """
    if not 1 <= channels <= most:
        raise UsageError(f"this partitioner has from 1 to {most} channels, not {channels}")
