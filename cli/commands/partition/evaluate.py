"""`adapt partition evaluate`: plans measured on every key."""

from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options.artefacts import stream_typed
from adapt.cli.options.counting import WeightOption
from adapt.cli.options.groups import setting, short_help
from adapt.cli.options.placement import CURRENT, CurrentSchemeChoice
from adapt.cli.options.result import BaselineOption
from adapt.cli.options.spark import RunnerOptions
from adapt.cli.terminal.narration import is_muted, narrate_keys
from adapt.cli.terminal.output import Format, FormatOption, for_people, show
from adapt.cli.terminal.stages import stages
from adapt.core.errors import UsageError
from adapt.core.partitioning.measures.plan_settings import EXPERT, PlanSettings
from adapt.core.stream import KeyType
from adapt.core.units.settings import same

if TYPE_CHECKING:
    from adapt.core.partitioning.plans.evaluation import Evaluation


@short_help("engine", "weight", "resources", "key_type", "master", "format")
def evaluate(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="TRACE|FREQ|COUNTS", help="A trace, exactly counted keys, or a CSV or Parquet of key,count."
        ),
    ],
    plans: Annotated[list[Path], typer.Argument(metavar="PLAN", help="Plans, in the order of their deployment.")],
    weight: WeightOption = None,
    resources: str | None = setting(
        None,
        "How state, computation and network grow with a key's count, as for `build`. Default: as in the first plan.",
        "XYZ|RESOURCE=LOAD",
        panel=EXPERT,
    ),
    tolerance: str | None = setting(
        None,
        "Tolerated max/min load ratio, alpha: one, or one each for state, computation and network. Default: as in the"
        " first plan.",
        "RATIO|X,Y,Z",
        panel=EXPERT,
    ),
    measure: list[str] | None = same(PlanSettings, "measure"),
    engine: CurrentSchemeChoice | None = setting(
        None, "Engine that assigns the keys today. Default: that of the first plan, else spark.", "NAME", **CURRENT
    ),
    baseline: BaselineOption = True,
    key_type: KeyType | None = setting(None, "Type of the keys in a CSV. Default: as in the plans.", panel=EXPERT),
    format: FormatOption = Format.TABLE,
    *,
    spark: RunnerOptions,
) -> "Evaluation":
    """Measure plans on every key of a stream.

    Keys are counted exactly, in bounded memory. Shows today's placement first, the state moved from there to the first
    plan and from each plan to the next, and each plan's predictions next to what was measured.

    Example: adapt partition evaluate web.trace web.plan
    """
    from adapt.core.labels import as_today
    from adapt.core.partitioning.measures.resources import Resources
    from adapt.core.partitioning.plans.evaluation import doing_nothing, resources_of
    from adapt.traces.counting.evaluating import evaluate_plans
    from adapt.traces.store.manifest import is_trace
    from adapt.traces.store.plans import read_plan

    days = list(takewhile(is_trace, plans))  # further traces of the stream
    source, plans = stream_typed([source, *days]), plans[len(days) :]
    if not plans:
        raise UsageError("PLAN is missing; give a plan made by `adapt partition build`")
    named = [(path.name if is_muted() else str(path), read_plan(path)) for path in plans]
    first = resources_of([plan for _, plan in named])
    weighed = Resources.parse(resources or first.text, tolerance or first.tolerance, measure=measure or ())
    if resources is None and not measure:
        weighed = replace(weighed, measured=first.measured)
    today = doing_nothing([plan for _, plan in named], engine) if baseline else None
    if today is not None:
        named = [(as_today(today.scheme), today), *named]
    narrate_keys(source, named[0][1].hashing)
    with stages() as progress:
        found = evaluate_plans(
            named, source, weighed, weight=weight, key_type=key_type, spark_options=spark.options(), progress=progress
        )
    merging = found.merging()
    tables = [found.table(), *([] if merging is None else [merging]), for_people(found.predictions(), format)]
    show(tables, format, found.as_data())
    return found
