"""`adapt replay flux`: rebalance the partitions of a simulated stage online."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from adapt.cli.options.artefacts import TracePath
from adapt.cli.options.groups import setting, short_help
from adapt.cli.options.replay.backend import BackendOptions
from adapt.cli.options.replay.dag import DagOptions
from adapt.cli.options.replay.flux import FaultOptions, PlacingOptions, PolicyOptions
from adapt.cli.options.replay.join import JoinOptions
from adapt.cli.options.replay.stage import SpeedupOption, StageOptions, check_speedup
from adapt.cli.options.result import RunOutput
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.output import narrate
from adapt.cli.terminal.stages import stages
from adapt.core.stage.conditions.names import Arrivals, QueueingName, Router

if TYPE_CHECKING:
    from adapt.core.flux.replay.dag import AnyFluxRun
    from adapt.traces.replay.flux import FluxOptions
    from adapt.traces.store.trace import Trace

_MOST_ROUNDS = 100_000


@short_help(
    *("out", "workers", "plan", "policy", "backend", "speedup", "arrivals"),
    *("service_time", "queueing", "load", "faults", "standby", "format"),
)
def flux(
    trace: TracePath,
    output: RunOutput,
    placing: PlacingOptions,
    policy: PolicyOptions,
    faults: FaultOptions,
    join: JoinOptions,
    dag: DagOptions,
    stage: StageOptions,
    backend: BackendOptions,
    arrivals: Arrivals = setting(
        Arrivals.TRACE,
        "Replay rows by timestamp, or as fast as workers accept. With rotate, each 65,536 rows go to one worker"
        " after another.",
    ),
    speedup: SpeedupOption = 1.0,
    router: Router = setting(
        Router.FLUX, "Routing: a queue per connection, any worker, or one buffer shared by all partitions."
    ),
) -> "AnyFluxRun":
    """Replay a trace through a simulated stage and rebalance it online.

    Every row is queued, sent and processed. Flux policies move partitions with their state between workers while rows
    keep arriving; the static case with the same seed is the baseline. Defaults are those of the Flux paper.

    Example: adapt replay flux web.trace --workers 8 --speedup 20000 --load 3@5s -o web.flux
    """
    from adapt.traces.replay.flux import FluxOptions, replay_flux_trace
    from adapt.traces.replay.stages import replay_stages_trace
    from adapt.traces.store.trace import open_trace

    output.check()
    check_speedup(speedup, "; or use --arrivals saturate")
    named = dag.opened()
    if named is not None:
        of_one_stage = {
            "--plan": placing.plan,
            "--standby": faults.standby,
            "--standby-partitions": faults.standby_partitions,
            "--join": join.join,
            "--shed": stage.shedding.shed,
            "--split-hot": policy.split_hot,
            f"--queueing {stage.queues.queueing}": stage.queues.queueing not in (None, QueueingName.FLUX),
            "--arrivals rotate": arrivals is Arrivals.ROTATE,
            "--backend processes": backend.worked(),
        }
        dag.check(of_one_stage, policy.policy or [], policy.season)
    opened = open_trace(trace)
    placed, plan_hash = placing.placed(opened)
    settings = stage.settings(placed, faults, router)
    options = FluxOptions(
        reading=replace(
            stage.reading(opened, placed, speedup if arrivals is Arrivals.TRACE else None),
            rotates=arrivals is Arrivals.ROTATE,
        ),
        adapting=policy.adapting(router),
        conditions=faults.conditions(settings),
        operator=stage.operator(join),
        duration_s=stage.duration_s,
        interval_s=stage.interval_s,
        plan=plan_hash,
        work=backend.worked(),
    )
    _warn_of_length(opened, options)
    run: AnyFluxRun
    with stages() as progress:
        kept: dict[str, Any] = {"force": output.force, "command": command_line(), "progress": progress}
        if named is None:
            run = replay_flux_trace(opened, output.out, settings, options, **kept)
        else:
            run = replay_stages_trace(opened, output.out, named, settings, options, **kept)
    stage.costs.say_what_is_assumed(opened)
    output.show(run.shown(), run.as_data())
    return run


def _warn_of_length(trace: "Trace", options: "FluxOptions") -> None:
    """Warn of a replay with very many rounds of the controller."""
    speedup = options.reading.speedup
    if speedup is None:
        return
    span_s = (trace.last_us - trace.first_us) / 1e6 / speedup
    rounds = min(span_s, options.duration_s or span_s) / max(options.adapting.min_collection_s, 1e-9)
    if rounds > _MOST_ROUNDS:
        narrate(
            f"the replay simulates {span_s:,.0f} s, about {rounds:,.0f} rounds of a policy; to finish sooner, increase"
            " --speedup or --min-collection, or set --duration"
        )
