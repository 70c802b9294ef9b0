"""`adapt partition evaluate`: plans on every key of a stream."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from adapt.cli.options.counting import WeightOption
from adapt.cli.options.groups import EXPERT, setting
from adapt.cli.options.loads import MeasureOption
from adapt.cli.options.spark import Spark
from adapt.cli.terminal.output import Format, FormatOption, for_people, show
from adapt.cli.terminal.stages import stages
from adapt.core.stream import KeyType


def evaluate(
    plans: Annotated[list[Path], typer.Argument(metavar="PLAN", help="Plans, each in place of the one before it.")],
    source: Annotated[
        Path,
        typer.Argument(
            metavar="TRACE|FREQ|COUNTS", help="A trace, exactly counted keys, or a CSV or Parquet of key,count."
        ),
    ],
    weight: WeightOption = None,
    resources: str | None = setting(
        None,
        "How state, computation and network grow with a key's count, by C, L, Q; as in the first plan if left out.",
        "XYZ",
        panel=EXPERT,
    ),
    tolerance: str | None = setting(
        None,
        "Tolerated load of the fullest channel over the emptiest; as in the first plan if left out.",
        "A|A,A,A",
        panel=EXPERT,
    ),
    measure: MeasureOption = None,
    key_type: KeyType | None = setting(
        None, "How keys of a CSV are read; as those of the plans if left out.", panel=EXPERT
    ),
    format: FormatOption = Format.TABLE,
    *,
    spark: Spark,
) -> None:
    """Measure plans on every key of a stream.

    Keys are counted exactly and routed on Spark, in bounded memory however many there are. Every plan is charged for
    what moves from the one before it, and its numbers stand beside what it foresaw.

    Example: adapt partition evaluate web.plan web.trace
    """

    from adapt.core.partitioning.measures.resources import Resources
    from adapt.core.partitioning.plans.evaluation import resources_of
    from adapt.traces.counting.evaluating import evaluate_plans
    from adapt.traces.store.plans import read_plan

    named = [(str(path), read_plan(path)) for path in plans]
    first = resources_of([plan for _, plan in named])
    weighed = Resources.parse(resources or first.letters, tolerance or first.tolerance, measure=measure or ())
    if resources is None and not measure:
        weighed = replace(weighed, measured=first.measured)
    with stages() as progress:
        found = evaluate_plans(
            named, source, weighed, weight=weight, key_type=key_type, spark_options=spark.options(), progress=progress
        )
    show([found.table(), for_people(found.foresight(), format)], format, found.as_data())
