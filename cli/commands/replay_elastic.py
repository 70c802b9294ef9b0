"""`adapt replay elastic`: a trace through a simulated stage whose workers come and go."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options.common import ForceOption, HashOption, TracePath, command_line
from adapt.cli.options.join import JoinOption, JoinWindowOption, MatchTimeOption, join_of, sweep_of
from adapt.cli.options.schemes import SchemeChoice
from adapt.cli.options.stage import (
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
    thresholds_of,
)
from adapt.cli.terminal.output import Format, FormatOption, narrate_written, show
from adapt.cli.terminal.stages import stages
from adapt.core.elastic.policies.names import Alignment, ScalingPolicy, Signal
from adapt.core.errors import UsageError
from adapt.core.keys.names import HashName
from adapt.core.partitioning.schemes.names import DEFAULT_CONSTRUCTION, Construction, Scheme
from adapt.core.stage.conditions.names import Migrating, SheddingForm

if TYPE_CHECKING:
    from adapt.core.elastic.policies.scaler import Rebuild

SCALING_PANEL = "When workers come and go"
PLAN_PANEL = "Which worker has what"
DEFAULT_STATE = "10000"


def elastic(
    trace: TracePath,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="RUN", help="Where to keep the run.")] = None,
    pool: Annotated[int, typer.Option("--pool", metavar="N", help="All workers there are.")] = 16,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            metavar="M",
            help="Workers at the start; there are never fewer. What the mean rate asks for if left out.",
            show_default=False,
        ),
    ] = None,
    policy: Annotated[
        list[ScalingPolicy] | None,
        typer.Option(
            "--policy", help="What scales, beside the case of fixed workers; repeatable; thresholds if left out."
        ),
    ] = None,
    speedup: SpeedupOption = 1.0,
    duration: DurationOption = None,
    interval: IntervalOption = None,
    seed: SeedOption = 0,
    buffer: BufferOption = 2048,
    state: StateOption = DEFAULT_STATE,
    producers: ProducersOption = None,
    period: Annotated[
        str,
        typer.Option(
            "--period", metavar="1s", help="How often a policy looks at the workers.", rich_help_panel=SCALING_PANEL
        ),
    ] = "1s",
    tau: TauOption = "0.1,0.4,0.8,0.9",
    sweep: Annotated[
        str | None,
        typer.Option(
            "--sweep",
            metavar="tau1=0.2,0.4",
            help="Run all cases with each tau1, and show false shedding against idle workers and state that moves.",
            rich_help_panel=SCALING_PANEL,
        ),
    ] = None,
    signal: Annotated[
        Signal,
        typer.Option(
            "--signal",
            help="What thresholds are compared with: what workers hold (or work), or what is offered to them.",
            rich_help_panel=SCALING_PANEL,
        ),
    ] = Signal.HELD,
    hold_up: Annotated[
        str,
        typer.Option(
            "--hold-up", metavar="5s", help="More workers must be wanted so long.", rich_help_panel=SCALING_PANEL
        ),
    ] = "5s",
    hold_down: Annotated[
        str,
        typer.Option("--hold-down", metavar="30s", help="Fewer must be, so long.", rich_help_panel=SCALING_PANEL),
    ] = "30s",
    start: Annotated[
        str,
        typer.Option("--start", metavar="10s", help="A worker takes so long to start.", rich_help_panel=SCALING_PANEL),
    ] = "0s",
    utilization: Annotated[
        float,
        typer.Option(
            "--utilization",
            metavar="U",
            help="Share of the time that workers are to work, for ds2.",
            rich_help_panel=SCALING_PANEL,
        ),
    ] = 0.8,
    lag: Annotated[
        float,
        typer.Option(
            "--lag", metavar="ROWS", help="Rows that may wait for a worker, for lag.", rich_help_panel=SCALING_PANEL
        ),
    ] = 1000.0,
    alignment: Annotated[
        Alignment,
        typer.Option(
            "--alignment",
            help="Which numbers of workers there may be: any, or those that divide the partitions.",
            rich_help_panel=SCALING_PANEL,
        ),
    ] = Alignment.ANY,
    rebuild: Annotated[
        str | None,
        typer.Option(
            "--rebuild",
            metavar="60s|1.5|60s,1.5",
            help="Build the plan anew every so often, when the imbalance is above a limit, or both; never if left out.",
            rich_help_panel=PLAN_PANEL,
        ),
    ] = None,
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions",
            metavar="K",
            help="Partitions for each worker of the pool; each is placed and moves as a whole.",
            rich_help_panel=PLAN_PANEL,
        ),
    ] = 64,
    own_keys: Annotated[
        int,
        typer.Option(
            "--own-keys",
            metavar="H",
            help="The heaviest keys of the trace have a partition each.",
            rich_help_panel=PLAN_PANEL,
        ),
    ] = 0,
    scheme: Annotated[
        SchemeChoice, typer.Option("--scheme", help="How plans place partitions.", rich_help_panel=PLAN_PANEL)
    ] = Scheme.HYBRID,
    construction: Annotated[
        Construction,
        typer.Option("--construction", help="How they place the heavy ones.", rich_help_panel=PLAN_PANEL),
    ] = DEFAULT_CONSTRUCTION,
    ranges: Annotated[
        bool,
        typer.Option(
            "--ranges",
            help="Without a plan: each worker has a range of partitions, as consumers of Kafka have.",
            rich_help_panel=PLAN_PANEL,
        ),
    ] = False,
    window: Annotated[
        str,
        typer.Option(
            "--window", metavar="30s", help="Plans are built from the rows of so long.", rich_help_panel=PLAN_PANEL
        ),
    ] = "30s",
    migrate: Annotated[
        Migrating, typer.Option("--migrate", help="In which portions partitions move.", rich_help_panel=PLAN_PANEL)
    ] = Migrating.ALL,
    batch: Annotated[
        int, typer.Option("--batch", metavar="B", help="Partitions of a portion.", rich_help_panel=PLAN_PANEL)
    ] = 16,
    hash: HashOption = HashName.MURMUR3,
    join: JoinOption = None,
    join_window: JoinWindowOption = None,
    match_time: MatchTimeOption = None,
    load: LoadOption = None,
    slow: SlowOption = None,
    shed: ShedOption = None,
    least_shed: LeastShedOption = 0.0,
    shed_form: ShedFormOption = SheddingForm.LINEAR,
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
    format: FormatOption = Format.TABLE,
    force: ForceOption = False,
) -> None:
    """Simulate a trace through a stage whose workers come and go, row by row, with their state.

    A scale step builds a plan from the rows of late, and moves what it places elsewhere while rows go on arriving.
    Fixed workers of the same seed stand beside it. With --shed workers hold rows, and thresholds are of how full they
    are; without it, of how much of the time they work. With --join two streams are joined, and what the window holds is
    the state. All times but the trace's own are of the stage.

    Example: adapt replay elastic web.trace --pool 12 --speedup 20000 -o web.elastic
    """
    from adapt.core.elastic.policies.placements import Counting
    from adapt.core.elastic.policies.registry import Chosen
    from adapt.core.elastic.policies.scaler import Patience
    from adapt.core.elastic.replay.replay import Elastic
    from adapt.core.partitioning.build import Recipe
    from adapt.core.stage.conditions.settings import Costs, StageSettings, check_sites, even_groups
    from adapt.core.stage.control.schedules import external_loads, slow_downs
    from adapt.core.stage.control.workers import Migration
    from adapt.core.stage.input.keyed_rows import Reading
    from adapt.core.stage.input.mini_partitions import MiniPartitions
    from adapt.core.units.amounts import seconds_of
    from adapt.traces.replay.elastic import ElasticOptions, replay_elastic_trace
    from adapt.traces.store.trace import open_trace
    from adapt.traces.store.whole import check_folder_free

    if out is not None:
        check_folder_free(out, force=force)
    if not 0 < speedup < float("inf"):
        raise UsageError(f"--speedup {speedup:g} is none; give a number above 0")
    check_sites(pool)
    joined = join_of(join, join_window, match_time)
    by_state = state_of(state)
    if joined is not None and state != DEFAULT_STATE:
        raise UsageError(f"--state {state}: the state of a join is what its window holds; leave --state or --join out")
    placed = MiniPartitions(pool, partitions, hash)
    duration_s = None if duration is None else above_0("--duration", duration)
    settings = StageSettings(
        sites=pool,
        owners=placed.owners,
        partition_of=even_groups(pool * partitions, pool * partitions),
        buffer_tuples=buffer,
        network=network_of(latency, connection, state_bandwidth, state_bandwidth_all),
        costs=Costs(
            service_s=amount_of("--service-time", service_time, seconds_of),
            service_sd_s=amount_of("--service-sd", service_sd, seconds_of),
            produce_s=amount_of("--produce-time", produce_time, seconds_of),
            marshal_s=amount_of("--marshal-time", marshal_time, seconds_of),
            tuple_bytes=tuple_bytes,
        ),
        state_tuples=by_state if isinstance(by_state, int) else 0,
        disturbances=(*external_loads(load or (), pool), *slow_downs(slow or (), pool)),
        seed=seed,
        overload=None
        if shed is None
        else overload_of(shed, tau, least_shed, shed_form, None if joined is None else joined.window / 1e6 / speedup),
    )
    if ranges and own_keys:
        raise UsageError("ranges know nothing of heavy keys; leave --ranges or --own-keys out")
    hold_up_s = above_0("--hold-up", hold_up)
    scaled = Elastic(
        pool=pool,
        least=workers,
        policies=tuple(policy or [ScalingPolicy.THRESHOLDS]),
        chosen=Chosen(thresholds_of(tau), signal, None, utilization, lag),
        patience=Patience(hold_up_s, above_0("--hold-down", hold_down)),
        rebuild=_rebuild(rebuild, hold_up_s),
        alignment=alignment,
        recipe=None if ranges else Recipe(scheme, construction, hash=hash),
        counting=Counting(above_0("--window", window)),
        period_s=above_0("--period", period),
        migration=Migration(migrate, batch),
        start_s=amount_of("--start", start, seconds_of),
        sweep=sweep_of(sweep),
    )
    opened = open_trace(trace)
    options = ElasticOptions(
        reading=Reading(
            placed,
            speedup=speedup,
            cost_unit_s=None if cost_unit is None else above_0("--cost-unit", cost_unit),
            by_stream=by_stream_of(opened, producers),
            until_s=float("inf") if duration_s is None else duration_s,
        ),
        elastic=scaled,
        state=None if isinstance(by_state, int) else by_state,
        duration_s=duration_s,
        interval_s=None if interval is None else above_0("--interval", interval),
        own_keys=own_keys,
        join=joined,
        side=join or "",
    )
    with stages() as progress:
        run = replay_elastic_trace(
            opened, out, settings, options, force=force, command=command_line(), progress=progress
        )
    if out is not None:
        narrate_written(out)
    show(list(run.shown()), format, run.as_data())


def _rebuild(text: str | None, rest_s: float) -> "Rebuild":
    """When the plan is built anew: a time, a limit of imbalance, or both."""
    from adapt.core.elastic.policies.scaler import Rebuild

    every_s: float | None = None
    limit: float | None = None
    for part in (part.strip() for part in (text or "").split(",") if text is not None):
        try:
            limit = float(part)
        except ValueError:
            every_s = above_0("--rebuild", part)
    return Rebuild(every_s, limit, rest_s)
