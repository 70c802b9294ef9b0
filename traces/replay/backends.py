"""What runs a replayed stage: a simulation, or processes of this machine."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.processes.backend import InProcesses, check_processes
from adapt.traces.processes.launch import CPU, WAIT, LoopbackWorkers, cores
from adapt.traces.replay.operators import Operator

MOST_WAITING = 64
"""Upper limit of workers whose rows wait for the loopback service."""


def check_work(
    work: str | None, settings: StageSettings, operator: Operator, workers: str, further: Mapping[str, object]
) -> None:
    """Check that a stage can run in processes of this machine.

    Args:
        work: cpu, wait, or MODULE:FUNCTION; None, a simulation.
        workers: The option with the number of workers.
        further: Options that only the simulator has, with their values.

    Raises:
        UsageError: It needs what only the simulator has, has too many workers, or the function is malformed.
    """
    if work is None:
        return
    check_processes(
        settings,
        {
            "--join": operator.join,
            "--state with rows, bytes or keys": operator.state,
            "--costs": settings.costs.profile,
            **further,
        },
    )
    if work not in (CPU, WAIT):
        module, _, function = work.partition(":")
        if not (module and function.isidentifier()):
            raise UsageError(f"--function takes MODULE:FUNCTION, such as jobs.clicks:count (got {work!r})")
        if settings.disturbances:
            raise UsageError("--function runs at the speed of this machine; omit --load and --slow")
    most = MOST_WAITING if work == WAIT else cores()
    if settings.workers > most:
        waiting = "" if work == WAIT else f", one per core (with --work wait, {MOST_WAITING})"
        raise UsageError(
            f"--backend processes runs at most {most} workers on this machine{waiting}; reduce {workers}"
            f" (got {settings.workers})"
        )


def in_processes(work: str, reading: Reading) -> InProcesses:
    """Processes that do this work; the rows are read by key."""
    keys: Sequence[Any] = ()
    if work not in (CPU, WAIT):
        assert reading.groups is not None
        keys = reading.groups.keys.to_pylist()
    return InProcesses(lambda settings: LoopbackWorkers(settings, work, keys))


def parameters_of_backend(work: str | None) -> dict[str, Any]:
    """What runs the stage, as JSON data."""
    if work is None:
        return {"backend": "sim"}
    return {"backend": "processes", "work": work, "cores": cores()}


def measured(work: str | None) -> str:
    """What the time of a replay is, for its progress."""
    return "simulated" if work is None else "measured"
