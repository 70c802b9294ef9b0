"""`adapt cluster check`: what executors have, against what they need."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options.spark import Spark
from adapt.cli.terminal.output import Format, FormatOption, show
from adapt.cli.terminal.stages import stages

if TYPE_CHECKING:
    from adapt.traces.cluster import ClusterCheck


def check(
    places: Annotated[
        list[Path] | None,
        typer.Argument(metavar="LOCATION", help="Files to read, folders and outputs to write: paths or URIs."),
    ] = None,
    *,
    format: FormatOption = Format.TABLE,
    spark: Spark,
) -> "ClusterCheck":
    """Check Python, packages, memory and locations of executors.

    Exits with 4 if something is missing. Says what each executor has, against what it needs, and the remedy. In
    folders, small files are written and removed. Executors without our packages get them from here, as in every
    command.

    Example: adapt cluster check --master spark://HOST:7077 s3://bucket/traces
    """
    from adapt.traces.cluster import check_cluster

    with stages() as progress:
        progress("asking the executors", 0, 0)
        found = check_cluster(spark.options(), places or ())
    show(found.displayed(), format, found.as_data(), lead=[found.said])
    return found
