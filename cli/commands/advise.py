"""`adapt advise`: what can be said of a job before any algorithm runs; starts no Java."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from adapt.cli.options.channels import MOST_CHANNELS
from adapt.cli.options.groups import option, setting
from adapt.cli.options.placement import CurrentSchemeChoice
from adapt.cli.terminal.output import Format, FormatOption, show
from adapt.core.engines.names import Engine
from adapt.core.errors import UsageError


def advise(
    source: Annotated[
        Path | None,
        typer.Argument(metavar="[TRACE|FREQ|COUNTS.csv]", help="Whose heavy keys to look at; may be left out."),
    ] = None,
    *,
    parallelism: Annotated[
        int, option("Subtasks, consumers or channels.", "N", "--parallelism", "-p", min=1, max=MOST_CHANNELS)
    ],
    max_parallelism: int | None = setting(None, "Flink's key groups; Flink's default if left out.", "P"),
    partitions: int | None = setting(None, "Partitions of the Kafka topic.", "P"),
    keys: list[str] | None = setting(
        None, "Tell the salts of this key; repeatable. Those too heavy for a channel if left out.", "KEY", "--key"
    ),
    tolerance: str = setting("1.2", "Most load over the mean that a key alone may make.", "T"),
    engine: CurrentSchemeChoice = setting(Engine.FLINK, "Whose hash places salted keys.", f"[{'|'.join(Engine)}]"),
    format: FormatOption = Format.TABLE,
) -> None:
    """Advise on key groups, partitions, salts, and useful channels.

    The loss is what the busiest worker has beyond the mean however even the keys are: whole key groups and partitions
    do not divide evenly. Of a trace the profile is read, in which every row weighs 1. No Java is started.

    Example: adapt advise web.trace --parallelism 48 --max-parallelism 128 --partitions 60
    """
    from adapt.traces.advising import Job
    from adapt.traces.advising import advise as advise_on

    job = Job(parallelism, max_parallelism, partitions, engine, _ratio(tolerance))
    found = advise_on(job, source, keys or ())
    show(found.tables(), format, found.as_data())


def _ratio(text: str) -> Fraction:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError) as error:
        raise UsageError(f"--tolerance {text!r} is no number, e.g. 1.2") from error
