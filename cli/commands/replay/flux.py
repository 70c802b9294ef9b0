"""`adapt replay flux`: rebalance the partitions of a simulated stage online."""

from dataclasses import replace
from typing import TYPE_CHECKING

from adapt.cli.options.artefacts import TracePath
from adapt.cli.options.groups import setting, short_help
from adapt.cli.options.replay.flux import FaultOptions, PlacingOptions, PolicyOptions
from adapt.cli.options.replay.stage import DagOptions, EngineStage
from adapt.cli.options.result import RunOutput
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.narration import narrate_keys
from adapt.cli.terminal.stages import stages
from adapt.core.stage.conditions.names import Arrivals, Router
from adapt.core.stage.conditions.stage_settings import JoinSettings
from adapt.core.stage.input.speed import OFFERED, Speed, Tempo

if TYPE_CHECKING:
    from adapt.core.flux.replay.dag import AnyFluxRun


@short_help(
    *("out", "workers", "plan", "policy", "offered", "speedup", "arrivals"),
    *("service_time", "engine", "load", "faults", "standby", "format"),
)
def flux(
    trace: TracePath,
    output: RunOutput,
    placing: PlacingOptions,
    policy: PolicyOptions,
    faults: FaultOptions,
    join: JoinSettings,
    dag: DagOptions,
    stage: EngineStage,
    speed: Speed,
    arrivals: Arrivals = setting(
        Arrivals.TRACE,
        "Replay rows by timestamp, or as fast as workers accept. With rotate, each 65,536 rows go to one worker"
        " after another.",
    ),
    router: Router = setting(
        Router.FLUX,
        "Routing: a queue per connection, any worker, or one buffer shared by all partitions.",
        needs="--engine flux if exchange|river",
    ),
) -> "AnyFluxRun":
    """Move hot partitions between workers while the stream runs.

    Every row is queued, sent and processed. Flux policies move partitions with their state between workers while rows
    keep arriving; today's placement with the same seed is the baseline. Network and disk
    default to those of the Flux paper.

    Example: adapt replay flux web.trace --workers 8 --speedup 20000 --load 3@5s -o web.flux
    """
    from adapt.traces.replay.replay import replay
    from adapt.traces.replay.stage import StageReplay
    from adapt.traces.replay.stages import DagReplay
    from adapt.traces.store.trace import open_trace

    output.check()
    asked, named = speed.or_offered(OFFERED), dag.opened()
    if named is not None:
        stage = stage if stage.state else replace(stage, state="rows")  # later stages do not know the rows' bytes
        asked = asked if speed.chosen else Speed(speedup=1.0)  # times of the file are simulated times
    opened = open_trace(trace)
    placed, plan = placing.placed(opened)
    if plan is not None:
        narrate_keys(trace, plan.plan.hashing)
    if policy.split_hot is not None and stage.state is None:  # parts begin empty; the partition has its rows
        stage = replace(stage, state=str(opened.rows // placed.count))
    settings = stage.settings(placed, faults, router)
    staged = StageReplay(
        settings=settings,
        reading=replace(stage.reading(opened, placed, None), rotates=arrivals is Arrivals.ROTATE),
        operator=stage.operator(join, opened),
        duration_s=stage.duration_s,
        plan=plan,
    )
    conditions, tempo = faults.conditions(settings), Tempo(None)
    if arrivals is Arrivals.TRACE:
        with stages() as progress:
            tempo = staged.tempo(opened, asked, pooled=False, progress=progress)
    mechanism = policy.flux(router, tempo, conditions)
    staged = replace(staged, reading=replace(staged.reading, speedup=tempo.speedup), mechanism=mechanism)
    with stages() as progress:
        run: AnyFluxRun = replay(
            opened,
            staged if named is None else DagReplay(named, staged, mechanism),
            output.out,
            force=output.force,
            command=command_line(),
            progress=progress,
        )
    stage.costs.say_what_is_assumed(
        opened, None if speed.chosen or tempo.speedup is None else asked.offered, tempo.lasts_s
    )
    output.show_run(run, opened)
    return run
