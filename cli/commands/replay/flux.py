"""`adapt replay flux`: a trace through a simulated stage of sites, without moves and with policies that move state."""

from typing import TYPE_CHECKING

from adapt.cli.options.artefacts import TracePath
from adapt.cli.options.groups import setting
from adapt.cli.options.replay.flux import PlacingOptions, PolicyOptions, SiteOptions
from adapt.cli.options.replay.stage import SpeedupOption, StageOptions, check_speedup
from adapt.cli.options.result import RunOutput
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.output import narrate
from adapt.cli.terminal.stages import stages
from adapt.core.stage.conditions.names import Arrivals, Router

if TYPE_CHECKING:
    from adapt.traces.replay.flux import FluxOptions
    from adapt.traces.store.trace import Trace

_MOST_ROUNDS = 100_000


def flux(
    trace: TracePath,
    output: RunOutput,
    placing: PlacingOptions,
    policy: PolicyOptions,
    sites: SiteOptions,
    stage: StageOptions,
    arrivals: Arrivals = setting(Arrivals.TRACE, "Rows arrive by their times, or as fast as they can be taken."),
    speedup: SpeedupOption = 1.0,
    router: Router = setting(Router.FLUX, "How rows find their site: one queue a connection, any site, or one buffer."),
) -> None:
    """Simulate a trace through a stage of sites, row by row, with partitions that stay and with partitions that move.

    Every row is queued, sent and processed at its site; policies of Flux move partitions with their state between sites
    while rows go on arriving. The static case of the same seed stands beside them. Defaults are those of the paper.

    Example: adapt replay flux web.trace --sites 8 --speedup 20000 --load 3@5s -o web.flux
    """
    from adapt.traces.replay.flux import FluxOptions, replay_flux_trace
    from adapt.traces.store.trace import open_trace

    output.check()
    check_speedup(speedup, ", or --arrivals saturate")
    opened = open_trace(trace)
    placed, plan_hash = placing.placed(opened)
    settings = stage.settings(placed, sites, router)
    options = FluxOptions(
        reading=stage.reading(opened, placed, speedup if arrivals is Arrivals.TRACE else None),
        adapting=policy.adapting(router),
        conditions=sites.conditions(settings),
        state=stage.state_weight(),
        duration_s=stage.duration_s,
        interval_s=stage.interval_s,
        plan=plan_hash,
    )
    _warn_of_length(opened, options)
    with stages() as progress:
        run = replay_flux_trace(
            opened, output.out, settings, options, force=output.force, command=command_line(), progress=progress
        )
    output.show(run.shown(), run.as_data())


def _warn_of_length(trace: "Trace", options: "FluxOptions") -> None:
    """Say when a replay is likely to take very long, since a controller decides in every round."""
    speedup = options.reading.speedup
    if speedup is None:
        return
    span_s = (trace.last_us - trace.first_us) / 1e6 / speedup
    rounds = min(span_s, options.duration_s or span_s) / max(options.adapting.min_collection_s, 1e-9)
    if rounds > _MOST_ROUNDS:
        narrate(
            f"the trace lasts {span_s:,.0f} s at speed-up {speedup:g}, some {rounds:,.0f} rounds of a policy; a larger"
            " --speedup or --min-collection, or a --duration, is sooner done"
        )
