"""Names that the commands of `ingest` and `replay` still import from here; goes once they import the groups."""

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from adapt.cli.options.artefacts import TracePath
from adapt.cli.options.channels import check_channels
from adapt.cli.options.counting import WeightOption
from adapt.cli.options.loads import ResourcesOption, SigmaOption, ToleranceOption, TrackOption
from adapt.cli.options.placement import HashOption, UtilityOption
from adapt.cli.options.result import ForceOption
from adapt.cli.options.spark import SPARK_PANEL, Spark
from adapt.cli.terminal.command_line import command_line

if TYPE_CHECKING:
    from adapt.traces.spark.session import SparkOptions

__all__ = [
    "SPARK_PANEL",
    "ForceOption",
    "HashOption",
    "ResourcesOption",
    "SigmaOption",
    "ToleranceOption",
    "TracePath",
    "TrackOption",
    "UtilityOption",
    "WeightOption",
    "check_channels",
    "command_line",
]

MasterOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--master", metavar="URL", help="Where Spark runs.", rich_help_panel=SPARK_PANEL, envvar="ADAPT_MASTER"
    ),
]
ConfOption: TypeAlias = Annotated[
    list[str],
    typer.Option("--conf", metavar="NAME=VALUE", help="A Spark setting; repeatable.", rich_help_panel=SPARK_PANEL),
]


def spark_options(master: str, conf: list[str]) -> "SparkOptions":
    """The options of a Spark session."""
    return Spark(master, conf).options()
