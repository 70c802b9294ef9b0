"""`adapt replay ordered`: a trace through a chain of operators, in order, by many workers."""

from pathlib import Path
from time import perf_counter, process_time
from typing import Annotated

from adapt.cli.options.artefacts import TracePath
from adapt.cli.options.groups import option, setting
from adapt.cli.options.replay.ordered import ModelOptions, RuntimeOptions, WorkerOptions
from adapt.cli.options.replay.stage import SeedOption
from adapt.cli.options.result import RunOutput
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.output import is_for_programs, narrate
from adapt.cli.terminal.stages import stages
from adapt.core.ordered.chain.names import Engine


def ordered(
    trace: TracePath,
    chain: Annotated[
        Path,
        option(
            "The operators, each bound to columns of the trace; or retail-q1, -q2, -q3, -q4 or -q15, for traces of"
            " the generators sales (1 and 15) and clicks.",
            "C.toml",
            "--chain",
            "-c",
        ),
    ],
    output: RunOutput,
    workers: WorkerOptions,
    runtime: RuntimeOptions,
    model: ModelOptions,
    plan: Path | None = setting(None, 'The partitions of operators with by = "plan".', "PLAN"),
    rows: int | None = setting(None, "The first rows only; all if left out.", "N"),
    seed: SeedOption = 0,
    check: bool = setting(
        True, "Hold what leaves against a serial run: in plain Python, or of the model by one worker."
    ),
) -> None:
    """Run a trace through a chain of operators by many workers, with the results of a serial run.

    The chain names operators that are stateless, partitioned by a key, or stateful. Rows enter in the order of the
    trace, as fast as they are taken, and are held in memory. On threads the results are real; the model (sim) runs
    any number of workers on costs that the chain says, or that one real worker measured.

    Example: adapt replay ordered web.trace --chain visits.toml --workers 1,2 -o web.ordered
    """

    from adapt.core.ordered.replay.replay import Ordered
    from adapt.traces.replay.chains import open_chain
    from adapt.traces.replay.ordered import OrderedOptions, open_named_plan, replay_ordered_trace
    from adapt.traces.store.trace import open_trace

    output.check()
    cores = _cores()
    counts = workers.counts(cores)
    how = Ordered(
        workers=counts,
        engine=workers.engine or (Engine.THREADS if max(counts) <= cores else Engine.SIM),
        settings=runtime.settings(),
        contention=model.contention(),
        seed=seed,
        cores=cores,
        serial=check,
    )
    if workers.engine is None and how.engine is Engine.SIM:
        narrate(
            f"{max(counts)} workers are more than the cores of this machine, {cores}: a model runs them; --engine"
            " threads runs real ones, which then take turns"
        )
    named, opened = open_chain(chain), open_trace(trace)
    options = OrderedOptions(named, how, None if plan is None else open_named_plan(plan), rows)
    with stages() as progress:
        run = replay_ordered_trace(
            opened,
            output.out,
            options,
            clock=perf_counter,
            cpu_clock=process_time,
            force=output.force,
            command=command_line(),
            progress=progress,
        )
    whole = [run.summary(), *run.tables().values()]
    output.show(whole if is_for_programs(output.format) else run.shown(), run.as_data())


def _cores() -> int:
    """Those that this process may use."""
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
