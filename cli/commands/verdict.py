"""`adapt verdict`: from a raw file to what to do about skew."""

from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.commands.judging.keys import OF_COUNTS, counts_of, kept_trace, name_of, stem_of
from adapt.cli.commands.judging.metrics import metrics_of, metrics_verdict
from adapt.cli.options.channels import check_channels
from adapt.cli.options.groups import Several, setting, short_help
from adapt.cli.options.loads import GoalOptions
from adapt.cli.options.mapping import GivenOptions, option_of, refuse, typed_of
from adapt.cli.options.placement import Today
from adapt.cli.options.result import Output
from adapt.cli.options.source import CleaningOptions, FormatOptions, MappingOptions, RawOptions, TableOptions
from adapt.cli.options.spark import RunnerOptions
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.narration import narrate_keys
from adapt.cli.terminal.output import narrate_written, show, verdict_of
from adapt.cli.terminal.stages import stages
from adapt.cli.terminal.terminal import NEXT
from adapt.core.engines.names import Engine
from adapt.core.errors import EnvironmentFailure, UsageError
from adapt.traces.sources.names import FormatName

if TYPE_CHECKING:
    from adapt.core.joins.answer import JoinVerdict
    from adapt.core.partitioning.plans.plan import Plan
    from adapt.core.verdict.answer import Answer
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
        from adapt.cli.commands.judging.join import NOT_OF_JOINS, join_verdict
        from adapt.traces.sources.frames import is_frame

        of_frames = {"out"} if is_frame(source[0]) else set()
        for name in sorted(typed_of(context, [*NOT_OF_JOINS, *asdict(mapping)]) - {"key"} - of_frames)[:1]:
            raise UsageError(f"{option_of(name)} has no effect with --join-with; omit one of them")
        return join_verdict(source, mapping.key, raw, channels, limits.max_imbalance, spark, output.format)
    given_engine = today.engine if typed_of(context, ["engine"]) and isinstance(today.engine, Engine) else None
    samples = None if current else metrics_of(source, raw, mapping.key)
    if samples is not None:
        from adapt.traces.units.judging import Asked

        refuse(typed_of(context, [*_NOT_OF_METRICS, *asdict(mapping)]) - {"key"}, f"{source[0]} holds metrics by unit")
        asked = Asked(
            engine=given_engine,
            keys=raw.keys,
            max_parallelism=today.max_parallelism,
            workers=channels,
            max_imbalance=limits.max_imbalance,
        )
        return metrics_verdict(source[0], samples, asked, out, output)
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
        name = name_of(source[0])
        path = out or Path(f"{stem_of(name)}.counts.parquet" if table.is_given else name)
        keys, trace, audit = counts_of(source, path, given, raw.count, spark, force=output.force), None, None
        if keys is None:
            path = kept_trace(source, out, given, spark, progress, force=output.force)
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
        if trace is not None and found.verdict is not None and found.verdict.needs_another_key and before is None:
            from adapt.cli.commands.judging.another_key import AS_WHICH_KEY, by_another_key

            is_alike = given.typed <= AS_WHICH_KEY and given.file is None and raw.source_format is FormatName.AUTO
            beside, time = source if is_alike else (), given.values["time"] or ""
            other = by_another_key(found.verdict, trace, beside, engine, time, options, progress)
            found = replace(found, verdict=other)
        uneven, phases = found.verdict if status_of(found.verdict) is not Status.FINE else None, None
        if trace is not None and audit is None and uneven is not None and goal.mergeable:
            now, _ = today_of(engine, channels, recipe, before, keys.frequencies.key_type)
            phases = two_phase(trace, now.partitioner(), engine if before is None else before.hashing)
            found = replace(found, verdict=uneven.beside(phases.remedy(uneven.out_of_sample)))
    stem = stem_of(path.name) if trace is None else path.name.removesuffix(".trace")
    plan = path.with_name(f"{stem}.recommended.plan")
    if found.recommended is not None:
        if not output.force:
            _check_same_question(plan, found.recommended)
        made = Provenance(command_line(), dict(found.recommended.parameters), [keys.source], runner=keys.runner)
        write_plan(found.recommended, plan, made, answer=found, force=True)
        narrate_written(plan)
    findings = judged_counts(keys.frequencies) if trace is None else judged(trace.profile) or []
    own = {} if trace is not None else {"count": raw.count, **{name: given.values[name] for name in OF_COUNTS & typed}}
    read = "".join(f" {option_of(name)} {quote(text)}" for name, text in sorted(own.items()) if text)
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


_NOT_OF_METRICS = ("max_migration", "max_pins", "mergeable", "max_rejects", "source_format")
"""Options without effect on metrics, besides those of columns."""


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
