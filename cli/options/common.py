"""Options that several commands share, each defined once."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from adapt.cli.options.schemes import CurrentSchemeChoice
from adapt.core.errors import UsageError
from adapt.core.keys.names import HashName
from adapt.core.partitioning.schemes.names import UtilityName
from adapt.core.stream import Weight

if TYPE_CHECKING:
    from adapt.core.counting.sliding import SlidingWindow
    from adapt.traces.spark.session import SparkOptions

_typed: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())
_SECRET = "secret|password|token|access[.]?key"
"""What Spark too takes for the name of a setting that is nobody else's business."""

MOST_CHANNELS = 1_000_000
"""No command takes more channels; such a number is a slip."""

_MOST_COUNTS = 10_000

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
MeasureOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        metavar="RESOURCE=COLUMN",
        help="Measure state, computation or network by a column, not by its letter: count, cost or bytes of a trace,"
        " a heading of a CSV; repeatable.",
        rich_help_panel=EXPERT_PANEL,
        show_default=False,
    ),
]
ToleranceOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--tolerance",
        metavar="A|A,A,A",
        help="Tolerated imbalance: one number, or one for each resource. The verdict takes that of the network as its"
        " limit on the fullest channel over the average; constructions, on the fullest over the emptiest.",
    ),
]
EngineOption: TypeAlias = Annotated[
    CurrentSchemeChoice, typer.Option("--engine", help="What places the keys of the stream today, for the verdict.")
]
AllOption: TypeAlias = Annotated[
    bool, typer.Option("--all", help="Show all columns and rows, not only what is needed first.")
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
        help="Track the K heaviest keys; if left out, those that reach delta, and 1000 at least where level is used.",
        rich_help_panel=EXPERT_PANEL,
    ),
]
WeightOption: TypeAlias = Annotated[
    Weight | None,
    typer.Option("--weight", help="What a row weighs; cost where the trace has costs, else count.", show_default=False),
]
ExactOption: TypeAlias = Annotated[
    bool,
    typer.Option("--exact", help="Count a trace exactly, not lossily with an error that serves these channels."),
]
UtilityOption: TypeAlias = Annotated[
    UtilityName,
    typer.Option("--utility", help="How balance and migration are combined.", rich_help_panel=EXPERT_PANEL),
]
HashOption: TypeAlias = Annotated[HashName, typer.Option("--hash", help="Hash of keys.", rich_help_panel=EXPERT_PANEL)]
MaxParallelismOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--max-parallelism",
        metavar="N",
        help="Key groups of schemes that have them; Flink's default if left out.",
        rich_help_panel=EXPERT_PANEL,
        show_default=False,
    ),
]
MovesOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--moves",
        metavar="C",
        min=1,
        help="How often readj may move each key; as often as it likes if left out.",
        rich_help_panel=EXPERT_PANEL,
        show_default=False,
    ),
]
CapacityOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--capacity",
        metavar="X,X,X",
        help="What each channel can carry in relation to the others, e.g. 1,1,2: loads are then utilisations.",
        rich_help_panel=EXPERT_PANEL,
        show_default=False,
    ),
]
PinOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--pin",
        metavar="KEY=CHANNEL",
        help="Keep this key on this channel, whatever it weighs; repeatable.",
        rich_help_panel=EXPERT_PANEL,
        show_default=False,
    ),
]
PinsOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--pins", metavar="FILE.csv", help="Pins as a CSV of key,channel.", rich_help_panel=EXPERT_PANEL),
]
MaxMigrationOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--max-migration",
        metavar="X|P%",
        help="Most state that may migrate in a step: in units of m (1 is an average channel's), or of all state.",
        rich_help_panel=EXPERT_PANEL,
        show_default=False,
    ),
]
TrackKeysOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--track-keys",
        metavar="FILE",
        help="Track exactly the keys in this file, one a line.",
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
    from adapt.traces.spark.session import SparkOptions

    settings = dict(setting.partition("=")[::2] for setting in conf)
    for setting in conf:
        if "=" not in setting or setting.startswith("="):
            raise UsageError(f"--conf {setting!r} is not NAME=VALUE, e.g. spark.driver.memory=4g")
    return SparkOptions(master, settings)


def channel_counts(text: str) -> list[int]:
    """Channel counts in turn: `8`, `1:10` (both ends), `10:4` (shrinking), `1,2,4,8`.

    Raises:
        UsageError: it is none of these, a count is below 1 or above `MOST_CHANNELS`, or there are too many counts.
    """
    counts: list[int] = []
    for part in text.split(","):
        first, colon, last = part.partition(":")
        try:
            low, high = int(first), int(last if colon else first)
        except ValueError:
            raise UsageError(
                f"--channels {text!r} is not a count, a range or a list, e.g. 8, 1:10 or 1,2,4,8"
            ) from None
        for end in (low, high):
            check_channels(end, text)
        if len(counts) + abs(high - low) >= _MOST_COUNTS:
            raise UsageError(f"--channels {text!r} is more than {_MOST_COUNTS:,} counts; give a shorter range")
        counts += range(low, high + 1) if low <= high else range(low, high - 1, -1)
    return counts


def check_channels(channels: int, text: str = "") -> None:
    """Check a count of channels, which was typed as a part of `text`.

    Raises:
        UsageError: it is below 1 or above `MOST_CHANNELS`.
    """
    given = f"--channels {text or channels}"
    if channels < 1:
        raise UsageError(f"{given}: {channels} channels cannot carry a stream; give 1 or more")
    if channels > MOST_CHANNELS:
        raise UsageError(f"{given}: {channels:,} channels are more than the {MOST_CHANNELS:,} there may be")


def sliding(window: str | None, counters: int) -> "SlidingWindow | None":
    """The sliding window that was asked for.

    Raises:
        UsageError: it is no length, or cannot be cut among so many counters.
    """
    from adapt.core.counting.sliding import SlidingWindow
    from adapt.core.units.row_or_time_span import Length

    return None if window is None else SlidingWindow(Length.parse(window, "window"), counters)


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
