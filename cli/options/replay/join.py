"""Options of a windowed join, shared by `replay flux` and `elastic`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from adapt.cli.options.amounts import above_0, seconds
from adapt.cli.options.groups import setting
from adapt.core.errors import UsageError

if TYPE_CHECKING:
    from adapt.core.stage.conditions.join import Join


@dataclass(frozen=True, slots=True)
class JoinOptions:
    """The windowed join of two streams."""

    PANEL: ClassVar[str] = "Join of two streams"
    join: str | None = setting(
        None, "Join rows with equal keys and different values in COLUMN, which has two values.", "COLUMN"
    )
    join_window: str | None = setting(
        None,
        "How far apart matching rows may be, in trace time. With --shed 5000, workers retain rows for it.",
        "10s",
    )
    match_time: str | None = setting(
        None, "CPU time per match, in addition to that of the row (default: 1us).", "1us", shown=False
    )

    def joined(self) -> "Join | None":
        """The join; None without one.

        Raises:
            UsageError: a join without a window, or a window or match time without a join.
        """
        from adapt.core.stage.conditions.join import Join

        if self.join is None:
            for option, given in (("--join-window", self.join_window), ("--match-time", self.match_time)):
                if given is not None:
                    raise UsageError(f"{option} needs --join COLUMN")
            return None
        if self.join_window is None:
            raise UsageError("--join needs --join-window, such as 10s")
        match_s = 1e-6 if self.match_time is None else seconds("--match-time", self.match_time)
        return Join(round(above_0("--join-window", self.join_window) * 1e6), match_s)
