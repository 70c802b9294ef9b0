"""`adapt calibrate ordered`: costs of the ordered engine on this machine."""

import os
from collections.abc import Callable
from time import process_time
from typing import TYPE_CHECKING

from adapt.cli.options.calibrated import ProfileOutput
from adapt.cli.options.groups import setting
from adapt.cli.terminal.stages import stages
from adapt.core.errors import UsageError

if TYPE_CHECKING:
    from adapt.core.ordered.calibrate.calibration import OrderedCalibration


def ordered(
    output: ProfileOutput,
    workers: int | None = setting(
        None, "Most worker threads of a run (default: the cores of this machine).", "N", min=1, shown=False
    ),
    rows: int = setting(1_000_000, "Rows of each run.", "N", min=10_000),
    repeats: int = setting(5, "Times that all configurations are run; their spread gives the intervals.", "N", min=1),
    stalls: bool = setting(
        False,
        "Also measure how the system stalls threads; the model's workers then stall likewise.",
        None,
        "--stalls",
    ),
) -> "OrderedCalibration":
    """Measure what the ordered engine costs on this machine.

    Runs generated rows on threads, with 1, 2, 4 and so on up to the most workers: each kind of operator, in chunks of 1
    to 512 tuples. The CPU time gives the cost of a row that is fed, a tuple, a claim, a partition that is entered, a
    chunk and an output that are sent, and what other workers add. Further runs are not used for this, but predicted by
    the model: their error is printed. Then come states and payloads of growing size, on one core and moved to another.
    Takes one to three minutes.

    Example: adapt calibrate ordered -o engine.toml
    """
    from adapt.core.ordered.calibrate.calibration import calibrate_engine
    from adapt.core.ordered.calibrate.machine import Machine
    from adapt.core.ordered.calibrate.sizes import calibrate_sizes
    from adapt.core.ordered.calibrate.stalls import measured_stalls

    output.check()
    have = _cores()
    most = have if workers is None else workers
    if most > have:
        raise UsageError(f"--workers must be at most the {have} cores of this machine (got {workers})")
    with stages() as progress:
        machine, of_system = Machine(rows, process_time), measured_stalls if stalls else None
        made = calibrate_engine(machine, rows, most, repeats, progress, of_system)
        made = calibrate_sizes(made, machine, rows, repeats, _pinning() if most > 1 else None, progress)
    output.show(made)
    return made


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _pinning() -> Callable[[int | None], None] | None:
    """Moves the calling thread to core 0 or 1, or any.

    None where it has a single core, or the system does not support this.
    """
    if _cores() < 2 or not hasattr(os, "sched_setaffinity"):
        return None
    allowed = sorted(os.sched_getaffinity(0))
    return lambda core: os.sched_setaffinity(0, allowed if core is None else {allowed[core]})
