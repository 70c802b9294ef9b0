"""Spark options of commands."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from adapt.cli.options.groups import setting
from adapt.core.errors import UsageError
from adapt.traces.spark.names import RunnerName

if TYPE_CHECKING:
    from adapt.traces.spark.session import SparkOptions

SPARK_PANEL = "Spark"


@dataclass(frozen=True, slots=True)
class Spark:
    """Spark master or server, and settings."""

    PANEL = SPARK_PANEL
    master: str | None = setting(
        None, "Spark master (default: local[*], all cores).", "URL", "--master", envvar="ADAPT_MASTER", shown=False
    )
    remote: str | None = setting(
        None,
        "Address of a Spark Connect server, instead of a master (default: SPARK_REMOTE, if set).",
        "sc://HOST:PORT",
        shown=False,
    )
    spark_conf: list[str] | None = setting(None, "Spark setting; repeatable.", "NAME=VALUE")

    def options(self) -> "SparkOptions":
        """Spark options of a process that runs one command.

        Raises:
            UsageError: a setting is not NAME=VALUE, or both a master and a server are given.
        """
        if self.master is not None and self.remote is not None:
            raise UsageError(f"--remote {self.remote} needs no master; drop --master {self.master} (ADAPT_MASTER)")
        return replace(_options(self.master, self.spark_conf or []), remote=self.remote)


@dataclass(frozen=True, slots=True)
class RunnerOptions(Spark):
    """Where work runs: on Spark, or in this process for few rows."""

    runner: RunnerName = setting(
        RunnerName.AUTO, "Where work runs: auto uses Spark with --master, --remote or for more than 4 million rows."
    )

    def options(self) -> "SparkOptions":
        """As `Spark.options`.

        Raises:
            UsageError: as there, or a master is given for work in this process.
        """
        for name, given in (("master", self.master), ("remote", self.remote)):
            if self.runner is RunnerName.IN_PROCESS and given is not None:
                raise UsageError(f"--runner in-process does not use Spark; drop --{name} {given}")
        return replace(Spark.options(self), runner=self.runner)


@dataclass(frozen=True, slots=True)
class ScenarioRunnerOptions(RunnerOptions):
    """Where scenarios run: in local processes, or as Spark tasks if requested."""

    runner: RunnerName = setting(RunnerName.AUTO, "Where scenarios run: auto uses Spark with --master, else processes.")


def _options(master: str | None, settings: list[str]) -> "SparkOptions":
    from adapt.traces.spark.session import SparkOptions

    for each in settings:
        if "=" not in each or each.startswith("="):
            raise UsageError(f"--spark-conf must be NAME=VALUE, such as spark.driver.memory=4g (got {each!r})")
    conf = dict(each.partition("=")[::2] for each in settings)
    return SparkOptions(master, conf, brief=True)
