"""`adapt partition diff`: what migrates between two plans."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options.artefacts import CountedPath
from adapt.cli.options.counting import KeyCounting, narrate_counts
from adapt.cli.options.groups import short_help
from adapt.cli.terminal.output import Format, FormatOption, for_people, is_for_programs, show
from adapt.cli.terminal.stages import stages
from adapt.core.partitioning.measures.plan_settings import PlanSettings
from adapt.core.units.settings import same
from adapt.traces.read_errors import readable

if TYPE_CHECKING:
    from adapt.core.partitioning.plans.difference import Difference


@short_help("weight", "resources", "exact", "key_type", "format")
def diff(
    source: CountedPath,
    before: Annotated[Path, typer.Argument(metavar="PLAN", help="The current plan.")],
    after: Annotated[Path, typer.Argument(metavar="PLAN", help="The plan to move to.")],
    resources: str = same(PlanSettings, "resources"),
    measure: list[str] | None = same(PlanSettings, "measure"),
    tolerance: str = same(PlanSettings, "tolerance"),
    *,
    counting: KeyCounting,
    format: FormatOption = Format.TABLE,
) -> "Difference":
    """Show which keys move between two plans, and how much state.

    Also shows the channels that they move between, and the imbalance before and after.

    Example: adapt partition diff web.freq old.plan new.plan
    """
    from adapt.core.partitioning.measures.cells import base_of
    from adapt.core.partitioning.measures.resources import Resources
    from adapt.core.partitioning.plans.difference import plan_difference
    from adapt.traces.store.plans import read_plan

    weighed = Resources.parse(resources, tolerance, measure=measure or ())
    first, second = read_plan(before), read_plan(after)
    with readable(source):
        is_csv = source.is_file()
    if is_csv and counting.key_type is None:
        counting = replace(counting, key_type=first.key_type)
    with stages() as progress:
        keys = counting.counted(source, max(first.channels, second.channels), weighed, None, progress)
        hashers = tuple(base_of(plan.partitioner()) for plan in (first, second))
        population = counting.population(keys, [hashers], progress, [first, second])
    narrate_counts(population, weighed, second.channels)
    difference = plan_difference(first, second, population, weighed)
    long = (for_people(table, format) for table in (difference.moves(), difference.hot_keys))
    channels = [] if is_for_programs(format) else [for_people(difference.workers().table(), format)]
    show([*channels, difference.table(), *long], format, difference.as_data())
    return difference
