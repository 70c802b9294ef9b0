"""`adapt replay elastic`: a trace through a simulated stage whose workers come and go."""

from adapt.cli.options.artefacts import TracePath
from adapt.cli.options.replay.elastic import JoinOptions, PlanOptions, ScalingOptions
from adapt.cli.options.replay.stage import DEFAULT_STATE, SpeedupOption, StageOptions, TroubleOptions, check_speedup
from adapt.cli.options.result import RunOutput
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.stages import stages
from adapt.core.errors import UsageError


def elastic(
    trace: TracePath,
    output: RunOutput,
    scaling: ScalingOptions,
    plans: PlanOptions,
    join: JoinOptions,
    trouble: TroubleOptions,
    stage: StageOptions,
    speedup: SpeedupOption = 1.0,
) -> None:
    """Simulate a trace through a stage whose workers come and go, row by row, with their state.

    A scale step builds a plan from the rows of late, and moves what it places elsewhere while rows go on arriving.
    Fixed workers of the same seed stand beside it. With --shed workers hold rows, and thresholds are of how full they
    are; without it, of how much of the time they work. With --join two streams are joined, and what the window holds is
    the state. All times but the trace's own are of the stage.

    Example: adapt replay elastic web.trace --pool 12 --speedup 20000 -o web.elastic
    """
    from adapt.traces.replay.elastic import ElasticOptions, replay_elastic_trace
    from adapt.traces.store.trace import open_trace

    output.check()
    check_speedup(speedup)
    placed = plans.placed(scaling.pool)
    joined = join.joined()
    if joined is not None and stage.state != DEFAULT_STATE:
        raise UsageError(
            f"--state {stage.state}: the state of a join is what its window holds; leave --state or --join out"
        )
    window_s = None if joined is None else joined.window / 1e6 / speedup
    settings = stage.settings(placed, trouble, window_s=window_s)
    opened = open_trace(trace)
    options = ElasticOptions(
        reading=stage.reading(opened, placed, speedup),
        elastic=scaling.elastic(plans, stage.shedding.thresholds()),
        state=stage.state_weight(),
        duration_s=stage.duration_s,
        interval_s=stage.interval_s,
        own_keys=plans.own_keys,
        join=joined,
        side=join.join or "",
    )
    with stages() as progress:
        run = replay_elastic_trace(
            opened, output.out, settings, options, force=output.force, command=command_line(), progress=progress
        )
    output.show(run.shown(), run.as_data())
