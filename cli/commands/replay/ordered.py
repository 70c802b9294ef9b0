"""`adapt replay ordered`: a chain of operators, in order, on many workers."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from adapt.cli.options.artefacts import TracePath
from adapt.cli.options.groups import option, setting, short_help
from adapt.cli.options.replay.ordered import ArrivalOptions, InputOptions, RuntimeOptions, WorkerOptions
from adapt.cli.options.replay.stage import SeedOption
from adapt.cli.options.result import RunOutput
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.effect import settled
from adapt.cli.terminal.narration import narrate_keys
from adapt.cli.terminal.output import Format, narrate, narrate_written, written_out
from adapt.cli.terminal.stages import stages
from adapt.core.ordered.chain.names import Backend

if TYPE_CHECKING:
    from adapt.core.ordered.replay.tables import OrderedRun


@short_help(
    "chain",
    "inputs",
    "output_rows",
    "out",
    "workers",
    "backend",
    "reorder",
    "work_queue",
    "plan",
    "rows",
    "check",
    "format",
    "force",
)
def ordered(
    trace: TracePath,
    chain: Annotated[
        Path,
        option(
            "Chain of operators (TOML), or the name of one: fraud, retail-q1, -q2, -q3, -q4 or -q15.",
            "CHAIN",
            "--chain",
            "-c",
        ),
    ],
    output: RunOutput,
    inputs: InputOptions,
    workers: WorkerOptions,
    arrivals: ArrivalOptions,
    runtime: RuntimeOptions,
    plan: Path | None = setting(None, 'Plan that partitions the operators with by = "plan".', "PLAN"),
    seed: SeedOption = 0,
    output_rows: Path | None = setting(
        None, "Output rows in order (.parquet, .csv, .jsonl, or -).", "FILE", "--output", needs="--backend threads"
    ),
    check: int | None = setting(
        None,
        "Rows on which functions are checked against plain Python; 0 for no check.",
        "N",
        shown=False,
    ),
) -> "OrderedRun":
    """Run a chain of operators on many cores and keep the order.

    Many workers process the operators at once, and the output equals that of a serial run. Operators are stateless,
    partitioned by a key, or stateful. Rows enter in trace order, as fast as the workers take them or as they
    arrive (--rate, --offered, --sustainable, --speedup). Threads measure this machine; the model (sim) runs any number
    of workers, with operator costs from the chain or measured with one real worker.

    Example: adapt replay ordered web.trace --chain visits.toml --workers 1,2 -o web.ordered
    """

    from adapt.core.errors import UsageError
    from adapt.core.ordered.engine.settings import assumed_contention
    from adapt.core.ordered.replay.arrivals import Ordered
    from adapt.traces.replay.chains import open_chain
    from adapt.traces.replay.egress import STDOUT, EgressTarget
    from adapt.traces.replay.ordered import OrderedReplay
    from adapt.traces.replay.replay import replay
    from adapt.traces.store.plans import open_named_plan
    from adapt.traces.store.trace import open_trace

    output.check()
    target = None
    if output_rows is not None:
        target = EgressTarget.named(output_rows, csv=output.format is Format.CSV, force=output.force)
        if output_rows == output.out:
            raise UsageError(f"--output and --out both name {output_rows}; give the rows and the run a name each")
    cores = _cores()
    counts = workers.counts(cores)
    backend = workers.backend or (Backend.SIM if workers.are_searched or max(counts) > cores else Backend.THREADS)
    settled("--backend", backend)
    how = Ordered(
        workers=counts,
        backend=backend,
        settings=runtime.settings(),
        contention=assumed_contention(runtime.scheduling.heuristic),
        seed=seed,
        cores=cores,
        check=check,
        repeats=workers.repeats,
        arrivals=arrivals.arrivals(),
        target=arrivals.target(),
        finds_workers=workers.are_searched,
    )
    if workers.backend is None and not workers.are_searched and how.backend is Backend.SIM:
        narrate(
            f"{max(counts)} workers on a machine with {cores} cores: using the model (--backend sim); with --backend"
            " threads they would share the cores"
        )
    named, opened = open_chain(chain), open_trace(trace)
    planned = None if plan is None else open_named_plan(plan)
    if planned is not None:
        narrate_keys(trace, planned.plan.hashing)
    chained = OrderedReplay(
        named,
        how,
        planned,
        inputs.rows,
        target,
        inputs.opened(),
    )
    with written_out() if output_rows == STDOUT else nullcontext(), stages() as progress:
        run = replay(opened, chained, output.out, force=output.force, command=command_line(), progress=progress)
    for why in run.obstacles:
        narrate(f"{why}; the chain ran serially, in plain Python")
    if output_rows is not None and output_rows != STDOUT:
        narrate_written(output_rows)
    if output_rows == STDOUT:
        if run.chain.skipped is not None and run.chain.skipped.rows:
            narrate(run.chain.skipped.sentence())
        return run
    output.show_run(run, opened, every=[run.summary(), *run.tables().values()])
    return run


def _cores() -> int:
    """Cores that this process may use."""
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
