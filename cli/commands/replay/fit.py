"""`adapt replay fit`: a trace through a query network that sheds load, with one planner or several."""

from pathlib import Path
from time import perf_counter
from typing import Annotated

from adapt.cli.options.artefacts import TracePath
from adapt.cli.options.groups import option
from adapt.cli.options.replay.fit import MessageOptions, PlanningOptions, QueueOptions, RunningOptions, TableOptions
from adapt.cli.options.result import RunOutput
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.output import narrate, narrate_written
from adapt.cli.terminal.stages import stages


def fit(
    trace: TracePath,
    network: Annotated[Path, option("The query network, its inputs bound to rows.", "N.toml", "--network", "-n")],
    output: RunOutput,
    running: RunningOptions,
    planning: PlanningOptions,
    ahead: TableOptions,
    messages: MessageOptions,
    queue: QueueOptions,
) -> None:
    """Run a trace through a query network, tick by tick, dropping what its nodes cannot do.

    Every planner plans for its own copy of the network, which the same rows pass with the same coins. What is kept
    beyond the capacity of a node waits in its queue. Scores are held against the best of each tick.

    Example: adapt replay fit web.trace --network shop.toml --planner exact,c-fit -o web.fit
    """

    from adapt.core.fit.planners.solver import MOST_PLANS
    from adapt.core.fit.replay.replay import FitOptions
    from adapt.traces.replay.fit import FitTraceOptions, open_network, replay_fit_trace
    from adapt.traces.replay.workloads import open_workload
    from adapt.traces.store.trace import open_trace

    output.check()
    named = open_network(network)
    likely = None if ahead.workload is None else open_workload(ahead.workload, named.read.network)
    settings = planning.settings(named.read.settings)
    shedding = FitOptions(
        planners=running.planners() or (settings.planner,),
        settings=settings,
        flow=running.flow,
        seed=running.seed,
        cost_scale=running.true_costs,
        overload=queue.overload(),
        grid=ahead.grid,
        distance=ahead.distance,
        transport=messages.transport(),
        trusting=messages.trusting,
        most_plans=MOST_PLANS if ahead.most_plans is None else ahead.most_plans,
        workload=None if likely is None else likely.workload,
    )
    plans, told = running.plans, None if likely is None else likely.told
    opened, makes_plans = open_trace(trace), plans is not None and not plans.exists()
    with stages() as progress:
        run = replay_fit_trace(
            opened,
            output.out,
            FitTraceOptions(named, shedding, running.speedup, plans, told),
            clock=perf_counter,
            force=output.force,
            command=command_line(),
            progress=progress,
            warn=lambda sentence: narrate(f"warning: {sentence}"),
        )
    if plans is not None and makes_plans:
        narrate_written(plans)
    output.show(run.shown(), run.as_data())
