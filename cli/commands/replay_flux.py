"""`adapt replay flux`: a trace through a simulated stage of sites, without moves and with policies that move state."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options.common import ForceOption, HashOption, TracePath, command_line
from adapt.cli.options.stage import (
    NETWORK_PANEL,
    TROUBLE_PANEL,
    BufferOption,
    ConnectionOption,
    CostUnitOption,
    DurationOption,
    IntervalOption,
    LatencyOption,
    LeastShedOption,
    LoadOption,
    MarshalTimeOption,
    ProducersOption,
    ProduceTimeOption,
    SeedOption,
    ServiceSdOption,
    ServiceTimeOption,
    ShedFormOption,
    ShedOption,
    SlowOption,
    SpeedupOption,
    StateBandwidthAllOption,
    StateBandwidthOption,
    StateOption,
    TauOption,
    TupleBytesOption,
    above_0,
    amount_of,
    by_stream_of,
    network_of,
    overload_of,
    state_of,
)
from adapt.cli.terminal.output import Format, FormatOption, narrate, narrate_written, show
from adapt.cli.terminal.stages import stages
from adapt.core.errors import UsageError
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.keys.names import HashName
from adapt.core.stage.conditions.names import Arrivals, Router, SheddingForm

if TYPE_CHECKING:
    from adapt.core.stage.input.mini_partitions import MiniPartitions
    from adapt.core.stage.movement.spilling import Memory
    from adapt.traces.store.trace import Trace

POLICY_PANEL = "The policy"

_MOST_ROUNDS = 100_000


def flux(
    trace: TracePath,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="RUN", help="Where to keep the run.")] = None,
    sites: Annotated[
        int | None,
        typer.Option("--sites", metavar="N", help="Sites, each with a producer and a consumer.", show_default=False),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="PLAN", help="The sites are its channels, where it places keys at the start."),
    ] = None,
    partitions: Annotated[
        int, typer.Option("--partitions", metavar="K", help="Partitions of a site at the start; each moves as a whole.")
    ] = 64,
    policy: Annotated[
        list[FluxPolicy] | None,
        typer.Option("--policy", help="What moves partitions, beside the static case; repeatable; load if left out."),
    ] = None,
    arrivals: Annotated[
        Arrivals, typer.Option("--arrivals", help="Rows arrive by their times, or as fast as they can be taken.")
    ] = Arrivals.TRACE,
    speedup: SpeedupOption = 1.0,
    duration: DurationOption = None,
    interval: IntervalOption = None,
    seed: SeedOption = 0,
    router: Annotated[
        Router,
        typer.Option("--router", help="How rows find their site: one queue a connection, any site, or one buffer."),
    ] = Router.FLUX,
    buffer: BufferOption = 2048,
    state: StateOption = "10000",
    producers: ProducersOption = None,
    hash: HashOption = HashName.MURMUR3,
    load: LoadOption = None,
    slow: SlowOption = None,
    memory: Annotated[
        list[str] | None,
        typer.Option(
            "--memory",
            metavar="1GB|0@5s:512MB",
            help="Memory of every site for state, and what a site has from a time on; what does not fit goes to disk;"
            " no limit if left out; repeatable.",
            rich_help_panel=TROUBLE_PANEL,
        ),
    ] = None,
    faults: Annotated[
        Path | None,
        typer.Option(
            "--faults",
            metavar="FILE",
            help="Loads, slow-downs, pauses and crashes of sites, as JSON (adapt.faults/1).",
            rich_help_panel=TROUBLE_PANEL,
        ),
    ] = None,
    standby: Annotated[
        bool,
        typer.Option(
            "--standby",
            help="Every partition has a twin on another site, which takes over when its site dies.",
            rich_help_panel=TROUBLE_PANEL,
        ),
    ] = False,
    shed: ShedOption = None,
    tau: TauOption = "0.1,0.4,0.8,0.9",
    least_shed: LeastShedOption = 0.0,
    shed_form: ShedFormOption = SheddingForm.LINEAR,
    min_collection: Annotated[
        str,
        typer.Option(
            "--min-collection",
            metavar="150ms",
            help="Least time to collect statistics in a round.",
            rich_help_panel=POLICY_PANEL,
        ),
    ] = "150ms",
    min_imbalance: Annotated[
        float,
        typer.Option(
            "--min-imbalance",
            metavar="X",
            help="Least ratio of two sites' utilisations to be evened out.",
            rich_help_panel=POLICY_PANEL,
        ),
    ] = 1.2,
    max_receiver: Annotated[
        float,
        typer.Option(
            "--max-receiver",
            metavar="U",
            help="A site that is busier receives nothing.",
            rich_help_panel=POLICY_PANEL,
        ),
    ] = 0.95,
    service_time: ServiceTimeOption = "45us",
    service_sd: ServiceSdOption = "3us",
    cost_unit: CostUnitOption = None,
    produce_time: ProduceTimeOption = "0.5us",
    marshal_time: MarshalTimeOption = "0.2us",
    tuple_bytes: TupleBytesOption = 80,
    latency: LatencyOption = "70us",
    connection: ConnectionOption = 24,
    state_bandwidth: StateBandwidthOption = "250Mbps",
    state_bandwidth_all: StateBandwidthAllOption = "500Mbps",
    disk: Annotated[
        str,
        typer.Option(
            "--disk", metavar="160Mbps", help="Bandwidth of a site's disk, 20 MB/s.", rich_help_panel=NETWORK_PANEL
        ),
    ] = "160Mbps",
    seek: Annotated[
        str, typer.Option("--seek", metavar="5ms", help="Before each access to it.", rich_help_panel=NETWORK_PANEL)
    ] = "5ms",
    format: FormatOption = Format.TABLE,
    force: ForceOption = False,
) -> None:
    """Simulate a trace through a stage of sites, row by row, with partitions that stay and with partitions that move.

    Every row is queued, sent and processed at its site; policies of Flux move partitions with their state between sites
    while rows go on arriving. The static case of the same seed stands beside them. Defaults are those of the paper.

    Example: adapt replay flux web.trace --sites 8 --speedup 20000 --load 3@5s -o web.flux
    """
    from adapt.core.flux.replay.replay import Adapting, Conditions, policies_of
    from adapt.core.stage.conditions.settings import Costs, StageSettings, even_groups
    from adapt.core.stage.control.schedules import external_loads, slow_downs
    from adapt.core.stage.input.keyed_rows import Reading
    from adapt.core.units.amounts import seconds_of
    from adapt.traces.replay.flux import FluxOptions, read_faults, replay_flux_trace
    from adapt.traces.store.trace import open_trace
    from adapt.traces.store.whole import check_folder_free

    if out is not None:
        check_folder_free(out, force=force)
    if not 0 < speedup < float("inf"):
        raise UsageError(f"--speedup {speedup:g} is none; give a number above 0, or --arrivals saturate")
    by_state = state_of(state)
    costs = Costs(
        service_s=amount_of("--service-time", service_time, seconds_of),
        service_sd_s=amount_of("--service-sd", service_sd, seconds_of),
        produce_s=amount_of("--produce-time", produce_time, seconds_of),
        marshal_s=amount_of("--marshal-time", marshal_time, seconds_of),
        tuple_bytes=tuple_bytes,
    )
    network = network_of(latency, connection, state_bandwidth, state_bandwidth_all)
    cost_unit_s = None if cost_unit is None else above_0("--cost-unit", cost_unit)
    duration_s = None if duration is None else above_0("--duration", duration)
    opened = open_trace(trace)
    placed, plan_hash = _placed(opened, sites, plan, partitions, hash)
    settings = StageSettings(
        sites=placed.sites,
        owners=placed.owners,
        partition_of=even_groups(placed.sites * placed.a_site, placed.sites * placed.a_site),
        router=router,
        buffer_tuples=buffer,
        network=network,
        costs=costs,
        state_tuples=by_state if isinstance(by_state, int) else 0,
        disturbances=(*external_loads(load or (), placed.sites), *slow_downs(slow or (), placed.sites)),
        seed=seed,
        overload=None if shed is None else overload_of(shed, tau, least_shed, shed_form),
    )
    options = FluxOptions(
        reading=Reading(
            placed,
            speedup=speedup if arrivals is Arrivals.TRACE else None,
            cost_unit_s=cost_unit_s,
            by_stream=by_stream_of(opened, producers),
            until_s=float("inf") if duration_s is None else duration_s,
        ),
        adapting=Adapting(
            policies_of(policy or (), router),
            above_0("--min-collection", min_collection),
            min_imbalance,
            max_receiver,
        ),
        conditions=Conditions(
            _memory(memory or [], placed.sites, disk, seek), read_faults(faults, settings) if faults else None, standby
        ),
        state=None if isinstance(by_state, int) else by_state,
        duration_s=duration_s,
        interval_s=None if interval is None else above_0("--interval", interval),
        plan=plan_hash,
    )
    _warn_of_length(opened, options.reading.speedup, duration_s, options.adapting.min_collection_s)
    with stages() as progress:
        run = replay_flux_trace(opened, out, settings, options, force=force, command=command_line(), progress=progress)
    if out is not None:
        narrate_written(out)
    show(list(run.shown()), format, run.as_data())


def _placed(
    trace: "Trace", sites: int | None, plan: Path | None, partitions: int, hash: HashName
) -> "tuple[MiniPartitions, str | None]":
    """Where keys are at the start, and the content hash of the plan that says so."""
    from adapt.core.stage.conditions.settings import check_sites
    from adapt.core.stage.input.mini_partitions import MiniPartitions
    from adapt.traces.replay.flux import check_key_type
    from adapt.traces.store.plans import read_plan

    if plan is None:
        if sites is None:
            raise UsageError("give either --sites N, or --plan PLAN, whose channels are the sites")
        check_sites(sites)
        return MiniPartitions(sites, partitions, hash), None
    read = read_plan(plan)
    if sites is not None and sites != read.channels:
        raise UsageError(
            f"{plan} has {read.channels} channels, but --sites is {sites}; leave --sites out, or build another plan"
        )
    check_sites(read.channels)
    check_key_type(trace, read.key_type, plan)
    return MiniPartitions(read.channels, partitions, read.hash, read.partitioner()), read.content_hash()


def _memory(texts: list[str], sites: int, disk: str, seek: str) -> "Memory | None":
    from adapt.core.stage.control.schedules import memory_of_sites
    from adapt.core.stage.movement.spilling import Memory
    from adapt.core.units.amounts import bits_of, seconds_of

    site_bytes, changes = memory_of_sites(texts, sites)
    if site_bytes is None:
        return None
    return Memory(
        site_bytes,
        tuple(changes),
        disk_bytes_per_s=amount_of("--disk", disk, bits_of) / 8,
        seek_s=amount_of("--seek", seek, seconds_of),
    )


def _warn_of_length(trace: "Trace", speedup: float | None, duration_s: float | None, round_s: float) -> None:
    """Say when a replay is likely to take very long, since a controller decides in every round."""
    if speedup is None:
        return
    span_s = (trace.last_us - trace.first_us) / 1e6 / speedup
    rounds = min(span_s, duration_s or span_s) / max(round_s, 1e-9)
    if rounds > _MOST_ROUNDS:
        narrate(
            f"the trace lasts {span_s:,.0f} s at speed-up {speedup:g}, some {rounds:,.0f} rounds of a policy; a larger"
            " --speedup or --min-collection, or a --duration, is sooner done"
        )
