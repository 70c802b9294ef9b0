"""Options of a stage that joins two streams, and how they are read."""

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from adapt.cli.options.stage import above_0, amount_of
from adapt.core.errors import UsageError

if TYPE_CHECKING:
    from adapt.core.stage.conditions.join import Join

JOIN_PANEL = "A join of two streams"

JoinOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--join",
        metavar="COLUMN",
        help="Join the rows of equal key whose COLUMN differs, such as stream; it has two values.",
        rich_help_panel=JOIN_PANEL,
    ),
]
JoinWindowOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--join-window",
        metavar="10s",
        help="Rows match if they are at most so far apart, in the time of the trace; --shed 5000 holds them so long.",
        rich_help_panel=JOIN_PANEL,
    ),
]
MatchTimeOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--match-time",
        metavar="1us",
        help="CPU for each match of a row, beside what the row costs; 1us if left out.",
        rich_help_panel=JOIN_PANEL,
        show_default=False,
    ),
]


def join_of(column: str | None, window: str | None, match_time: str | None) -> "Join | None":
    """What is joined, or nothing.

    Raises:
        UsageError: there is a join without a window, or a window or cost without a join.
    """
    from adapt.core.stage.conditions.join import Join
    from adapt.core.units.amounts import seconds_of

    if column is None:
        for option, given in (("--join-window", window), ("--match-time", match_time)):
            if given is not None:
                raise UsageError(f"{option} {given} is of a join; say with --join COLUMN which two streams are joined")
        return None
    if window is None:
        raise UsageError(
            f"--join {column} says not how far apart rows may be that match; give --join-window, such as 10s"
        )
    match_s = 1e-6 if match_time is None else amount_of("--match-time", match_time, seconds_of)
    return Join(round(above_0("--join-window", window) * 1e6), match_s)


def sweep_of(text: str | None) -> tuple[float, ...]:
    """The values of tau1 to sweep.

    Raises:
        UsageError: it is none, or of something else.
    """
    if text is None:
        return ()
    name, _, values = text.partition("=")
    try:
        if name.strip() != "tau1":
            raise ValueError(name)
        return tuple(float(value) for value in values.split(","))
    except ValueError:
        raise UsageError(f"--sweep {text!r} is not values of tau1 with commas, such as tau1=0.2,0.4,0.6") from None
