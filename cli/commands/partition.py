"""`adapt partition`: count keys, build plans, compare them, route by them, export them."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.commands.partition_evaluate import evaluate
from adapt.cli.commands.partition_export import export
from adapt.cli.options import completion
from adapt.cli.options.common import (
    EXPERT_PANEL,
    AllOption,
    CapacityOption,
    ChannelsRangeOption,
    ConfOption,
    CountedPath,
    EngineOption,
    ExactOption,
    ForceOption,
    HashOption,
    MasterOption,
    MaxMigrationOption,
    MaxParallelismOption,
    MeasureOption,
    MovesOption,
    PinOption,
    PinsOption,
    ResourcesOption,
    SigmaOption,
    ToleranceOption,
    TracePath,
    TrackKeysOption,
    TrackOption,
    UtilityOption,
    WeightOption,
    channel_counts,
    check_channels,
    command_line,
    sliding,
    spark_options,
)
from adapt.cli.options.named_keys import Limits
from adapt.cli.options.schemes import SchemeChoice
from adapt.cli.terminal.help import Command, Group
from adapt.cli.terminal.output import (
    Format,
    FormatOption,
    for_people,
    is_for_programs,
    narrate,
    narrate_written,
    show,
    verdict_of,
    written_out,
)
from adapt.cli.terminal.stages import stages
from adapt.core.counting.names import CountMethod
from adapt.core.engines.names import SCHEMES_BY_NAME, AnyScheme, Engine
from adapt.core.errors import UsageError, did_you_mean
from adapt.core.keys.names import HashName
from adapt.core.partitioning.schemes.names import (
    DEFAULT_CONSTRUCTION,
    Construction,
    Scheme,
    UtilityName,
)
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.stream import KeyType, Weight

if TYPE_CHECKING:
    from adapt.core.partitioning.measures.resources import Resources
    from adapt.traces.counting.count import Counting

app = typer.Typer(cls=Group, help="Count keys, build plans, compare them, route by them.", no_args_is_help=True)

KeyTypeOption = Annotated[
    KeyType | None,
    typer.Option("--key-type", help="How keys of a CSV are read; string if left out.", rich_help_panel=EXPERT_PANEL),
]
PlanPath = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan made by `adapt partition build`.")]


class Over(StrEnum):
    """What counts may be split by."""

    TIME = "time"
    STREAM = "stream"


COUNT_PANEL = "How keys are counted"


@app.command(cls=Command)
def count(
    trace: TracePath,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FREQ", help="Where to keep the counts.")] = None,
    weight: WeightOption = None,
    keys: Annotated[
        list[str] | None,
        typer.Option("--key", metavar="KEY", help="Show this key's interval too; repeatable.", show_default=False),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            metavar="COLUMN",
            help="Add up count, cost or bytes for the listed keys too, to build plans by; repeatable.",
            show_default=False,
        ),
    ] = None,
    over: Annotated[
        Over | None,
        typer.Option("--over", help="Also show hot keys over time, or count stream by stream.", show_default=False),
    ] = None,
    channels: Annotated[
        int, typer.Option("--channels", metavar="N", help="The most channels that the counts are to serve.")
    ] = 10,
    method: Annotated[
        CountMethod, typer.Option("--method", help="How to count.", rich_help_panel=COUNT_PANEL)
    ] = CountMethod.LOSSY,
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon",
            metavar="E",
            help="Most that a count may be too low, as a share of the total; 0.1 delta if left out.",
            rich_help_panel=COUNT_PANEL,
        ),
    ] = None,
    support: Annotated[
        float | None,
        typer.Option(
            "--support",
            metavar="S",
            help="List only keys that may have this share; over time, hot from it on.",
            rich_help_panel=COUNT_PANEL,
        ),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(
            "--window", metavar="1h|1000rows", help="What a sliding counter holds.", rich_help_panel=COUNT_PANEL
        ),
    ] = None,
    counters: Annotated[
        int,
        typer.Option(
            "--counters",
            metavar="X",
            help="Staggered counters of a sliding window, which holds up to 1/(X-1) more.",
            rich_help_panel=COUNT_PANEL,
        ),
    ] = 3,
    pane: Annotated[
        str | None,
        typer.Option(
            "--pane", metavar="1h|1000rows", help="Step of time for --over time.", rich_help_panel=COUNT_PANEL
        ),
    ] = None,
    engine: EngineOption = Engine.SPARK,
    tolerance: ToleranceOption = "1.2",
    resources: ResourcesOption = "LLL",
    sigma: SigmaOption = 0.1,
    track: TrackOption = None,
    all: AllOption = False,
    format: FormatOption = Format.TABLE,
    force: ForceOption = False,
    master: MasterOption = "local[*]",
    conf: ConfOption = [],  # noqa: B006 - typer makes a new list
) -> None:
    """Count the keys of a trace, and judge its skew.

    Lossy counting keeps the heavy keys, each within an interval, in little memory whatever the trace.

    Example: adapt partition count web.trace -o web.freq
    """
    from adapt.core.partitioning.measures.resources import Resources
    from adapt.core.units.row_or_time_span import Length
    from adapt.traces.counting.count import Counting
    from adapt.traces.counting.survey import Survey, survey
    from adapt.traces.store.frequencies import write_frequencies
    from adapt.traces.store.manifest import Provenance
    from adapt.traces.store.trace import open_trace
    from adapt.traces.store.whole import check_folder_free

    check_channels(channels)
    asked = Survey(
        Counting(
            method,
            epsilon,
            channels,
            Resources.parse(resources, tolerance, sigma),
            track,
            support,
            sliding(window, counters),
            weight,
        ),
        keys=tuple(keys or ()),
        over_time=over is Over.TIME,
        by_stream=over is Over.STREAM,
        pane=None if pane is None else Length.parse(pane, "pane"),
        measure=tuple(dict.fromkeys(name.strip() for each in measure or () for name in each.split(","))),
        engine=engine,
    )
    if out is not None:
        check_folder_free(out, force=force)
    opened = open_trace(trace)
    with stages() as progress:
        found = survey(opened, asked, spark_options=spark_options(master, conf), progress=progress)
    if out is not None:
        source = {"name": trace.name, "content_hash": opened.manifest.content_hash}
        parameters = asked.counting.parameters(found.frequencies)
        made = Provenance(command_line(), parameters, [source])
        write_frequencies(found.frequencies, out, made, answer=found.answer, force=force)
        narrate_written(out)
    tables = found.tables() if all or is_for_programs(format) else found.first_tables()
    show([for_people(table, format) for table in tables], format, found.as_data(), lead=[verdict_of(found.answer.lead)])


@app.command(cls=Command)
def build(
    source: CountedPath,
    channels: Annotated[int, typer.Option("--channels", metavar="N", help="Parallel channels to route to.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="PLAN", help="Where the plan goes.")] = None,
    scheme: Annotated[SchemeChoice, typer.Option("--scheme", help="How keys are placed.")] = Scheme.HYBRID,
    construction: Annotated[
        Construction, typer.Option("--construction", help="How heavy keys are placed.")
    ] = DEFAULT_CONSTRUCTION,
    previous: Annotated[
        Path | None, typer.Option("--from", metavar="PLAN", help="The plan in force, which the new one follows.")
    ] = None,
    weight: WeightOption = None,
    exact: ExactOption = False,
    engine: EngineOption = Engine.SPARK,
    tolerance: ToleranceOption = "1.2",
    resources: ResourcesOption = "LLL",
    measure: MeasureOption = None,
    sigma: SigmaOption = 0.1,
    utility: UtilityOption = UtilityName.APM,
    track: TrackOption = None,
    hash: HashOption = HashName.MURMUR3,
    track_keys: TrackKeysOption = None,
    capacity: CapacityOption = None,
    pin: PinOption = None,
    pins: PinsOption = None,
    max_migration: MaxMigrationOption = None,
    moves: MovesOption = None,
    max_parallelism: MaxParallelismOption = None,
    key_type: KeyTypeOption = None,
    optimum: Annotated[
        float | None,
        typer.Option(
            "--optimum",
            metavar="SECONDS",
            min=0.0,
            help="Search so long for the exact optimum, to compare with; for 5,000 pairs of a key and a channel or"
            " fewer (see --track).",
            rich_help_panel=EXPERT_PANEL,
            show_default=False,
        ),
    ] = None,
    all: AllOption = False,
    format: FormatOption = Format.TABLE,
    force: ForceOption = False,
    master: MasterOption = "local[*]",
    conf: ConfOption = [],  # noqa: B006 - typer makes a new list
) -> None:
    """Build one plan from counted keys.

    Example: adapt partition build web.trace --channels 8 -o web.plan
    """
    from adapt.core.partitioning.build import Recipe, build_plan
    from adapt.core.partitioning.constructions.tracking import counted_sentence, measured_sentences
    from adapt.core.partitioning.measures.resources import Resources
    from adapt.core.partitioning.model_error import model_error
    from adapt.core.partitioning.plans.plan import plan_to_data
    from adapt.core.partitioning.plans.plan_tables import explicit_keys_table, load_table, plan_first_table, plan_table
    from adapt.core.verdict.answering import answer_on
    from adapt.traces.counting.count_cache import counted, panes_of
    from adapt.traces.store.manifest import Provenance
    from adapt.traces.store.plans import read_plan, write_plan
    from adapt.traces.store.whole import check_free

    check_channels(channels)
    weighed = Resources.parse(resources, tolerance, sigma, measure or ())
    limits = Limits.parse([channels], capacity, pin, pins, max_migration, track, track_keys)
    if out is not None:
        check_free(out, force=force)
    before = None if previous is None else read_plan(previous)
    with stages() as progress:
        keys = counted(
            source,
            counting(exact, channels, weighed, track, weight),
            key_type=key_type,
            measure=weighed.sources,
            spark_options=spark_options(master, conf),
            progress=progress,
        )
        panes = panes_of(source, keys, spark_options=spark_options(master, conf), progress=progress)
    if not keys.frequencies.exact:
        narrate(counted_sentence(keys.frequencies, weighed, channels))
    for sentence in measured_sentences(keys.frequencies, weighed, channels):
        narrate(sentence)
    constraints, named = limits.constraints(keys.frequencies), limits.track_keys(keys.frequencies)
    plan = build_plan(
        keys.frequencies,
        scheme,
        channels,
        construction=construction,
        resources=weighed,
        utility=utility,
        track=track,
        previous=before,
        hash=hash,
        moves=moves,
        max_parallelism=max_parallelism,
        track_keys=named,
        constraints=constraints,
        trace=keys.fingerprint,
    )
    recipe = Recipe(
        scheme,
        construction,
        weighed,
        utility,
        track,
        hash,
        moves=moves,
        max_parallelism=max_parallelism,
        track_keys=named,
        constraints=constraints,
    )
    found = answer_on(
        keys.frequencies,
        engine,
        channels,
        weighed,
        panes=panes,
        capacities=constraints.unequal,
        max_parallelism=max_parallelism,
        plan=plan,
        before=before,
    )
    wrong = model_error(keys.frequencies, [recipe], channels, None if before is None else before.partitioner())
    against = []
    if optimum is not None:
        from adapt.core.partitioning.optimum.optimum import plan_against_optimum

        against = [plan_against_optimum(plan, keys.frequencies, recipe, before, optimum)]
    if out is not None:
        inputs = [keys.source, *([{"name": previous.name, "content_hash": plan.parent}] if previous else [])]
        made = Provenance(command_line(), dict(plan.parameters), inputs)
        write_plan(plan, out, made, answer=found, force=force)
        narrate_written(out)
    long = [for_people(table, format) for table in (load_table(plan), explicit_keys_table(plan))]
    document = plan_to_data(plan) | ({"optimum": against[0].records()} if against else {}) | wrong.as_data()
    if is_for_programs(format):
        tables = [plan_table(plan), *wrong.tables(), *against, *long]
    else:
        first = [for_people(table, format) for table in (*found.channels_tables(), plan_first_table(plan))]
        tables = [*first, *wrong.tables(), *against]
        tables += [plan_table(plan), *long, *found.more_tables()] if all else []
    show(tables, format, document | found.as_data(), lead=[verdict_of(found.lead)])


@app.command(cls=Command)
def compare(
    source: CountedPath,
    channels: ChannelsRangeOption,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Keeps the table, and a plan a scheme for the last count."),
    ] = None,
    schemes: Annotated[
        list[str] | None,
        typer.Option(
            "--scheme",
            help="Only this scheme: one of those of build, or pkg, d-choices, w-choices, which split keys; repeatable."
            " If left out, uniform, consistent, hybrid, and pkg and w-choices where whole keys cannot be even.",
            metavar="SCHEME",
            autocompletion=completion.schemes,
            show_default=False,
        ),
    ] = None,
    constructions: Annotated[
        list[Construction] | None,
        typer.Option(
            "--construction", help="Only this construction of the hybrid scheme; repeatable.", show_default=False
        ),
    ] = None,
    weight: WeightOption = None,
    exact: ExactOption = False,
    engine: EngineOption = Engine.SPARK,
    tolerance: ToleranceOption = "1.2",
    resources: ResourcesOption = "LLL",
    measure: MeasureOption = None,
    sigma: SigmaOption = 0.1,
    utility: UtilityOption = UtilityName.APM,
    track: TrackOption = None,
    hash: HashOption = HashName.MURMUR3,
    track_keys: TrackKeysOption = None,
    capacity: CapacityOption = None,
    pin: PinOption = None,
    pins: PinsOption = None,
    max_migration: MaxMigrationOption = None,
    moves: MovesOption = None,
    max_parallelism: MaxParallelismOption = None,
    key_type: KeyTypeOption = None,
    all: AllOption = False,
    format: FormatOption = Format.TABLE,
    force: ForceOption = False,
    master: MasterOption = "local[*]",
    conf: ConfOption = [],  # noqa: B006 - typer makes a new list
) -> None:
    """Compare every scheme over a chain of channel counts.

    Each step is built from the one before it and charged for what it moves; every ratio stands beside its floor.

    Example: adapt partition compare web.trace --channels 1:10 -o web.plans
    """
    from time import perf_counter

    from adapt.core.partitioning.build import Recipe
    from adapt.core.partitioning.compare import compare_schemes
    from adapt.core.partitioning.constructions.tracking import counted_sentence, measured_sentences
    from adapt.core.partitioning.measures.resources import Resources
    from adapt.core.partitioning.model_error import model_error
    from adapt.core.verdict.answering import answer_on
    from adapt.core.verdict.compared import at_channels, best_plan, told_of
    from adapt.traces.counting.count_cache import counted, panes_of
    from adapt.traces.store.comparisons import write_comparison
    from adapt.traces.store.manifest import Provenance
    from adapt.traces.store.whole import check_folder_free

    counts = channel_counts(channels)
    weighed = Resources.parse(resources, tolerance, sigma, measure or ())
    limits = Limits.parse(counts, capacity, pin, pins, max_migration, track, track_keys)
    if out is not None:
        check_folder_free(out, force=force)
    with stages() as progress:
        keys = counted(
            source,
            counting(exact, max(counts), weighed, track, weight),
            key_type=key_type,
            measure=weighed.sources,
            spark_options=spark_options(master, conf),
            progress=progress,
        )
        panes = panes_of(source, keys, spark_options=spark_options(master, conf), progress=progress)
        constraints, named = limits.constraints(keys.frequencies), limits.track_keys(keys.frequencies)
        progress("comparing", 0, 0)
        comparison = compare_schemes(
            keys.frequencies,
            counts,
            schemes=[named_scheme(name) for name in dict.fromkeys(schemes)] if schemes else None,
            constructions=tuple(dict.fromkeys(constructions)) if constructions else None,
            resources=weighed,
            utility=utility,
            track=track,
            hash=hash,
            moves=moves,
            max_parallelism=max_parallelism,
            track_keys=named,
            constraints=constraints,
            trace=keys.fingerprint,
            clock=perf_counter,
        )
        recipes = [
            Recipe(
                plan.scheme,
                plan.construction or DEFAULT_CONSTRUCTION,
                weighed,
                utility,
                track,
                hash,
                moves=moves,
                max_parallelism=plan.max_parallelism,
                track_keys=named,
                constraints=constraints,
            )
            for plan in comparison.plans
        ]
        wrong = model_error(keys.frequencies, recipes, counts[-1])
    table = comparison.table()
    found = answer_on(
        keys.frequencies,
        engine,
        max(counts),
        weighed,
        panes=panes,
        capacities=constraints.unequal,
        max_parallelism=max_parallelism,
        plan=best_plan(comparison.plans, max(counts), weighed.tolerance[2]),
    )
    narrate(counted_sentence(keys.frequencies, weighed, max(counts)))
    if constraints.given and not schemes:
        narrate(f"compared is what can honour {' and '.join(constraints.given)}")
    for sentence in measured_sentences(keys.frequencies, weighed, max(counts)):
        narrate(sentence)
    if out is not None:
        parameters = {
            "channels": counts,
            **keys.frequencies.as_counted(),
            **weighed.as_data(),
            "sigma": sigma,
            "utility": utility.value,
            "track": track,
            "hash": hash.value,
            **({} if max_parallelism is None else {"max_parallelism": max_parallelism}),
            **({} if named is None else {"track_keys": len(named)}),
            **constraints.parameters,
        }
        made = Provenance(command_line(), parameters, [keys.source])
        write_comparison(comparison, keys.frequencies, out, made, answer=found, force=force)
        narrate_written(out)
    document = {**comparison.as_data(), **found.as_data(), **keys.frequencies.as_counted()} | wrong.as_data()
    if is_for_programs(format):
        tables = [table, *wrong.tables()]
    else:
        first = [for_people(each, format) for each in found.channels_tables()]
        tables = [at_channels(table, max(counts)), *first, *wrong.tables()]
        tables += [table, *found.more_tables()] if all else []
    show(tables, format, document, lead=[verdict_of([*found.lead, *told_of(table, found.verdict)])])


@app.command(cls=Command)
def tolerance(
    channels: Annotated[int, typer.Option("--channels", metavar="N", help="Parallel channels.")] = 10,
    utilisation: Annotated[
        float | None,
        typer.Option(
            "--utilisation",
            metavar="U",
            help="No channel is to be utilised less than this, from 0 to 1, when one is full.",
            show_default=False,
        ),
    ] = None,
    total: Annotated[
        float | None,
        typer.Option("--total", metavar="X", help="What all channels need together, e.g. 10 (GB).", show_default=False),
    ] = None,
    capacity: Annotated[
        float | None,
        typer.Option("--capacity", metavar="Y", help="What one channel has, in the same unit.", show_default=False),
    ] = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Suggest a tolerance, from a utilisation to keep or from what a channel can hold.

    Example: adapt partition tolerance --channels 4 --total 10 --capacity 3
    """
    from adapt.core.partitioning.measures.tolerance import suggested_tolerances

    check_channels(channels)
    suggested = suggested_tolerances(channels, utilisation=utilisation, total=total, capacity=capacity)
    show(suggested, format, {"schema": "adapt.tolerance/1", "tolerances": suggested.records()})


