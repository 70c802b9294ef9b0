"""`adapt calibrate spark`: a cost profile from what Spark has recorded."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from adapt.cli.options.calibrated import ProfileOutput
from adapt.cli.options.groups import setting

if TYPE_CHECKING:
    from adapt.core.costs.calibration import Calibration

LogPath: TypeAlias = Annotated[
    Path, typer.Argument(metavar="EVENTLOG", help="Event log or its folder, or streaming progress as JSON.")
]


def spark(
    log: LogPath,
    output: ProfileOutput,
    stage: int | None = setting(
        None, "Stage whose tasks count (default: the stages with the most run time).", "ID", shown=False
    ),
    workers: int | None = setting(None, "Number of parallel tasks; for progress without an event log.", "N", min=1),
) -> "Calibration":
    """Derive a cost profile from a Spark event log.

    Tasks give the service time of a row and the time of its shuffle; streaming progress the fixed time of a
    micro-batch, as a pause. Does not start Java.

    Example: adapt calibrate spark eventlog_v2_app-1 -o costs.toml
    """
    from adapt.traces.calibrate.spark import calibrate_spark

    output.check()
    made = calibrate_spark(log, workers, stage)
    output.show(made)
    return made
