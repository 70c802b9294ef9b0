"""Options that several commands share, each defined once."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from adapt.core.errors import UsageError

if TYPE_CHECKING:
    from adapt.traces.session import SparkOptions

_typed: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())
_SECRET = "secret|password|token|access[.]?key"
"""What Spark too takes for the name of a setting that is nobody else's business."""

SPARK_PANEL = "Spark"
EXPERT_PANEL = "For experts"

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
ForceOption: TypeAlias = Annotated[bool, typer.Option("--force", help="Replace what stands at the output.")]
ChannelsRangeOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--channels", metavar="N|A:B|N,N", help="Channel counts in turn; A:B counts from A to B, both included."
    ),
]
ResourcesOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--resources",
        metavar="XYZ",
        help="How state, computation and network grow with a key's count: C constant, L linear, Q quadratic.",
        rich_help_panel=EXPERT_PANEL,
    ),
]
ToleranceOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--tolerance",
        metavar="A|A,A,A",
        help="Tolerated load of the fullest channel over the emptiest: one, or one for each resource.",
        rich_help_panel=EXPERT_PANEL,
    ),
]
SigmaOption: TypeAlias = Annotated[
    float,
    typer.Option(
        "--sigma",
        metavar="S",
        help="Part of the tolerated imbalance left to untracked keys.",
        rich_help_panel=EXPERT_PANEL,
    ),
]
TrackOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--track",
        metavar="K",
        help="Track the K heaviest keys, not those that reach delta.",
        rich_help_panel=EXPERT_PANEL,
    ),
]
TracePath: TypeAlias = Annotated[Path, typer.Argument(metavar="TRACE", help="A trace made by `adapt ingest`.")]
CountedPath: TypeAlias = Annotated[
    Path, typer.Argument(metavar="TRACE|FREQ|COUNTS.csv", help="A trace, counted keys, or a CSV of key,count.")
]


def spark_options(master: str, conf: list[str]) -> "SparkOptions":
    """Where Spark runs and with what settings.

    Raises:
        UsageError: a setting is not NAME=VALUE.
    """
    from adapt.traces.session import SparkOptions

    settings = dict(setting.partition("=")[::2] for setting in conf)
    for setting in conf:
        if "=" not in setting or setting.startswith("="):
            raise UsageError(f"--conf {setting!r} is not NAME=VALUE, e.g. spark.driver.memory=4g")
    return SparkOptions(master, settings)


def channel_counts(text: str) -> list[int]:
    """Channel counts in turn: `8`, `1:10` (both ends), `10:4` (shrinking), `1,2,4,8`.

    Raises:
        UsageError: it is none of these, or a count is below 1.
    """
    counts: list[int] = []
    try:
        for part in text.split(","):
            first, colon, last = part.partition(":")
            low, high = int(first), int(last if colon else first)
            counts += range(low, high + 1) if low <= high else range(low, high - 1, -1)
    except ValueError:
        raise UsageError(f"--channels {text!r} is not a count, a range or a list, e.g. 8, 1:10 or 1,2,4,8") from None
    if min(counts) < 1:
        raise UsageError(f"--channels {text!r}: {min(counts)} channels cannot carry a stream; give 1 or more")
    return counts


@contextmanager
def typed(arguments: Sequence[str]) -> Iterator[None]:
    """While this lasts, `command_line` tells of these arguments."""
    outer = _typed.set(tuple(arguments))
    try:
        yield
    finally:
        _typed.reset(outer)


def command_line() -> str:
    """The command as it was typed, for manifests; values of settings that hold secrets are left out."""
    import shlex

    words = [re.sub(rf"(?i)^((?:--conf=)?[^=]*({_SECRET})[^=]*=).*", r"\1...", word) for word in _typed.get()]
    return shlex.join(["adapt", *words])
