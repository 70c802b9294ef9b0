"""`adapt verdict`: from a raw file to what to do about skew."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adapt.cli.options.artefacts import stream_typed
from adapt.cli.options.channels import check_channels
from adapt.cli.options.groups import Several, setting, short_help
from adapt.cli.options.loads import GoalOptions
from adapt.cli.options.mapping import GivenOptions, typed_of
from adapt.cli.options.placement import Today
from adapt.cli.options.result import Output
from adapt.cli.options.source import CleaningOptions, FormatOptions, MappingOptions, RawOptions, TableOptions
from adapt.cli.options.spark import RunnerOptions
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.narration import narrate_guesses, narrate_keys
from adapt.cli.terminal.output import narrate, narrate_written, show, verdict_of
from adapt.cli.terminal.stages import stages
from adapt.cli.terminal.terminal import NEXT
from adapt.core.engines.names import AnyScheme, Engine
from adapt.core.errors import EnvironmentFailure, UsageError
from adapt.traces.locations.location import location
from adapt.traces.sources.names import FormatName

if TYPE_CHECKING:
    from adapt.core.joins.answer import JoinVerdict
    from adapt.core.partitioning.plans.plan import Plan
    from adapt.core.verdict.answer import Answer
    from adapt.core.verdict.verdict import Verdict
    from adapt.traces.counting.count_cache import Counted
    from adapt.traces.spark.progress import Progress
    from adapt.traces.spark.session import Spark
    from adapt.traces.store.trace import Trace
    from adapt.traces.units.judging import UnitsVerdict

SCHEMA = "adapt.verdict/3"


@dataclass(frozen=True, slots=True)
class KeptOutput(Output):
    """Output of a verdict, with the kept trace and the plan."""

    force: bool = setting(False, "Overwrite the output.", None, "--force")


@short_help(
    *("channels", "key", "engine", "time", "max_imbalance", "max_migration", "max_pins", "mergeable"),
    *("current", "out", "all", "format", "force"),
)
def verdict(
    context: typer.Context,
    *,
    source: Annotated[
        tuple[str, ...],
        typer.Argument(
            metavar="SOURCE|TRACE", help="Raw files, a folder or glob; or a trace, or several as one stream."
        ),
        Several(str, tuple),
    ] = (),
    channels: int | None = setting(None, "Number of workers. Required, but for metrics.", "N"),
    out: Path | None = setting(None, "Trace to keep (default: NAME.trace in this folder).", "TRACE", "--out", "-o"),
    current: Path | None = setting(None, "Current plan, judged instead of the engine.", "PLAN", "--from"),
    today: Today,
    limits: GoalOptions,
    output: KeptOutput,
    raw: RawOptions,
    mapping: MappingOptions,
    table: TableOptions,
    spark: RunnerOptions,
) -> "Answer | UnitsVerdict | JoinVerdict":
    """Say what to do about skew, judged on later windows.

    Nothing, pin keys, split keys, or use another key. A plan is built from past windows of your stream and judged
    on later ones. The trace is kept, and used again while the source and its options stay as they are; the plan is
    written as NAME.recommended.plan, and replaces one for other channels or another engine only with --force. With a
    limit of migration or pins, it is the best plan within that limit.

    Example: adapt verdict access.log --key host --engine kafka --channels 8
    """
    source = tuple(table.sources(source))
    if raw.join_with:
        if today.engine is not Engine.SPARK:
            raise UsageError(f"--join-with judges joins in Spark, not in {today.engine}; omit --engine")
        from adapt.cli.commands.joining import join_verdict
        from adapt.traces.sources.frames import is_frame

        of_others = typed_of(context, [*_NOT_OF_JOINS, *asdict(mapping)])
        for name in sorted(of_others - {"key", "out" if is_frame(source[0]) else ""}):
            option = {"current": "from"}.get(name, name.strip("_").replace("_", "-"))
            raise UsageError(f"--{option} has no effect with --join-with; omit one of them")
        return join_verdict(source, mapping.key, raw, channels, limits.max_imbalance, spark, output.format)
    given_engine = today.engine if typed_of(context, ["engine"]) and isinstance(today.engine, Engine) else None
    units = None if current else _units(source, raw, mapping.key, today, given_engine, channels, limits.max_imbalance)
    if units is not None:
        limited = ["max_migration", "max_pins", "mergeable", "max_rejects", "source_format"]
        if without := sorted(typed_of(context, [*limited, *asdict(mapping)]) - {"key"}):
            option = f"--{without[0].strip('_').replace('_', '-')}"
            raise UsageError(f"{source[0]} holds metrics by unit, where {option} has no effect; omit it")
        narrate_guesses(units.series.notes)
        if out is not None:
            from adapt.traces.store.atomic import write_whole
            from adapt.traces.store.tables import packed

            write_whole(out, packed(units.series.table()), force=output.force)
            narrate_written(out)
        lead = [verdict_of(units.said)]
        show(units.displayed(every=output.all), output.format, units.as_data(), lead=lead, code=units.code)
        return units
    if channels is None:
        raise UsageError("--channels is required: the number of workers")
    from adapt.core.engines.rekey.pasted import pyspark_code
    from adapt.core.keys.names import HashName
    from adapt.core.lint.evidence import sample_effect
    from adapt.core.lint.findings import judged, judged_counts
    from adapt.core.partitioning.build import Recipe
    from adapt.core.partitioning.schemes.consistent import DEFAULT_REPLICAS
    from adapt.core.verdict.answering import answer_on, hashers_today, judged_placement, today_of
    from adapt.core.verdict.first_screen import Status, first_lines, first_tables, next_command, status_of
    from adapt.traces.counting.count import Counting
    from adapt.traces.counting.count_cache import counted, panes_of
    from adapt.traces.counting.partitions import audited
    from adapt.traces.counting.population import population_of, two_phase
    from adapt.traces.sources.frames import is_spark_frame
    from adapt.traces.sources.reading.records import quoted_name
    from adapt.traces.store.manifest import Provenance
    from adapt.traces.store.plans import read_plan, write_plan
    from adapt.traces.store.trace import open_trace

    check_channels(channels)
    goal = limits.goal(channels, shows_frontier=True)
    engine = today.engine
    if today.replicas is not None and current is not None:
        raise UsageError(
            f"{current} has a ring of its own; omit --engine {engine}:replicas={today.replicas}, or --from"
        )
    before, options = None if current is None else read_plan(current), spark.options()
    if before is not None and typed_of(context, ["engine"]) and before.hashing is not engine:
        raise UsageError(f"{current} is a plan over {before.hashing}, not {engine}; leave out --engine or --from")
    with stages() as progress:
        reading = {
            **asdict(FormatOptions()),
            "format": raw.source_format,
            **asdict(CleaningOptions()),
            **asdict(mapping),
        }
        reading["max_rejects"] = raw.max_rejects
        typed = typed_of(context, ["max_rejects", *asdict(mapping)])
        given = GivenOptions.over_file(reading, typed, mapping.mapping)
        name = _named(source[0])
        path = out or Path(f"{_name(name)}.counts.parquet" if table.is_given else name)
        keys, trace, audit = _counts(source, path, given, raw.count, spark, force=output.force), None, None
        if keys is None:
            path = _kept_trace(source, out, given, spark, progress, force=output.force)
            trace = open_trace(path)
            given.options.max_rejects.check(str(path), trace.reading)
            goal = replace(goal, sample_effect=sample_effect(trace.profile))
            keys = counted(path, Counting(channels=channels), spark_options=options, progress=progress)
            audit = audited(trace, keys.frequencies, channels, spark_options=options, progress=progress)
        panes = panes_of(keys, spark_options=options, progress=progress)
        recipe = Recipe(
            hash=today.hash or HashName.MURMUR3,
            replicas=today.replicas or DEFAULT_REPLICAS,
            max_parallelism=today.max_parallelism,
        )
        is_given = bool(typed_of(context, ["engine"]))
        if audit is not None:
            if audit.placement is not None and not is_given:
                engine = Engine(audit.placement.hashing)
            audit = replace(audit, judged=judged_placement(audit, engine, channels, before, is_given=is_given))
        narrate_keys(path, engine if before is None else before.hashing)
        hashers = hashers_today(engine, channels, recipe, keys.frequencies.key_type, before)
        population = population_of(
            keys.trace, keys.frequencies, [hashers], [before], spark_options=options, progress=progress
        )
        answer = partial(
            answer_on,
            *(population, engine, channels, recipe),
            panes=panes,
            current=before if is_given or before is not None else audit,
            trace=keys.fingerprint,
        )
        found, code = answer(goal=goal), ""
        if engine is Engine.SPARK and (is_given or table.is_given or is_spark_frame(source[0])):
            spreads = found.verdict is not None and found.verdict.pins_nothing and found.verdict.if_mergeable
            planned = answer(goal=replace(goal, mergeable=True)) if spreads else found
            key = quoted_name(keys.key) if trace is None else given.values["key"] or keys.key
            code = "" if planned.recommended is None else pyspark_code(planned.recommended, key)
        found = replace(found, audit=audit, reading=None if trace is None else trace.reading, pasted=code)
        if trace is not None and found.verdict is not None and before is None:
            is_alike = given.typed <= _AS_WHICH_KEY and given.file is None and raw.source_format is FormatName.AUTO
            beside, time = source if is_alike else (), given.values["time"] or ""
            other = _by_another_key(found.verdict, trace, beside, engine, time, options, progress)
            found = replace(found, verdict=other)
        uneven, phases = found.verdict if status_of(found.verdict) is not Status.FINE else None, None
        if trace is not None and audit is None and uneven is not None and goal.mergeable:
            now, _ = today_of(engine, channels, recipe, before, keys.frequencies.key_type)
            phases = two_phase(trace, now.partitioner(), engine if before is None else before.hashing)
            found = replace(found, verdict=uneven.beside(phases.remedy(uneven.out_of_sample)))
    plan = path.with_name(f"{_name(path.name) if trace is None else path.name.removesuffix('.trace')}.recommended.plan")
    if found.recommended is not None:
        if not output.force:
            _check_same_question(plan, found.recommended)
        made = Provenance(command_line(), dict(found.recommended.parameters), [keys.source], runner=keys.runner)
        write_plan(found.recommended, plan, made, answer=found, force=True)
        narrate_written(plan)
    findings = judged_counts(keys.frequencies) if trace is None else judged(trace.profile) or []
    own = {} if trace is not None else {"count": raw.count, **{name: given.values[name] for name in _OF_COUNTS & typed}}
    read = "".join(
        f" --{name.strip('_').replace('_', '-')} {quote(text)}" for name, text in sorted(own.items()) if text
    )
    following = next_command(found.verdict, str(path), str(plan), channels, read)
    document = {
        "schema": SCHEMA,
        "status": status_of(found.verdict).value,
        **found.as_data(),
        **keys.frequencies.as_counted(),
        "lint": [finding.as_data() for finding in findings],
        "trace": str(path),
        "plan": None if found.recommended is None else str(plan),
        "next": following,
        "code": found.pasted,
        "two_phase": None if phases is None else phases.as_data(),
    }
    tables = first_tables(found, NEXT + following, every=output.all)
    tables += found.more_tables()[1:] if output.all else []
    tables += phases.tables() if output.all and phases is not None else []
    lines = [*first_lines(found, findings), *([] if phases is None else [phases.sentence])]
    show(tables, output.format, document, lead=[verdict_of(lines)], code=found.pasted)
    return found


_AS_WHICH_KEY = {"key", "time", "max_rejects", "keep", "cost", "cost_unit", "bytes_"}
"""Options with which `advise which-key` reads a source as this command does."""


def _by_another_key(
    verdict: "Verdict",
    trace: "Trace",
    source: Sequence[Any],
    engine: AnyScheme,
    time: str,
    spark: "Spark",
    progress: "Progress",
) -> "Verdict":
    """The verdict with the best other key, and the command that judges others.

    Args:
        source: What the trace was made from; empty if `advise which-key` does not read it alike.
    """
    from adapt.core.verdict.first_screen import which_key_command
    from adapt.core.verdict.remedies import Way
    from adapt.traces.locations.location import TOPIC_SCHEME
    from adapt.traces.series import traces_of
    from adapt.traces.which_key import AUTO, Question, columns_of, judged_beside, of_another_key

    if not verdict.needs_another_key:
        return verdict
    paths = [each for each in source if isinstance(each, str)]
    if paths and (paths[0].startswith(TOPIC_SCHEME) or all(map(traces_of, map(location, paths)))):
        source, paths = (), []
    is_raw = bool(paths) and len(columns_of(trace)) == 1
    command = which_key_command(verdict, " ".join(map(quote, paths if is_raw else [str(trace.path)])))
    command += f" --time {quote(time)}" if is_raw and time else ""
    judged = None
    if isinstance(engine, Engine):
        question = Question(AUTO, (), engine, verdict.channels, time)
        judged = judged_beside(trace, source, question, spark, progress)
    remedies = []
    for each in verdict.remedies:
        if each.way is Way.KEY:
            each = replace(each, command=command)
            each = each if judged is None else of_another_key(each, judged, verdict.judged[0])
        remedies.append(each)
    return replace(verdict, remedies=tuple(remedies))


def _units(
    source: Sequence[Any],
    raw: RawOptions,
    labels: str | None,
    today: Today,
    engine: Engine | None,
    channels: int | None,
    max_imbalance: float,
) -> "UnitsVerdict | None":
    """The verdict on metrics by unit; None for rows and counts."""
    from adapt.traces.units.reading import units_of

    named = tuple(each.strip() for each in (labels or "").split(",") if each.strip())
    one = source[0] if len(source) == 1 and isinstance(source[0], str) else ""
    samples = units_of(one, raw.count, named) if one else None
    if samples is None:
        if raw.keys is not None:
            raise UsageError("--keys is for metrics by unit, which the source does not hold; omit it")
        return None
    from adapt.traces.units.judging import Asked, judge_units

    asked = Asked(
        engine=engine,
        keys=raw.keys,
        max_parallelism=today.max_parallelism,
        workers=channels,
        max_imbalance=max_imbalance,
    )
    return judge_units(one, samples, asked)


def _counts(
    source: Sequence[Any], out: Path, given: GivenOptions, count: str, spark: RunnerOptions, *, force: bool
) -> "Counted | None":
    """Counted keys, or those of a table of keys and counts; None for rows.

    Args:
        out: File of the counts of a query, to be kept.
    """
    from adapt.traces.counting.count_cache import counted, of_table
    from adapt.traces.counting.counts_table import count_column, has_counts, read_counts
    from adapt.traces.sources.frames import Query, is_frame
    from adapt.traces.spark.session import session_in_zone, spark_session
    from adapt.traces.store.atomic import check_free, write_whole
    from adapt.traces.store.manifest import is_trace
    from adapt.traces.store.tables import packed

    table, typed = source[0], given.typed
    if isinstance(table, Query):
        table = table.opened(session_in_zone(spark_session(spark.options()), given.values["time_zone"]))
    kept = isinstance(table, str) and is_trace(Path(table), "frequencies")
    if len(source) > 1 or given.streams:
        return None
    if not (kept or count or has_counts(table, given.mapping)):
        if (is_frame(table) or Path(table).is_file()) and (named := count_column(table)):
            narrate(f"read as rows; if column {named} holds the count of each row, add --count {quote(named)}")
        return None
    if without := sorted(typed - ({"max_rejects"} if kept else _OF_COUNTS)):
        option = f"--{without[0].strip('_').replace('_', '-')}"
        raise UsageError(f"{_named(source[0])} holds counts, where {option} has no effect; omit it")
    if kept:
        return counted(Path(table))
    if isinstance(source[0], Query):
        check_free(out, force=force)
        write_whole(out, packed(table.toArrow()), force=force)
        narrate_written(out)
        table = str(out)
    return of_table(read_counts(table if is_frame(table) else Path(table), mapping=given.mapping, count=count))


_NOT_OF_JOINS = ("current", "max_migration", "max_pins", "mergeable", "keys", "all", "force", "out")
"""Options without effect on a join, besides those of columns."""

_OF_COUNTS = {"key", "time", "time_format", "cost", "cost_unit", "bytes_", "max_rejects"}
"""Options of columns that counts may have."""


def _named(source: Any) -> str:
    from adapt.traces.sources.frames import frame_name, is_frame

    return frame_name(source) if is_frame(source) else str(source)


def _kept_trace(
    source: Sequence[Any],
    out: Path | None,
    given: GivenOptions,
    spark: RunnerOptions,
    progress: "Progress",
    *,
    force: bool,
) -> Path:
    """The trace of a source: itself, one made before, or a new one."""
    from adapt.traces.ingest.ingest import ingest
    from adapt.traces.kept_trace import holds, remember, source_fingerprint
    from adapt.traces.locations.location import TOPIC_SCHEME
    from adapt.traces.series import traces_of
    from adapt.traces.store.trace import open_trace

    is_path = isinstance(source[0], str)
    is_topic = is_path and source[0].startswith(TOPIC_SCHEME)
    places = [] if is_topic or not is_path else [location(each) for each in source]
    if places and all(map(traces_of, places)):
        names = [*sorted(given.typed - {"max_rejects"}), *(["out"] if out is not None else [])]
        names += [] if given.values["format"] is FormatName.AUTO else ["source-format"]
        if names:
            option = f"--{names[0].strip('_').replace('_', '-')}"
            raise UsageError(f"{source[0]} is a trace, where {option} has no effect; omit it, or give a raw file")
        return stream_typed(places)
    given = given.of_topic() if is_topic else given
    if not (given.streams or given.values["key"]):
        raise UsageError("--key is required for a raw source: the column or expression that partitions the stream")
    path = out or Path(f"{_name(_named(source[0]))}.trace")
    salt = given.options.salt if given.values["hash_keys"] else None
    made_by = {**given.values, "streams": given.streams, "salt": salt}
    decisive = {name: str(value) for name, value in made_by.items() if name != "max_rejects"}
    fingerprint = None if is_topic or not is_path else source_fingerprint(source, decisive)
    if fingerprint is not None and holds(path, fingerprint):
        narrate(f"using {path}, made from this source before")
        narrate_guesses(open_trace(path).reading.guesses)
        return path
    if (is_topic or not is_path) and path.exists() and not force:
        what = "a topic has new records" if is_topic else "a table may have new rows"
        raise EnvironmentFailure(f"{path} exists, and {what}; give the trace, or use --force or -o")
    if path.exists() and not force:
        raise EnvironmentFailure(f"{path} was made from another source, or with other options; use --force or -o TRACE")
    made = ingest(
        source,
        path,
        given.mapping,
        given.options,
        force=force,
        spark_options=spark.options(),
        command=command_line(),
        progress=progress,
    )
    narrate_guesses(made.guesses)
    narrate_written(path)
    if fingerprint is not None:
        remember(path, fingerprint)
    return path


def _check_same_question(path: Path, recommended: "Plan") -> None:
    """Check that a plan may be replaced: it is one for as many channels of the same engine."""
    from adapt.traces.store.plans import read_plan

    if not path.exists():
        return
    before, now = (f"{each.channels} workers over {each.hashing}" for each in (read_plan(path), recommended))
    if before != now:
        raise EnvironmentFailure(
            f"{path} is a plan for {before}, not {now}; use --force to overwrite it, or rename it first"
        )


def _name(source: str) -> str:
    """The name of a source without folder and endings."""
    name = Path(source).name.split(".")[0].strip("*?[]")
    return name or "stream"