@app.command(cls=Command)
def route(
    plan: PlanPath,
    keys: Annotated[
        Path | None, typer.Argument(metavar="KEYS", help="A file with a key a line; standard input if left out.")
    ] = None,
) -> None:
    """Say for each key its channel.

    Keys in, one a line; key, tab, channel out. Whole numbers are written in decimal, binary keys in hex.

    Example: adapt partition route web.plan keys.txt
    """
    from adapt.core.errors import BadInput
    from adapt.traces.routing import routed_lines
    from adapt.traces.store.plans import read_plan

    read = read_plan(plan)
    partitioner = read.partitioner()
    if keys is None or str(keys) == "-":
        if sys.stdin is None:
            raise UsageError("standard input is closed; give KEYS, a file with a key a line")
        lines, name = sys.stdin.buffer, "standard input"
    else:
        try:
            lines, name = keys.open("rb"), str(keys)
        except OSError as error:
            raise BadInput(f"{keys}: cannot be read: {error.strerror}") from error
    sys.stdout.flush()
    with lines:
        for told in routed_lines(lines, partitioner, read.key_type, name):
            with written_out():
                sys.stdout.buffer.write(told)


@app.command(cls=Command)
def diff(
    before: PlanPath,
    after: Annotated[Path, typer.Argument(metavar="PLAN", help="The plan to move to.")],
    source: CountedPath,
    weight: WeightOption = None,
    exact: ExactOption = False,
    resources: ResourcesOption = "LLL",
    measure: MeasureOption = None,
    tolerance: ToleranceOption = "1.2",
    key_type: KeyTypeOption = None,
    format: FormatOption = Format.TABLE,
    master: MasterOption = "local[*]",
    conf: ConfOption = [],  # noqa: B006 - typer makes a new list
) -> None:
    """Present the migration bill from one plan to another.

    Keys and state that move, from which channel to which, and the balance before and after.

    Example: adapt partition diff old.plan new.plan web.freq
    """
    from adapt.core.partitioning.constructions.tracking import counted_sentence, measured_sentences
    from adapt.core.partitioning.measures.resources import Resources
    from adapt.core.partitioning.plans.difference import plan_difference
    from adapt.traces.counting.count_cache import counted
    from adapt.traces.read_errors import readable
    from adapt.traces.store.plans import read_plan

    weighed = Resources.parse(resources, tolerance, measure=measure or ())
    first, second = read_plan(before), read_plan(after)
    with readable(source):
        is_csv = source.is_file()
    with stages() as progress:
        keys = counted(
            source,
            counting(exact, max(first.channels, second.channels), weighed, None, weight),
            key_type=key_type or (first.key_type if is_csv else None),
            measure=weighed.sources,
            spark_options=spark_options(master, conf),
            progress=progress,
        )
    if not keys.frequencies.exact:
        narrate(counted_sentence(keys.frequencies, weighed, second.channels))
    for sentence in measured_sentences(keys.frequencies, weighed, second.channels):
        narrate(sentence)
    difference = plan_difference(first, second, keys.frequencies, weighed)
    long = (for_people(table, format) for table in (difference.moves(), difference.heaviest))
    channels = [] if is_for_programs(format) else [for_people(difference.channels(), format)]
    show([*channels, difference.table(), *long], format, difference.as_data())


app.command(cls=Command)(evaluate)
app.command(cls=Command)(export)


def named_scheme(name: str) -> AnyScheme | Splitting:
    """The scheme or the way of splitting keys of a name that was typed.

    Raises:
        UsageError: there is none.
    """
    known: dict[str, AnyScheme | Splitting] = {**{each.value: each for each in Splitting}, **SCHEMES_BY_NAME}
    if name not in known:
        raise UsageError(f"there is no scheme {name!r}{did_you_mean(name, known)}")
    return known[name]


def counting(
    exact: bool, channels: int, resources: "Resources", track: int | None, weight: Weight | None
) -> "Counting":
    """How a trace is to be counted for a command that builds plans from it."""
    from adapt.traces.counting.count import Counting

    method = CountMethod.EXACT if exact else CountMethod.LOSSY
    return Counting(method, channels=channels, resources=resources, track=track, weight=weight)
