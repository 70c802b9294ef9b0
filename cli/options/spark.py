"""Options of commands that start Spark."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapt.cli.options.groups import setting
from adapt.core.errors import UsageError

if TYPE_CHECKING:
    from adapt.traces.spark.session import SparkOptions

SPARK_PANEL = "Spark"


@dataclass(frozen=True, slots=True)
class Spark:
    """Where Spark runs, and its settings."""

    PANEL = SPARK_PANEL
    master: str = setting("local[*]", "Where Spark runs.", "URL", "--master", envvar="ADAPT_MASTER")
    conf: list[str] | None = setting(None, "A Spark setting; repeatable.", "NAME=VALUE")

    def options(self) -> "SparkOptions":
        """The options of a Spark session.

        Raises:
            UsageError: a setting is not NAME=VALUE.
        """
        return _options(self.master, self.conf or [])


@dataclass(frozen=True, slots=True)
class TaskSpark:
    """Where Spark runs work that otherwise runs in processes of this machine."""

    PANEL = SPARK_PANEL
    master: str | None = setting(
        None, "Run each scenario as a task of this Spark.", "URL", "--master", envvar="ADAPT_MASTER", shown=False
    )
    conf: list[str] | None = setting(None, "A Spark setting; repeatable.", "NAME=VALUE")

    def options(self) -> "SparkOptions | None":
        """The options of a Spark session; None without a master.

        Raises:
            UsageError: a setting is not NAME=VALUE, or there is no Spark that it is for.
        """
        if self.conf and self.master is None:
            raise UsageError("--conf is for Spark; say with --master where it runs")
        return None if self.master is None else _options(self.master, self.conf or [])


def _options(master: str, settings: list[str]) -> "SparkOptions":
    from adapt.traces.spark.session import SparkOptions

    for each in settings:
        if "=" not in each or each.startswith("="):
            raise UsageError(f"--conf {each!r} is not NAME=VALUE, e.g. spark.driver.memory=4g")
    return SparkOptions(master, dict(each.partition("=")[::2] for each in settings))
