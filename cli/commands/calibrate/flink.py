"""`adapt calibrate flink`: a cost profile from a running Flink job."""

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from adapt.cli.options.calibrated import ProfileOutput
from adapt.cli.options.groups import setting

if TYPE_CHECKING:
    from adapt.core.costs.calibration import Calibration

RestAddress: TypeAlias = Annotated[
    str, typer.Argument(metavar="URL", help="Address of the JobManager's REST API, e.g. http://localhost:8081.")
]


def flink(
    url: RestAddress,
    output: ProfileOutput,
    job: str | None = setting(None, "Number or name of the job (default: the only running one).", "ID|NAME"),
    operator: str | None = setting(
        None, "Part of the operator's name (default: the busiest one that reads rows of others).", "TEXT"
    ),
    prometheus: str | None = setting(
        None, "Address of a TaskManager's Prometheus reporter, for garbage collections.", "URL"
    ),
) -> "Calibration":
    """Derive a cost profile from a running Flink job.

    Busy time and records give the service time of a row, the history of rescales the time of a restart, Prometheus the
    garbage collections. Only reads; the job runs on.

    Example: adapt calibrate flink http://localhost:8081 -o costs.toml
    """
    from adapt.traces.calibrate.flink import calibrate_flink

    output.check()
    made = calibrate_flink(url, job, operator, prometheus)
    output.show(made)
    return made
