"""Options of a stage that joins two streams."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from adapt.cli.options.amounts import above_0, seconds
from adapt.cli.options.groups import setting
from adapt.core.errors import UsageError

if TYPE_CHECKING:
    from adapt.core.stage.conditions.join import Join


@dataclass(frozen=True, slots=True)
class JoinOptions:
    """What is joined, within which window, and what a match costs."""

    PANEL: ClassVar[str] = "A join of two streams"

    join: str | None = setting(
        None, "Join the rows of equal key whose COLUMN differs, such as stream; it has two values.", "COLUMN"
    )
    join_window: str | None = setting(
        None,
        "Rows match if they are at most so far apart, in the time of the trace; --shed 5000 holds them so long.",
        "10s",
    )
    match_time: str | None = setting(
        None, "CPU for each match of a row, beside what the row costs; 1us if left out.", "1us", shown=False
    )

    def joined(self) -> "Join | None":
        """What is joined, or nothing.

        Raises:
            UsageError: there is a join without a window, or a window or cost without a join.
        """
        from adapt.core.stage.conditions.join import Join

        if self.join is None:
            for option, given in (("--join-window", self.join_window), ("--match-time", self.match_time)):
                if given is not None:
                    raise UsageError(
                        f"{option} {given} is of a join; say with --join COLUMN which two streams are joined"
                    )
            return None
        if self.join_window is None:
            raise UsageError(
                f"--join {self.join} says not how far apart rows may be that match; give --join-window, such as 10s"
            )
        match_s = 1e-6 if self.match_time is None else seconds("--match-time", self.match_time)
        return Join(round(above_0("--join-window", self.join_window) * 1e6), match_s)
