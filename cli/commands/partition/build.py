"""`adapt partition build`: a plan from counted keys."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from adapt.cli.options.artefacts import CountedPath
from adapt.cli.options.channels import check_channels
from adapt.cli.options.counting import KeyCounting, narrate_counts
from adapt.cli.options.groups import option, setting, short_help
from adapt.cli.options.placement import OWN_SCHEME, Placement, SchemeChoice, Today
from adapt.cli.options.result import Output
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.narration import narrate_keys
from adapt.cli.terminal.output import for_people, is_for_programs, narrate_written, show, verdict_of
from adapt.cli.terminal.stages import stages
from adapt.core.engines.names import Engine
from adapt.core.partitioning.schemes.names import DEFAULT_CONSTRUCTION, Construction, Scheme
from adapt.core.phrases import percent

if TYPE_CHECKING:
    from adapt.core.partitioning.plans.plan import Plan


@short_help(
    *("channels", "out", "scheme", "construction", "previous", "engine"),
    *("max_imbalance", "max_pins", "pin", "exact", "format", "force"),
)
def build(
    source: CountedPath,
    channels: Annotated[int, option("Number of workers.", "N")],
    out: Path | None = setting(None, "Write the plan here.", "PLAN", "--out", "-o"),
    scheme: SchemeChoice = setting(
        Scheme.HYBRID,
        "How keys are assigned to workers. Or bounded with a cap, bounded:cap=1.05, or your own MODULE:FUNCTION.",
        "NAME",
        **OWN_SCHEME,
    ),
    construction: Construction = setting(
        DEFAULT_CONSTRUCTION, "How the hybrid scheme assigns pinned keys.", needs="--scheme hybrid"
    ),
    previous: Path | None = setting(None, "Current plan, from which state migrates.", "PLAN", "--from"),
    *,
    today: Today,
    placement: Placement,
    counting: KeyCounting,
    output: Output,
) -> "Plan":
    """Build a plan: pin the hot keys to channels, hash the others.

    Example: adapt partition build web.trace --channels 8 -o web.plan
    """
    from adapt.core.partitioning.build import build_plan, hashers_of
    from adapt.core.partitioning.plans.plan import plan_to_data
    from adapt.core.partitioning.plans.plan_tables import load_table, pinned_keys_table, plan_first_table, plan_table
    from adapt.core.partitioning.problem.tracking import theta, threshold
    from adapt.core.verdict.answering import answer_on, hashers_today, planned
    from adapt.core.verdict.goal import Goal
    from adapt.traces.store.atomic import check_free
    from adapt.traces.store.manifest import Provenance, as_input
    from adapt.traces.store.plan_json import readings_of_plan
    from adapt.traces.store.plans import read_plan, write_plan

    check_channels(channels)
    engine = today.engine
    weighed, limits = placement.weighed(), placement.limits.judged([channels])
    if out is not None:
        check_free(out, force=output.force)
    before = None if previous is None else read_plan(previous)
    with stages() as progress:
        keys = counting.counted(source, channels, weighed, placement.loads.max_pins, progress)
        panes = counting.panes_of(keys, progress)
        recipe = placement.recipe(limits, keys.frequencies, today, scheme, construction, before=before)
        current = None if before is None else before.partitioner()
        wanted = hashers_of(recipe, keys.frequencies, [channels], current)
        wanted.append(hashers_today(engine, channels, recipe, keys.frequencies.key_type, before))
        population = counting.population(keys, wanted, progress, [before])
    narrate_keys(source, recipe.hashing if isinstance(recipe.hashing, Engine) else engine)
    narrate_counts(population, weighed, channels)
    found = answer_on(
        *(population, engine, channels, replace(recipe, own=None)),
        panes=panes,
        current=before,
        trace=keys.fingerprint,
        goal=Goal(placement.loads.max_imbalance),
    )
    plan = build_plan(population, recipe, channels, previous=before, trace=keys.fingerprint)
    found = planned(found, population, engine, recipe, plan, before)
    if out is not None:
        inputs = [keys.source]
        if previous is not None:
            inputs.append(as_input(previous.name, str(plan.parent), readings_of_plan(previous)))
        made = Provenance(command_line(), dict(plan.parameters), inputs, runner=keys.runner)
        write_plan(plan, out, made, answer=found, force=output.force)
        narrate_written(out)
    metrics, pinning = plan_table(plan), dict[str, Any]()
    if recipe.constructs:
        delta = threshold(population.frequencies, recipe.resources, channels)
        pinning = {"theta": [theta(alpha, channels) for alpha in recipe.resources.tolerance], "delta": delta}
        metrics = replace(metrics, note=f"Every key above delta, {percent(delta)} of the rows, is pinned.")
    long = [for_people(table, output.format) for table in (load_table(plan), pinned_keys_table(plan))]
    if is_for_programs(output.format):
        tables = [metrics, *long]
    else:
        tables = [for_people(table, output.format) for table in (*found.channels_tables(), plan_first_table(plan))]
        tables += [metrics, *long, *found.more_tables()] if output.all else []
    show(tables, output.format, plan_to_data(plan) | pinning | found.as_data(), lead=[verdict_of(found.lead)])
    return plan
