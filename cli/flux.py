"""`adapt replay flux`: a trace through a simulated stage of sites, without moves and with policies that move state."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options import ForceOption, HashOption, TracePath, command_line
from adapt.cli.output import Format, FormatOption, narrate, narrate_written, show
from adapt.cli.stages import stages
from adapt.core.errors import UsageError
from adapt.core.flux.names import FluxPolicy
from adapt.core.hashing.names import HashName
from adapt.core.stage.names import Arrivals, Router, SheddingForm

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapt.core.replay.mini_partitions import MiniPartitions
    from adapt.core.stage.memory import Memory
    from adapt.core.stage.settings import Network
    from adapt.core.stage.shed_factor import Overload
    from adapt.core.stream import Weight
    from adapt.traces.artefacts.trace import Trace

COSTS_PANEL = "What things cost"
NETWORK_PANEL = "Network and disk"
TROUBLE_PANEL = "What happens to sites"
SHED_PANEL = "What sites do when they fill up"
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
    speedup: Annotated[
        float, typer.Option("--speedup", metavar="X", help="Trace seconds that pass in a second of the stage.")
    ] = 1.0,
    duration: Annotated[
        str | None,
        typer.Option(
            "--duration", metavar="60s", help="Stop at this time of the stage; at the end of the trace if left out."
        ),
    ] = None,
    interval: Annotated[
        str | None,
        typer.Option("--interval", metavar="1s", help="How often to take down what the stage does."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="Of all that is drawn.")] = 0,
    router: Annotated[
        Router,
        typer.Option("--router", help="How rows find their site: one queue a connection, any site, or one buffer."),
    ] = Router.FLUX,
    buffer: Annotated[int, typer.Option("--buffer", metavar="N", help="Rows that a producer holds back.")] = 2048,
    state: Annotated[
        str,
        typer.Option(
            "--state", metavar="N|rows|bytes", help="State of a partition: N tuples, or what it has in the trace."
        ),
    ] = "10000",
    producers: Annotated[
        str | None,
        typer.Option(
            "--producers",
            metavar="row|stream",
            help="A row's producer by the hash of its number or of its stream; stream where the trace has streams.",
            show_default=False,
        ),
    ] = None,
    hash: HashOption = HashName.MURMUR3,
    load: Annotated[
        list[str] | None,
        typer.Option(
            "--load",
            metavar="3@5s-60s",
            help="Another process on a site takes 57% of its CPU; sites as 3, 0:7, 1,4 or all; 3@5s-60s:100us/50us sets"
            " its burst and sleep; repeatable.",
            rich_help_panel=TROUBLE_PANEL,
        ),
    ] = None,
    slow: Annotated[
        list[str] | None,
        typer.Option(
            "--slow",
            metavar="3@5s-60s:50%",
            help="A site runs at a part of its speed; 0% is a pause; repeatable.",
            rich_help_panel=TROUBLE_PANEL,
        ),
    ] = None,
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
    shed: Annotated[
        str | None,
        typer.Option(
            "--shed",
            metavar="5000@100ms",
            help="A site holds up to so many rows, each for so long, and drops the more of what comes the fuller it is;"
            " none if left out.",
            rich_help_panel=SHED_PANEL,
        ),
    ] = None,
    tau: Annotated[
        str,
        typer.Option(
            "--tau",
            metavar="T0,T1,T2,T3",
            help="Thresholds of how full a site is, rising; it drops from the third on, the others are for scaling.",
            rich_help_panel=SHED_PANEL,
        ),
    ] = "0.1,0.4,0.8,0.9",
    least_shed: Annotated[
        float,
        typer.Option("--least-shed", metavar="B", help="Part that it drops there.", rich_help_panel=SHED_PANEL),
    ] = 0.0,
    shed_form: Annotated[
        SheddingForm,
        typer.Option("--shed-form", help="How that rises to all at a full site.", rich_help_panel=SHED_PANEL),
    ] = SheddingForm.LINEAR,
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
    service_time: Annotated[
        str,
        typer.Option(
            "--service-time",
            metavar="45us",
            help="CPU to process a row, the mean of what is drawn.",
            rich_help_panel=COSTS_PANEL,
        ),
    ] = "45us",
    service_sd: Annotated[
        str, typer.Option("--service-sd", metavar="3us", help="Its deviation.", rich_help_panel=COSTS_PANEL)
    ] = "3us",
    cost_unit: Annotated[
        str | None,
        typer.Option(
            "--cost-unit",
            metavar="1us",
            help="CPU for 1 of a row's cost in the trace; nothing is drawn then.",
            rich_help_panel=COSTS_PANEL,
        ),
    ] = None,
    produce_time: Annotated[
        str,
        typer.Option("--produce-time", metavar="0.5us", help="CPU to make a row.", rich_help_panel=COSTS_PANEL),
    ] = "0.5us",
    marshal_time: Annotated[
        str,
        typer.Option(
            "--marshal-time",
            metavar="0.2us",
            help="CPU to take out or put in a tuple of state.",
            rich_help_panel=COSTS_PANEL,
        ),
    ] = "0.2us",
    tuple_bytes: Annotated[
        int,
        typer.Option("--tuple-bytes", metavar="B", help="Size of a tuple of state.", rich_help_panel=COSTS_PANEL),
    ] = 80,
    latency: Annotated[
        str,
        typer.Option(
            "--latency", metavar="70us", help="A packet is on its way so long.", rich_help_panel=NETWORK_PANEL
        ),
    ] = "70us",
    connection: Annotated[
        int,
        typer.Option("--connection", metavar="N", help="Rows that a connection holds.", rich_help_panel=NETWORK_PANEL),
    ] = 24,
    state_bandwidth: Annotated[
        str,
        typer.Option(
            "--state-bandwidth", metavar="250Mbps", help="For one partition on its way.", rich_help_panel=NETWORK_PANEL
        ),
    ] = "250Mbps",
    state_bandwidth_all: Annotated[
        str,
        typer.Option(
            "--state-bandwidth-all",
            metavar="500Mbps",
            help="For all of them together.",
            rich_help_panel=NETWORK_PANEL,
        ),
    ] = "500Mbps",
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
    from adapt.core.amounts import seconds_of
    from adapt.core.replay.flux import Adapting, Conditions, policies_of
    from adapt.core.replay.keyed_rows import Reading
    from adapt.core.stage.schedules import external_loads, slow_downs
    from adapt.core.stage.settings import Costs, StageSettings, even_groups
    from adapt.traces.artefacts.trace import open_trace
    from adapt.traces.artefacts.whole import check_folder_free
    from adapt.traces.flux_replaying import FluxOptions, read_faults, replay_flux_trace

    if out is not None:
        check_folder_free(out, force=force)
    if not 0 < speedup < float("inf"):
        raise UsageError(f"--speedup {speedup:g} is none; give a number above 0, or --arrivals saturate")
    by_state = _state(state)
    costs = Costs(
        service_s=_of("--service-time", service_time, seconds_of),
        service_sd_s=_of("--service-sd", service_sd, seconds_of),
        produce_s=_of("--produce-time", produce_time, seconds_of),
        marshal_s=_of("--marshal-time", marshal_time, seconds_of),
        tuple_bytes=tuple_bytes,
    )
    network = _network(latency, connection, state_bandwidth, state_bandwidth_all)
    cost_unit_s = None if cost_unit is None else _above_0("--cost-unit", cost_unit)
    duration_s = None if duration is None else _above_0("--duration", duration)
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
        overload=None if shed is None else _overload(shed, tau, least_shed, shed_form),
    )
    options = FluxOptions(
        reading=Reading(
            placed,
            speedup=speedup if arrivals is Arrivals.TRACE else None,
            cost_unit_s=cost_unit_s,
            by_stream=_by_stream(opened, producers),
            until_s=float("inf") if duration_s is None else duration_s,
        ),
        adapting=Adapting(
            policies_of(policy or (), router),
            _above_0("--min-collection", min_collection),
            min_imbalance,
            max_receiver,
        ),
        conditions=Conditions(
            _memory(memory or [], placed.sites, disk, seek), read_faults(faults, settings) if faults else None, standby
        ),
        state=None if isinstance(by_state, int) else by_state,
        duration_s=duration_s,
        interval_s=None if interval is None else _above_0("--interval", interval),
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
    from adapt.core.replay.mini_partitions import MiniPartitions
    from adapt.core.stage.settings import check_sites
    from adapt.traces.artefacts.plans import read_plan
    from adapt.traces.flux_replaying import check_key_type

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


def _network(latency: str, connection: int, state_bandwidth: str, state_bandwidth_all: str) -> "Network":
    from adapt.core.amounts import bits_of, seconds_of
    from adapt.core.stage.settings import Network

    return Network(
        latency_s=_of("--latency", latency, seconds_of),
        connection_tuples=connection,
        flow_bits_per_s=_of("--state-bandwidth", state_bandwidth, bits_of),
        state_bits_per_s=_of("--state-bandwidth-all", state_bandwidth_all, bits_of),
    )


def _memory(texts: list[str], sites: int, disk: str, seek: str) -> "Memory | None":
    from adapt.core.amounts import bits_of, seconds_of
    from adapt.core.stage.memory import Memory
    from adapt.core.stage.schedules import memory_of_sites

    site_bytes, changes = memory_of_sites(texts, sites)
    if site_bytes is None:
        return None
    return Memory(
        site_bytes,
        tuple(changes),
        disk_bytes_per_s=_of("--disk", disk, bits_of) / 8,
        seek_s=_of("--seek", seek, seconds_of),
    )


def _overload(text: str, tau: str, least: float, form: SheddingForm) -> "Overload":
    """How many rows a site holds, how long, and what it drops meanwhile."""
    from adapt.core.stage.shed_factor import Overload, ShedFactor, Thresholds

    held, at, window = text.partition("@")
    if not at or not (held.isdecimal() and len(held) < 8):
        raise UsageError(f"--shed {text!r} is not how many rows a site holds and for how long; give it as 5000@100ms")
    try:
        thresholds = Thresholds(*map(float, tau.split(",")))
    except UsageError as error:
        raise UsageError(f"--tau: {error}") from None
    except (TypeError, ValueError):
        raise UsageError(f"--tau {tau!r} is not up to four numbers with commas, such as 0.1,0.4,0.8,0.9") from None
    return Overload(ShedFactor(thresholds.tau2, least, form), int(held), _above_0("--shed", window))


def _state(text: str) -> "int | Weight":
    """So many tuples, or what of the trace decides."""
    from adapt.core.stream import Weight

    named = {"rows": Weight.COUNT, "bytes": Weight.BYTES}
    if text in named:
        return named[text]
    if not (text.isdecimal() and len(text) < 16):
        raise UsageError(f"--state {text!r} is neither a number of tuples nor one of rows, bytes")
    return int(text)


def _by_stream(trace: "Trace", producers: str | None) -> bool:
    if producers not in (None, "row", "stream"):
        raise UsageError(f"--producers {producers!r} is not known; give row or stream")
    return "stream" in trace.columns if producers is None else producers == "stream"


def _of(option: str, text: str, read: "Callable[[str], float]") -> float:
    """The amount that an option gives, or a refusal that names it."""
    try:
        return read(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from None


def _above_0(option: str, text: str) -> float:
    from adapt.core.amounts import seconds_of

    value = _of(option, text, seconds_of)
    if value == 0:
        raise UsageError(f"{option} {text} is no time; give one above 0")
    return value


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
