"""Options of commands that start Spark."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options.groups import option
from adapt.core.errors import UsageError

if TYPE_CHECKING:
    from adapt.traces.spark.session import SparkOptions

SPARK_PANEL = "Spark"


@dataclass(frozen=True, slots=True)
class Spark:
    """Where Spark runs, and its settings."""

    PANEL = SPARK_PANEL

    master: Annotated[str, typer.Option("--master", metavar="URL", help="Where Spark runs.", envvar="ADAPT_MASTER")] = (
        "local[*]"
    )
    conf: Annotated[list[str] | None, option("A Spark setting; repeatable.", "NAME=VALUE")] = None

    def options(self) -> "SparkOptions":
        """The options of a Spark session.

        Raises:
            UsageError: a setting is not NAME=VALUE.
        """
        from adapt.traces.spark.session import SparkOptions

        settings = self.conf or []
        for setting in settings:
            if "=" not in setting or setting.startswith("="):
                raise UsageError(f"--conf {setting!r} is not NAME=VALUE, e.g. spark.driver.memory=4g")
        return SparkOptions(self.master, dict(setting.partition("=")[::2] for setting in settings))
