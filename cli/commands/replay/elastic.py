"""`adapt replay elastic`: a trace through a stage that scales."""

from dataclasses import replace
from typing import TYPE_CHECKING

from adapt.cli.options.artefacts import TracePath
from adapt.cli.options.groups import short_help
from adapt.cli.options.replay.elastic import PlanOptions, ScalingOptions
from adapt.cli.options.replay.stage import ScaledStage, TroubleOptions
from adapt.cli.options.result import RunOutput
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.narration import narrate_keys
from adapt.cli.terminal.stages import stages
from adapt.core.stage.conditions.stage_settings import JoinSettings
from adapt.core.stage.input.speed import POOL_OFFERED, PoolSpeed

if TYPE_CHECKING:
    from adapt.core.elastic.replay.replay import ElasticRun


@short_help(
    *(
        "out",
        "pool",
        "workers",
        "policy",
        "offered",
        "speedup",
        "service_time",
        "period_s",
        "scale_out_delay_s",
        "shed",
    ),
    *("engine", "migrate"),
)
def elastic(
    trace: TracePath,
    output: RunOutput,
    scaling: ScalingOptions,
    plans: PlanOptions,
    join: JoinSettings,
    trouble: TroubleOptions,
    stage: ScaledStage,
    speed: PoolSpeed,
) -> "ElasticRun":
    """Add and remove workers while the stream runs.

    A rescale builds a plan from recent rows and migrates partitions with their state while rows keep arriving. Fixed
    workers are the baseline. Thresholds apply to buffer occupancy with --shed, else to busy time. All times are
    simulated time.

    Example: adapt replay elastic web.trace --pool 12 --speedup 20000 -o web.elastic
    """
    from adapt.core.stage.conditions.shed_factor import Thresholds
    from adapt.traces.replay.replay import replay
    from adapt.traces.replay.stage import StageReplay
    from adapt.traces.store.trace import open_trace

    output.check()
    asked = speed.or_offered(POOL_OFFERED)
    opened = open_trace(trace)
    operator = stage.operator(join, opened)
    placed = plans.placed(scaling.pool, stage.queues.engine, opened.key_type)
    units = plans.units(scaling.pool, stage.queues.engine)
    if units is not None:
        narrate_keys(trace, units.engine)
    window_s = None if operator.join is None else operator.join.window / 1e6
    staged = StageReplay(
        settings=stage.settings(placed, trouble, window_s=window_s),
        reading=stage.reading(opened, placed, 1.0),
        operator=operator,
        duration_s=stage.duration_s,
    )
    with stages() as progress:
        tempo = staged.tempo(opened, asked, pooled=True, progress=progress)
    speedup = tempo.speedup or 1.0
    staged = replace(
        staged,
        settings=stage.settings(placed, trouble, window_s=None if window_s is None else window_s / speedup),
        reading=replace(staged.reading, speedup=speedup),
        mechanism=scaling.elastic(
            plans,
            Thresholds.of(stage.shedding),
            tempo,
            engine=stage.queues.engine,
            profile=stage.costs.profile(),
        ),
    )
    with stages() as progress:
        run: ElasticRun = replay(
            opened, staged, output.out, force=output.force, command=command_line(), progress=progress
        )
    stage.costs.say_what_is_assumed(opened, None if speed.chosen else asked.offered, tempo.lasts_s)
    output.show_run(run, opened)
    return run
