"""`adapt partition compare`: schemes over one or more channel counts."""

from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from adapt.cli.options import completion
from adapt.cli.options.artefacts import CountedPath
from adapt.cli.options.channels import channel_counts
from adapt.cli.options.counting import KeyCounting, narrate_counts
from adapt.cli.options.groups import option, setting, short_help, typed_name
from adapt.cli.options.loads import goal_within
from adapt.cli.options.placement import Placement, Today
from adapt.cli.options.result import Output
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.narration import narrate_keys
from adapt.cli.terminal.output import Format, for_people, is_for_programs, narrate, narrate_written, show, verdict_of
from adapt.cli.terminal.stages import stages
from adapt.core.engines.names import SCHEMES_BY_NAME
from adapt.core.errors import UsageError, did_you_mean
from adapt.core.partitioning.measures.plan_settings import PlanSettings
from adapt.core.partitioning.schemes.names import (
    DEFAULT_SCHEMES,
    DEFAULT_UTILITY,
    Construction,
    Scheme,
)
from adapt.core.partitioning.splitting.names import PlannedSplitting, Splitting

if TYPE_CHECKING:
    from adapt.core.partitioning.build import Recipe
    from adapt.core.partitioning.compare import Compared, Comparison


@short_help(
    *("channels", "out", "schemes", "constructions", "engine", "max_imbalance"),
    *("max_pins", "weight", "exact", "all", "format", "force"),
)
def compare(
    source: CountedPath,
    channels: Annotated[str, option("Channel counts, in order. A:B counts from A to B, both included.", "N|A:B|N,N")],
    out: Path | None = setting(
        None,
        "Write the table and one plan per scheme here. Plans are for the last number of workers.",
        "DIR",
        "--out",
        "-o",
    ),
    schemes: list[str] | None = setting(
        None,
        "Compare only this scheme; repeatable. One of those of build, your own MODULE:FUNCTION, or split-hot, pkg,"
        " d-choices or w-choices, which split keys. Default: uniform, consistent and hybrid, with split-hot, pkg and"
        " w-choices where pinning is not enough.",
        "SCHEME",
        "--scheme",
        completion=completion.schemes,
    ),
    constructions: list[Construction] | None = setting(
        None, "Compare only this construction of hybrid; repeatable.", None, "--construction", needs="--scheme hybrid"
    ),
    *,
    today: Today,
    placement: Placement,
    counting: KeyCounting,
    output: Output,
) -> "Comparison":
    """Compare partitioning schemes over one or more channel counts.

    The first rows are today's: the engine's own placement. Each plan starts from the plan for the previous count, and
    the table shows the state moved. Next to each ratio is its floor, the best possible value. Plans are written for the
    last channel count. Over a single count, --max-migration limits the move from today's placement.

    Example: adapt partition compare web.trace --channels 1:10 -o web.plans
    """

    from adapt.core.partitioning.compare import compare_schemes, hashers_compared
    from adapt.core.partitioning.do_nothing import with_nothing_done
    from adapt.core.stream import Weight
    from adapt.core.verdict.answering import answer_on, hashers_today, today_of
    from adapt.core.verdict.compared import at_channels
    from adapt.core.verdict.first_screen import Status, status_of
    from adapt.traces.counting.population import two_phase
    from adapt.traces.scheme_names import split_cap
    from adapt.traces.store.atomic import check_folder_free
    from adapt.traces.store.comparisons import write_comparison
    from adapt.traces.store.manifest import Provenance

    engine = today.engine
    names, given = zip(*map(split_cap, schemes), strict=True) if schemes else ((), ())
    caps = {each for each in given if each is not None}
    if len(caps) > 1:
        raise UsageError(
            f"scheme bounded takes one cap in a comparison (got {', '.join(map(str, sorted(caps)))}); give one"
        )
    counts = channel_counts(channels)
    most, weighed = max(counts), placement.weighed()
    limits, limit = placement.limits.judged(counts), placement.loads.max_imbalance
    # A step to another channel count moves nearly all keys of an engine.
    base = engine if len(counts) == 1 else Scheme.CONSISTENT
    migration = placement.limits.max_migration if len(counts) == 1 else None
    shown = output.all or output.format is Format.JSON or out is not None
    goal = goal_within(limit, migration, placement.loads.max_pins, most, shows_frontier=shown)
    if out is not None:
        check_folder_free(out, force=output.force)
    with stages() as progress:
        keys = counting.counted(source, most, weighed, placement.loads.max_pins, progress)
        panes = counting.panes_of(keys, progress)
        recipe = placement.recipe(limits, keys.frequencies, today, base=base, cap=next(iter(caps), None))
        named = [named_scheme(name) for name in dict.fromkeys(names)] if names else None
        now = today_of(engine, most, recipe, None, keys.frequencies.key_type)[0].partitioner()
        wanted = hashers_compared(keys.frequencies, counts, recipe, [engine, *(named or DEFAULT_SCHEMES)], now)
        wanted.append(hashers_today(engine, most, recipe, keys.frequencies.key_type))
        population = counting.population(keys, wanted, progress)
        narrate_keys(source, engine)
        progress("comparing", 0, 0)
        comparison = compare_schemes(
            population,
            counts,
            recipe,
            schemes=named,
            constructions=tuple(dict.fromkeys(constructions)) if constructions else None,
            trace=keys.fingerprint,
            clock=perf_counter,
            max_imbalance=limit,
        )
        comparison = with_nothing_done(comparison, population, recipe, engine, counts)
    table = comparison.table()
    found = answer_on(population, engine, most, recipe, panes=panes, trace=keys.fingerprint, goal=goal)
    phases = None
    if (
        keys.trace is not None
        and keys.frequencies.weight is Weight.COUNT
        and status_of(found.verdict) is not Status.FINE
    ):
        phases = two_phase(keys.trace, now, engine)
    narrate_counts(population, weighed, most, always=True)
    if recipe.given and not schemes:
        limited = " and ".join(typed_name(PlanSettings, each) for each in recipe.given)
        narrate(f"comparing only the schemes that support {limited}")
    if out is not None:
        parameters = {"channels": counts, **population.as_counted(weighed), **_parameters(recipe)}
        made = Provenance(command_line(), parameters, [keys.source], runner=keys.runner)
        write_comparison(comparison, keys.frequencies, out, made, answer=found, force=output.force)
        narrate_written(out)
    combined = None if phases is None else phases.remedy(None)
    saved = [] if phases is None else [phases.sentence]
    both = {"two_phase": None if phases is None else phases.as_data()}
    document = {**both, **comparison.as_data(), **found.as_data(), **population.as_counted(weighed)}
    document |= keys.frequencies.memory_as_data()
    if is_for_programs(output.format):
        tables = [table]
    else:
        first = [for_people(each, output.format) for each in found.channels_tables()]
        tables = [at_channels(table, most, limit, combined), *first]
        tables += [table, *found.more_tables()] if output.all else []
    show(tables, output.format, document, lead=[verdict_of([*found.lead, *saved])])
    return replace(comparison, verdict=tuple(found.lead))


