"""`adapt replay ordered`: a trace through a chain of operators, in order, by many workers."""

from pathlib import Path
from typing import Annotated

import typer

from adapt.cli.options.common import ForceOption, TracePath, command_line
from adapt.cli.options.stage import SeedOption
from adapt.cli.terminal.output import Format, FormatOption, is_for_programs, narrate, narrate_written, show
from adapt.cli.terminal.stages import stages
from adapt.core.errors import UsageError
from adapt.core.ordered.chain.names import Engine, Heuristic, OrderlyWorklist, Reorder

QUEUES_PANEL = "Rings, queues and time slices"
MODEL_PANEL = "What workers of the model cost each other (engine sim); assumptions, not measurements of your machine"


def ordered(
    trace: TracePath,
    chain: Annotated[
        Path,
        typer.Option(
            "--chain",
            "-c",
            metavar="C.toml",
            help="The operators, each bound to columns of the trace; or retail-q1, -q2, -q3, -q4 or -q15, for traces of"
            " the generators sales (1 and 15) and clicks.",
        ),
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="RUN", help="Where to keep the run.")] = None,
    workers: Annotated[
        str | None,
        typer.Option(
            "--workers",
            metavar="1,2,4",
            help="Numbers of workers, in turn; 1, 2, 4 and so on up to the cores of this machine if left out.",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        Engine | None,
        typer.Option(
            "--engine",
            help="Real workers on threads, or a model of them; threads where the machine has a core for each worker,"
            " else sim.",
            show_default=False,
        ),
    ] = None,
    reorder: Annotated[
        Reorder,
        typer.Option(
            "--reorder",
            help="How outputs come into order: without locks, in a ring that workers claim room in (claim) or try until"
            " there is room (retry, as in the paper), or with a lock.",
        ),
    ] = Reorder.CLAIM,
    worklist: Annotated[
        OrderlyWorklist,
        typer.Option(
            "--worklist",
            help="How workers share partitions: a queue each and a master queue, or a queue each that a worker owns.",
        ),
    ] = OrderlyWorklist.HYBRID,
    heuristic: Annotated[
        Heuristic, typer.Option("--heuristic", help="Which operator a worker takes next.")
    ] = Heuristic.CT,
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="PLAN", help='The partitions of operators with by = "plan".'),
    ] = None,
    rows: Annotated[
        int | None, typer.Option("--rows", metavar="N", help="The first rows only; all if left out.")
    ] = None,
    seed: SeedOption = 0,
    check: Annotated[
        bool,
        typer.Option(
            "--check/--no-check",
            help="Hold what leaves against a serial run: in plain Python, or of the model by one worker.",
        ),
    ] = True,
    slice_us: Annotated[
        float,
        typer.Option(
            "--slice-us", metavar="US", help="How long a worker stays with an operator.", rich_help_panel=QUEUES_PANEL
        ),
    ] = 100.0,
    window_ms: Annotated[
        float,
        typer.Option(
            "--window-ms", metavar="MS", help="Over how long ct counts worker time.", rich_help_panel=QUEUES_PANEL
        ),
    ] = 20.0,
    ring: Annotated[
        int,
        typer.Option(
            "--ring",
            metavar="TUPLES",
            help="Whose outputs can wait for their turn; a power of two.",
            rich_help_panel=QUEUES_PANEL,
        ),
    ] = 4096,
    queue: Annotated[
        int,
        typer.Option(
            "--queue",
            metavar="TUPLES",
            help="That can wait before an operator; a power of two.",
            rich_help_panel=QUEUES_PANEL,
        ),
    ] = 4096,
    queue_size: Annotated[
        float,
        typer.Option(
            "--queue-size",
            metavar="C",
            help="Tuples that qst lets wait in all queues together.",
            rich_help_panel=QUEUES_PANEL,
        ),
    ] = 500.0,
    batch: Annotated[
        int,
        typer.Option(
            "--batch",
            metavar="TUPLES",
            help="That share a serial number at most, 1 to 64.",
            rich_help_panel=QUEUES_PANEL,
        ),
    ] = 1,
    mark_every: Annotated[
        int | None,
        typer.Option(
            "--mark-every",
            metavar="N",
            help="One row of so many is timed; some 10,000 in all if left out.",
            rich_help_panel=QUEUES_PANEL,
            show_default=False,
        ),
    ] = None,
    jitter: Annotated[
        float,
        typer.Option(
            "--jitter",
            metavar="SHARE",
            help="Share of a tuple's cost that is drawn from an exponential distribution.",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = 0.0,
    crowding_us: Annotated[
        float,
        typer.Option(
            "--crowding-us",
            metavar="US",
            help="Added to a tuple by each other worker on its operator.",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = 0.15,
    send_us: Annotated[
        float,
        typer.Option(
            "--send-us",
            metavar="US",
            help="Of a batch, where only one worker at a time sends.",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = 0.05,
    output_us: Annotated[
        float, typer.Option("--output-us", metavar="US", help="Of an output, there.", rich_help_panel=MODEL_PANEL)
    ] = 0.0,
    hand_over_us: Annotated[
        float,
        typer.Option(
            "--hand-over-us",
            metavar="US",
            help="From a lock's release to the next worker that waits for it.",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = 0.15,
    format: FormatOption = Format.TABLE,
    force: ForceOption = False,
) -> None:
    """Run a trace through a chain of operators by many workers, with the results of a serial run.

    The chain names operators that are stateless, partitioned by a key, or stateful. Rows enter in the order of the
    trace, as fast as they are taken, and are held in memory. On threads the results are real; the model (sim) runs
    any number of workers on costs that the chain says, or that one real worker measured.

    Example: adapt replay ordered web.trace --chain visits.toml --workers 1,2 -o web.ordered
    """
    from time import perf_counter, process_time

    from adapt.core.ordered.chain.names import Worklist
    from adapt.core.ordered.engine.contention import Contention
    from adapt.core.ordered.engine.settings import RunSettings
    from adapt.core.ordered.replay.replay import Ordered
    from adapt.traces.replay.chains import open_chain
    from adapt.traces.replay.ordered import open_named_plan, replay_ordered_trace
    from adapt.traces.store.trace import open_trace
    from adapt.traces.store.whole import check_folder_free

    if out is not None:
        check_folder_free(out, force=force)
    cores = _cores()
    counts = _numbers(workers) if workers is not None else _doubled(cores)
    if mark_every is not None and mark_every < 1:
        raise UsageError(f"--mark-every {mark_every}: timed is one row of 1 or more")
    how = Ordered(
        workers=counts,
        engine=engine or (Engine.THREADS if max(counts) <= cores else Engine.SIM),
        settings=RunSettings(
            reorder=reorder,
            worklist=Worklist(worklist.value),
            heuristic=heuristic,
            ring=ring,
            queue=queue,
            batch=batch,
            slice_us=slice_us,
            window_ms=window_ms,
            queue_size=queue_size,
            mark_every=mark_every or 0,
        ),
        contention=Contention(jitter, crowding_us, send_us, output_us, hand_over_us),
        seed=seed,
        cores=cores,
        serial=check,
    )
    if engine is None and how.engine is Engine.SIM:
        narrate(
            f"{max(counts)} workers are more than the cores of this machine, {cores}: a model runs them; --engine"
            " threads runs real ones, which then take turns"
        )
    named, opened = open_chain(chain), open_trace(trace)
    placed = None if plan is None else open_named_plan(plan)
    with stages() as progress:
        run = replay_ordered_trace(
            opened,
            out,
            named,
            how,
            clock=perf_counter,
            cpu_clock=process_time,
            plan=placed,
            rows=rows,
            force=force,
            command=command_line(),
            progress=progress,
        )
    if out is not None:
        narrate_written(out)
    whole = [run.summary(), *run.tables().values()]
    show(whole if is_for_programs(format) else list(run.shown()), format, run.as_data())


def _cores() -> int:
    """Those that this process may use."""
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _doubled(cores: int) -> tuple[int, ...]:
    """1, 2, 4 and so on, up to all cores."""
    counts = [1 << power for power in range(cores.bit_length())]
    return tuple(dict.fromkeys([*counts, cores]))


def _numbers(text: str) -> tuple[int, ...]:
    """Numbers of workers in rising order, each once."""
    try:
        return tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        raise UsageError(f"--workers {text!r} are no numbers, e.g. 1,2,4,8") from None
