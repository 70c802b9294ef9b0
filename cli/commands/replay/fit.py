"""`adapt replay fit`: load shedding in a query network, planner by planner."""

from dataclasses import replace
from typing import TYPE_CHECKING

from adapt.cli.options.artefacts import TracePath
from adapt.cli.options.groups import short_help
from adapt.cli.options.replay.fit import PlanningOptions, RunningOptions, WorkloadOptions
from adapt.cli.options.result import RunOutput
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.effect import settled
from adapt.cli.terminal.output import narrate, narrate_written
from adapt.cli.terminal.stages import stages
from adapt.core.fit.network.names import DropPlanner
from adapt.core.fit.network.settings import Delivery, KnownRates, NodeQueue, Observing, TableSettings
from adapt.core.units.settings import settings_from

if TYPE_CHECKING:
    from adapt.core.fit.replay.replay import FitRun


@short_help(
    *(
        "network",
        "out",
        "planner",
        "plans",
        "rules",
        "speedup",
        "flow",
        "queue",
        "format",
    )
)
def fit(
    trace: TracePath,
    planning: PlanningOptions,
    output: RunOutput,
    running: RunningOptions,
    tables: TableSettings,
    workload: WorkloadOptions,
    observing: Observing | None,
    delivery: Delivery,
    queue: NodeQueue | None,
) -> "FitRun":
    """Drop rows in an overloaded query network, and lose least.

    Every planner gets its own copy of the network, with the same rows and the same random draws. Tuples that a plan
    keeps beyond a node's capacity wait in the node's queue. The score of each planner, its weighted output rate, is
    compared with the best possible score of every tick.

    Example: adapt replay fit web.trace --network shop.toml --planner exact,c-fit -o web.fit
    """
    from adapt.core.fit.replay.replay import FitOptions
    from adapt.traces.replay.files.workloads import open_workload, read_costs
    from adapt.traces.replay.fit import FitReplay, open_network
    from adapt.traces.replay.replay import replay
    from adapt.traces.store.trace import open_trace

    output.check()
    named = open_network(planning.network)
    fitted = None if running.utilization is None else read_costs(running.utilization, named.read.network)
    if fitted is not None:
        named = replace(named, read=replace(named.read, network=fitted.network))
    likely = None if workload.workload is None else open_workload(workload.workload, named.read.network)
    settings = replace(named.read.settings, **planning.given)
    settled("--planner", settings.planner)
    settled("--network:drops", settings.drops)
    shedding = FitOptions(
        planners=running.planners() or tuple(dict.fromkeys((DropPlanner.NONE, settings.planner))),
        settings=settings,
        execution=running.execution,
        tables=tables,
        delivery=delivery,
        known=settings_from(workload, KnownRates),
        queue=queue,
        workload=None if likely is None else likely.workload,
        true=running.truth(named.read.network),
        observing=observing,
    )
    costs = None if fitted is None else {operator.name: operator.cost for operator in fitted.network.operators}
    plans, source = running.plans, None if likely is None else likely.source
    opened, makes_plans = open_trace(trace), plans is not None and not plans.exists()
    with stages() as progress:
        run = replay(
            opened,
            FitReplay(
                *(named, shedding, plans, running.rules, costs, source),
                warn=lambda sentence: narrate(f"warning: {sentence}"),
            ),
            output.out,
            force=output.force,
            command=command_line(),
            progress=progress,
        )
    if plans is not None and makes_plans:
        narrate_written(plans)
    if running.rules is not None:
        narrate_written(running.rules)
    output.show_run(run, opened, further=() if fitted is None else (fitted.table,))
    return run
