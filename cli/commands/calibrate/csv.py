"""`adapt calibrate csv`: a cost profile from a CSV of measurements."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from adapt.cli.options.calibrated import ProfileOutput

if TYPE_CHECKING:
    from adapt.core.costs.calibration import Calibration

CsvPath: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE.csv", help="Measurements, with a header.")]


def csv(file: CsvPath, output: ProfileOutput) -> "Calibration":
    """Derive a cost profile from a CSV of measurements.

    Each row has one or more measurements, all columns are optional. Rows: service_us, with key, bytes and cost_us;
    transport_us, produce_us, latency_us. State: state_bytes with serialize_us, transfer_us, install_us, restore_us.
    Pauses: pause (its kind), pause_at_s, pause_us. Restarts: stop_s, start_s.

    Example: adapt calibrate csv times.csv -o costs.toml
    """
    from adapt.traces.calibrate.measurements import calibrate_csv

    output.check()
    made = calibrate_csv(file)
    output.show(made)
    return made
