"""Options that several commands share, each defined once."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from adapt.core.errors import UsageError

if TYPE_CHECKING:
    from adapt.traces.session import SparkOptions

SPARK_PANEL = "Spark"
EXPERT_PANEL = "For experts"

MasterOption: TypeAlias = Annotated[
    str, typer.Option("--master", help="Where Spark runs.", rich_help_panel=SPARK_PANEL, envvar="ADAPT_MASTER")
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
        "--sigma", help="Part of the tolerated imbalance left to untracked keys.", rich_help_panel=EXPERT_PANEL
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


def command_line() -> str:
    """The command as it was typed, for manifests."""
    import shlex
    import sys

    return shlex.join(["adapt", *sys.argv[1:]])
