"""`adapt advise salts`: key groups, partitions, useful workers and salts."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options.artefacts import STREAM
from adapt.cli.options.channels import MOST_CHANNELS
from adapt.cli.options.groups import option, setting
from adapt.cli.options.placement import ENGINE, CurrentSchemeChoice
from adapt.cli.terminal.output import Format, FormatOption, show
from adapt.core.engines.names import Engine
from adapt.core.errors import UsageError

if TYPE_CHECKING:
    from adapt.traces.advising import Advice


def salts(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="TRACE|FREQ|COUNTS.csv",
            help="A trace, or several as one stream; counted keys, or a CSV of key,count.",
        ),
        STREAM,
    ] = None,
    *,
    parallelism: Annotated[
        int,
        option("Number of subtasks or consumers.", "WORKERS", "--parallelism", "-p", min=1, max=MOST_CHANNELS),
    ],
    max_parallelism: int | None = setting(None, "Flink's key groups. Default: Flink's own.", "GROUPS"),
    partitions: int | None = setting(None, "Partitions of the Kafka topic.", "PARTITIONS"),
    named: list[str] | None = setting(
        None, "Show the salts of this key; repeatable. Default: every key too hot for one worker.", "KEY", "--key"
    ),
    operators: list[str] | None = setting(
        None, "Check the key columns of an operator of the same region; repeatable.", "OP=COLUMN,...", "--operator"
    ),
    max_imbalance: str = setting(
        "1.2", "Tolerated load of a hot key's worker over the mean load.", "RATIO", needs="TRACE"
    ),
    engine: CurrentSchemeChoice = setting(
        Engine.FLINK, "Engine whose hash places salted keys.", "NAME", needs="TRACE", **ENGINE
    ),
    format: FormatOption = Format.TABLE,
) -> "Advice":
    """Advise on key groups, partitions, useful workers, and salts for hot keys.

    Key groups and partitions are indivisible, so the busiest worker may have more than the mean, however balanced the
    keys: that is the excess. Rows of a trace count as 1. Does not start Java.

    Example: adapt advise salts web.trace --parallelism 48 --max-parallelism 128 --partitions 60
    """
    from adapt.core.advice.tables import operators_named
    from adapt.traces.advising import Job, advise

    job = Job(parallelism, max_parallelism, partitions, engine, _ratio(max_imbalance))
    found = advise(job, source, named or (), operators_named(operators or ()))
    show(found.tables(), format, found.as_data())
    return found


def _ratio(text: str) -> Fraction:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError) as error:
        raise UsageError(f"--max-imbalance must be a number such as 1.2 (got {text!r})") from error
