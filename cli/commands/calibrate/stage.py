"""`adapt calibrate stage`: costs of a stage in worker processes."""

from typing import TYPE_CHECKING

from adapt.cli.options.artefacts import TracePath
from adapt.cli.options.calibrated import ProfileOutput
from adapt.cli.options.groups import setting, short_help
from adapt.cli.options.replay.backend import BackendOptions
from adapt.cli.options.replay.costs import SERVICE, CostOptions
from adapt.cli.options.replay.stage import SeedOption
from adapt.cli.terminal.stages import stages
from adapt.core.stage.conditions.names import BackendName, WorkName

if TYPE_CHECKING:
    from adapt.core.costs.calibration import Calibration


@short_help("out", "function", "work", "workers", "rows", "service_time", "format", "force")
def stage(
    trace: TracePath,
    output: ProfileOutput,
    function: str | None = setting(
        None,
        "Your function, called for each row with the state of its key, the key and the row's number.",
        "MODULE:FUNCTION",
    ),
    work: WorkName = setting(
        WorkName.CPU, "Without a function: use the CPU for the cost of a row, or wait for a loopback service."
    ),
    workers: int | None = setting(None, "Number of worker processes (default: one per core).", "N", shown=False),
    rows: int = setting(20_000, "Most rows that are measured, from the start of the trace.", "N", min=1000),
    service_time: str | None = setting(
        None, "Cost of a row without a function (default: the trace's cost, else 45us).", SERVICE, shown=False
    ),
    partitions: int = setting(16, "Partitions per worker.", "N", min=1),
    seed: SeedOption = 0,
) -> "Calibration":
    """Measure a cost profile on worker processes of this machine.

    Runs the first rows of a trace twice: as fast as the workers take them, then more slowly while partitions move. Run
    it on the kind of machine, and under the kind of load, that you want to predict.

    Example: adapt calibrate stage web.trace --function jobs.clicks:count -o costs.toml
    """
    from adapt.core.stage.conditions.settings import StageSettings, check_workers, even_groups
    from adapt.core.stage.input.keyed_rows import Reading
    from adapt.core.stage.input.mini_partitions import MiniPartitions
    from adapt.traces.calibrate.stage import calibrate_stage
    from adapt.traces.processes.launch import cores
    from adapt.traces.store.trace import open_trace

    output.check()
    worked = BackendOptions(BackendName.PROCESSES, work, function).worked()
    assert worked is not None
    number = max(2, cores()) if workers is None else workers
    check_workers(number)
    opened, costs = open_trace(trace), CostOptions(service_time=service_time)
    placed = MiniPartitions(number, partitions)
    of_stage = StageSettings(
        workers=number,
        owners=placed.owners,
        partition_of=even_groups(number * partitions, number * partitions),
        costs=costs.costs(),
        seed=seed,
    )
    reading = Reading(placed, None, None if function else costs.row_costs(opened, seed))
    with stages() as progress:
        made = calibrate_stage(opened, of_stage, reading, worked, rows, progress)
    output.show(made)
    return made
