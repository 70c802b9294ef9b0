"""`adapt partition tolerance`: a tolerance from what channels are for."""

from adapt.cli.options.channels import check_channels
from adapt.cli.options.groups import setting
from adapt.cli.terminal.output import Format, FormatOption, show


def tolerance(
    channels: int = setting(10, "Parallel channels.", "N"),
    utilisation: float | None = setting(
        None, "No channel is to be utilised less than this, from 0 to 1, when one is full.", "U"
    ),
    total: float | None = setting(None, "What all channels need together, e.g. 10 (GB).", "X"),
    capacity: float | None = setting(None, "What one channel has, in the same unit.", "Y"),
    format: FormatOption = Format.TABLE,
) -> None:
    """Suggest a tolerance, from a utilisation to keep or from what a channel can hold.

    Example: adapt partition tolerance --channels 4 --total 10 --capacity 3
    """
    from adapt.core.partitioning.measures.tolerance import suggested_tolerances

    check_channels(channels)
    suggested = suggested_tolerances(channels, utilisation=utilisation, total=total, capacity=capacity)
    show(suggested, format, {"schema": "adapt.tolerance/1", "tolerances": suggested.records()})
