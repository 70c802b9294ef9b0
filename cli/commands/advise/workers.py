"""`adapt advise workers`: workers to start with, before a trace exists."""

from typing import TYPE_CHECKING, Annotated

from adapt.cli.options.groups import option, setting
from adapt.cli.terminal.output import Format, FormatOption, show
from adapt.core.errors import UsageError
from adapt.core.stage.conditions.stage_settings import BufferSettings

if TYPE_CHECKING:
    from adapt.core.table import Table

SCHEMA = "adapt.initial-workers/1"


def workers(
    *,
    rate: Annotated[float, option("Expected rows per second.", "ROWS")],
    imbalance: float = setting(1.0, "Load of the busiest worker over the mean, as in the verdict.", "RATIO"),
    shedding: BufferSettings,
    format: FormatOption = Format.TABLE,
) -> "Table":
    """Advise on the number of workers to start an elastic stage with.

    The fewest with which the busiest worker fills at most tau1 of its buffer at the expected rate.
    Does not start Java.

    Example: adapt advise workers --rate 1000 --shed 10000@60s:tau=0.1,0.4,0.8,0.9
    """
    from adapt.core.advice.initial_workers import initial_workers_table
    from adapt.core.stage.conditions.shed_factor import Overload, Thresholds

    overload = Overload.of(shedding)
    if overload is None:
        raise UsageError("--shed is required: the buffer of a worker and how long it keeps a row, such as 10000@60s")
    table = initial_workers_table(rate, overload, Thresholds.of(shedding), imbalance)
    show([table], format, {"schema": SCHEMA, "workers": table.records()})
    return table
