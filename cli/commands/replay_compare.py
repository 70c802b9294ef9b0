"""`adapt replay compare`: several mechanisms on one trace, with one cost model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options import completion
from adapt.cli.options.common import (
    SPARK_PANEL,
    ConfOption,
    ForceOption,
    HashOption,
    TracePath,
    command_line,
    spark_options,
)
from adapt.cli.options.stage import (
    ConnectionOption,
    CostUnitOption,
    DurationOption,
    IntervalOption,
    LatencyOption,
    LeastShedOption,
    MarshalTimeOption,
    ProducersOption,
    ProduceTimeOption,
    SeedOption,
    ServiceSdOption,
    ServiceTimeOption,
    ShedFormOption,
    ShedOption,
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
from adapt.cli.terminal.output import Format, FormatOption, is_for_programs, narrate, narrate_written, show
from adapt.cli.terminal.stages import stages
from adapt.core.errors import UsageError
from adapt.core.keys.names import HashName
from adapt.core.stage.conditions.names import SheddingForm

if TYPE_CHECKING:
    from adapt.core.mechanisms.scenarios import Scenario

WHICH_PANEL = "What is compared"
TIMES_PANEL = "When mechanisms act; what is left out follows from the length of the replay"


def compare(
    trace: TracePath,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="RUN", help="Where to keep the comparison, with a run for each scenario."),
    ] = None,
    channels: Annotated[int, typer.Option("--channels", metavar="N", help="Where the number of workers is fixed.")] = 8,
    scenario: Annotated[
        list[str] | None,
        typer.Option(
            "--scenario",
            metavar="NAME",
            autocompletion=completion.scenarios,
            help="What to compare with static-uniform; repeatable; all if left out.",
            rich_help_panel=WHICH_PANEL,
        ),
    ] = None,
    scenarios: Annotated[
        Path | None,
        typer.Option(
            "--scenarios",
            metavar="FILE.toml",
            help="Scenarios of your own, each a [[scenario]].",
            rich_help_panel=WHICH_PANEL,
        ),
    ] = None,
    sustainable: Annotated[
        bool,
        typer.Option(
            "--sustainable",
            help="Also find the largest rate that each sustains, with half the channels, these, and twice as many, and"
            " from that the workers needed against load; takes some thirty times as long.",
            rich_help_panel=WHICH_PANEL,
        ),
    ] = False,
    offered: Annotated[
        float,
        typer.Option(
            "--offered",
            metavar="X",
            help="Replay at the speed at which the busiest channel of static-uniform has X times the work that it can"
            " do.",
        ),
    ] = 1.2,
    speedup: Annotated[
        float | None,
        typer.Option(
            "--speedup",
            metavar="X",
            help="Or at this one: trace seconds that pass in a second of the stage.",
            show_default=False,
        ),
    ] = None,
    pool: Annotated[
        int | None,
        typer.Option(
            "--pool", metavar="P", help="All workers, where they come and go; 2N if left out.", show_default=False
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            metavar="M",
            help="Those at the start, and at least; too few for the stream if left out.",
            show_default=False,
        ),
    ] = None,
    partitions: Annotated[
        int, typer.Option("--partitions", metavar="K", help="Partitions of a channel; each moves as a whole.")
    ] = 64,
    duration: DurationOption = None,
    interval: IntervalOption = None,
    seed: SeedOption = 0,
    buffer: Annotated[int, typer.Option("--buffer", metavar="N", help="Rows that a producer holds back.")] = 240,
    state: StateOption = "rows",
    producers: ProducersOption = None,
    hash: HashOption = HashName.MURMUR3,
    period: Annotated[
        str | None,
        typer.Option(
            "--period",
            metavar="1s",
            help="How often policies look at workers, and parts of split keys are merged; 1/100 of the replay.",
            rich_help_panel=TIMES_PANEL,
        ),
    ] = None,
    hold_up: Annotated[
        str | None,
        typer.Option(
            "--hold-up", metavar="2s", help="More workers must be wanted so long.", rich_help_panel=TIMES_PANEL
        ),
    ] = None,
    hold_down: Annotated[
        str | None,
        typer.Option("--hold-down", metavar="10s", help="Fewer must be, so long.", rich_help_panel=TIMES_PANEL),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(
            "--window", metavar="10s", help="Plans are built from the rows of so long.", rich_help_panel=TIMES_PANEL
        ),
    ] = None,
    rebuild: Annotated[
        str | None,
        typer.Option("--rebuild", metavar="10s", help="How often plans are built anew.", rich_help_panel=TIMES_PANEL),
    ] = None,
    shed: ShedOption = None,
    tau: TauOption = "0.1,0.4,0.8,0.9",
    least_shed: LeastShedOption = 0.0,
    shed_form: ShedFormOption = SheddingForm.LINEAR,
    service_time: ServiceTimeOption = "1ms",
    service_sd: ServiceSdOption = "0",
    cost_unit: CostUnitOption = None,
    produce_time: ProduceTimeOption = "0.5us",
    marshal_time: MarshalTimeOption = "0.2us",
    tuple_bytes: TupleBytesOption = 80,
    latency: LatencyOption = "70us",
    connection: ConnectionOption = 24,
    state_bandwidth: StateBandwidthOption = "250Mbps",
    state_bandwidth_all: StateBandwidthAllOption = "500Mbps",
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", metavar="J", help="Scenarios at a time on this machine; one a core if left out.", min=1),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            "--master",
            metavar="URL",
            help="Run each scenario as a task of this Spark.",
            rich_help_panel=SPARK_PANEL,
            envvar="ADAPT_MASTER",
            show_default=False,
        ),
    ] = None,
    conf: ConfOption = [],  # noqa: B006 - typer makes a new list
    format: FormatOption = Format.TABLE,
    force: ForceOption = False,
) -> None:
    """Run several mechanisms on one trace with one cost model, and say what to do.

    Static placements, key splitting, Flux, plans built anew, elastic workers, shedding and combinations of them, on one
    simulated stage. Each is a run of its own; one that is interrupted goes on with those that are missing when the
    same command is given again.

    Example: adapt replay compare web.trace --channels 8 -o web.run
    """
    from adapt.core.mechanisms.cost_model import Wanted
    from adapt.core.stage.conditions.settings import Costs
    from adapt.core.units.amounts import seconds_of
    from adapt.traces.replay.compare import ComparingOptions, compare_on_trace
    from adapt.traces.store.trace import open_trace
    from adapt.traces.store.whole import check_folder_free

    if out is not None:
        check_folder_free(out, force=force)
    compared = _scenarios(scenario or [], scenarios)
    if conf and master is None:
        raise UsageError("--conf is for Spark; say with --master where it runs")

    def time(option: str, text: str | None) -> float | None:
        return None if text is None else above_0(option, text)

    opened = open_trace(trace)
    wanted = Wanted(
        channels=channels,
        pool=pool,
        least=workers,
        a_site=partitions,
        speedup=speedup,
        offered=offered,
        period_s=time("--period", period),
        hold_up_s=time("--hold-up", hold_up),
        hold_down_s=time("--hold-down", hold_down),
        window_s=time("--window", window),
        rebuild_s=time("--rebuild", rebuild),
        interval_s=time("--interval", interval),
        thresholds=thresholds_of(tau),
        overload=None if shed is None else overload_of(shed, tau, least_shed, shed_form),
        least_shed=least_shed,
        form=shed_form,
        costs=Costs(
            service_s=amount_of("--service-time", service_time, seconds_of),
            service_sd_s=amount_of("--service-sd", service_sd, seconds_of),
            produce_s=amount_of("--produce-time", produce_time, seconds_of),
            marshal_s=amount_of("--marshal-time", marshal_time, seconds_of),
            tuple_bytes=tuple_bytes,
        ),
        network=network_of(latency, connection, state_bandwidth, state_bandwidth_all),
        state=state_of(state),
        buffer_tuples=buffer,
        cost_unit_s=time("--cost-unit", cost_unit),
        by_stream=by_stream_of(opened, producers),
        duration_s=time("--duration", duration),
        hash=hash,
        seed=seed,
    )
    options = ComparingOptions(
        wanted,
        compared,
        (max(2, channels // 2), channels, 2 * channels) if sustainable else (),
        jobs,
        None if master is None else spark_options(master, conf),
    )
    try:
        with stages() as progress:
            run = compare_on_trace(opened, out, options, force=force, command=command_line(), progress=progress)
    except KeyboardInterrupt:
        if out is not None:
            narrate("what is done is kept: the same command goes on with the scenarios that are missing")
        raise
    if out is not None:
        narrate_written(out)
    tables = list(run.tables().values()) if is_for_programs(format) else run.shown()
    show(tables, format, run.as_data(), lead=[["What to do", str(run.summary().records()[0]["verdict"])]])


def _scenarios(names: list[str], file: Path | None) -> "tuple[Scenario, ...]":
    """What is compared: what was named, what a file has, or all there is."""
    from adapt.core.mechanisms.scenarios import chosen
    from adapt.traces.replay.compare import read_scenario_file

    return chosen(names, () if file is None else read_scenario_file(file))