def named_scheme(name: str) -> "Compared":
    """The scheme of a typed name, of those that split keys too."""
    from adapt.traces.own.modules import is_own, own_codes
    from adapt.traces.scheme_names import scheme_named

    splitting = {each.value: each for each in (*PlannedSplitting, *Splitting)}
    found: Compared | None = splitting.get(name) or scheme_named(name, SCHEMES_BY_NAME.values())
    if found is None and is_own("scheme", name):
        return own_codes("scheme", [(name, {})])[0]
    if found is None:
        raise UsageError(f"unknown scheme {name!r}{did_you_mean(name, [*splitting, *SCHEMES_BY_NAME])}")
    return found


def _parameters(recipe: "Recipe") -> dict[str, Any]:
    """The shared options, for the manifest."""
    return {
        **recipe.resources.as_data(),
        "sigma": recipe.resources.sigma,
        "utility": (recipe.utility or DEFAULT_UTILITY).value,
        "max_pins": recipe.max_pins,
        "hash": recipe.hash.value,
        "replicas": recipe.replicas,
        "cap": recipe.cap,
        **({} if recipe.max_parallelism is None else {"max_parallelism": recipe.max_parallelism}),
        **({} if recipe.base is Scheme.CONSISTENT else {"base": recipe.base.value}),
        **recipe.constraints.parameters,
    }
