"""Options of commands that start Spark."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.core.errors import UsageError

if TYPE_CHECKING:
    from adapt.traces.spark.session import SparkOptions

SPARK_PANEL = "Spark"
spark_option = partial(typer.Option, rich_help_panel=SPARK_PANEL)


@dataclass(frozen=True, slots=True)
class Spark:
    """Where Spark runs, and its settings."""

    master: Annotated[str, spark_option("--master", metavar="URL", help="Where Spark runs.", envvar="ADAPT_MASTER")] = (
        "local[*]"
    )
    conf: Annotated[
        list[str] | None, spark_option("--conf", metavar="NAME=VALUE", help="A Spark setting; repeatable.")
    ] = None

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
