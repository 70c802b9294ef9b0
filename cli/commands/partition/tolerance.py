"""`adapt partition tolerance`: a tolerance from a utilization or a capacity."""

from typing import TYPE_CHECKING

from adapt.cli.options.channels import check_channels
from adapt.cli.options.groups import setting
from adapt.cli.terminal.output import Format, FormatOption, show
from adapt.core.partitioning.measures.plan_settings import ToleranceSettings

if TYPE_CHECKING:
    from adapt.core.table import Table


def tolerance(
    channels: int = setting(10, "Number of workers.", "N", needs="--total"),
    *,
    known: ToleranceSettings,
    format: FormatOption = Format.TABLE,
) -> "Table":
    """Suggest a --tolerance from a least utilization or from a channel's capacity.

    Example: adapt partition tolerance --channels 4 --total 10 --capacity 3
    """
    from adapt.core.partitioning.measures.tolerance import suggested_tolerances

    check_channels(channels)
    suggested = suggested_tolerances(channels, known)
    show(suggested, format, {"schema": "adapt.tolerance/1", "tolerances": suggested.records()})
    return suggested
