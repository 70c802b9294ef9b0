"""Spark options of commands."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adapt.cli.options.groups import setting
from adapt.core.errors import UsageError
from adapt.traces.spark.names import RunnerName

if TYPE_CHECKING:
    from adapt.traces.spark.session import SparkOptions

SPARK_PANEL = "Spark"
MASTER = "Spark master, or sc://HOST:PORT of Spark Connect"
MASTER_OF_ALL: dict[str, Any] = {"metavar": "URL", "envvar": "ADAPT_MASTER", "shown": False}


@dataclass(frozen=True, slots=True)
class Spark:
    """Spark master or server, and settings."""

    PANEL = SPARK_PANEL
    master: str | None = setting(None, f"{MASTER} (default: local[*], all cores).", **MASTER_OF_ALL)
    spark_conf: list[str] | None = setting(
        None, "Spark setting; repeatable.", "NAME=VALUE", unless="--master in-process"
    )

    def options(self) -> "SparkOptions":
        """Spark options of a process that runs one command."""
        from adapt.traces.spark.session import SparkOptions

        for each in self.spark_conf or ():
            if "=" not in each or each.startswith("="):
                raise UsageError("--spark-conf must be NAME=VALUE, such as spark.driver.memory=4g (got no =)")
        conf = dict(each.partition("=")[::2] for each in self.spark_conf or ())
        if self.master == RunnerName.IN_PROCESS:
            return SparkOptions(conf=conf, brief=True, runner=RunnerName.IN_PROCESS)
        return SparkOptions(self.master, conf, brief=True)


@dataclass(frozen=True, slots=True)
class RunnerOptions(Spark):
    """Where work runs: on Spark, or in this process for few rows."""

    master: str | None = setting(
        None,
        f"{MASTER}; or in-process. Default: in-process if memory suffices, else local[*].",
        **MASTER_OF_ALL,
    )


@dataclass(frozen=True, slots=True)
class ScenarioRunnerOptions(Spark):
    """Where scenarios run: in local processes, or as Spark tasks if requested."""

    master: str | None = setting(None, f"{MASTER}, to run scenarios there (default: in-process).", **MASTER_OF_ALL)
