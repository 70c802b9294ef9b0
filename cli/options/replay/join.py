"""Options of a windowed join, shared by `replay flux` and `elastic`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from adapt.cli.options.amounts import above_0, seconds
from adapt.cli.options.groups import setting
from adapt.core.errors import UsageError

if TYPE_CHECKING:
    from adapt.core.stage.conditions.growth import Join


@dataclass(frozen=True, slots=True)
class JoinOptions:
    """The windowed join of two streams."""

    OPTION: ClassVar[str] = "--join"
    HEAD: ClassVar[str] = "join"
    UNLESS: ClassVar[tuple[str, ...]] = ("--stages", "--state")
    join: str | None = setting(
        None, "Join rows with equal keys and different values in COLUMN, which has two values.", "COLUMN"
    )
    window: str | None = setting(
        None,
        "How far apart matching rows may be, in trace time. With --shed 5000, workers keep rows that long.",
        "10s",
        needs="--join",
    )
    match_time: str | None = setting(
        None, "CPU time per match, in addition to that of the row (default: 1us).", "1us", shown=False, needs="--join"
    )

    def joined(self) -> "Join | None":
        """The join; None without one."""
        from adapt.core.stage.conditions.growth import Join

        if self.join is None:
            return None
        if self.window is None:
            raise UsageError(f"--join needs a window, such as {self.join}:window=10s")
        match_s = 1e-6 if self.match_time is None else seconds("--join match-time", self.match_time)
        return Join(round(above_0("--join window", self.window) * 1e6), match_s)
