"""Options of how fast a trace is replayed."""

from adapt.cli.options.groups import setting
from adapt.core.stage.input.speed import OFFERED, Speed, speeds_of
from adapt.core.units.settings import same, settings


@settings()
class PoolSpeed(Speed):
    """How fast a trace is replayed through a pool of workers."""

    offered: float | None = same(
        Speed,
        "offered",
        help="Load of the pool over its capacity (default: 0.2). It sets the speed of the replay.",
        needs=(),
        unless=(),
    )


@settings()
class ComparedSpeedOptions:
    """How fast a trace is replayed through several mechanisms."""

    offered: str | None = setting(
        None,
        "Load of static-uniform's busiest channel of N (default: 1.2), which sets the speed. Of a list such as"
        " 0.5,0.8,1.2 the highest is recommended for.",
        "RATIO[,...]",
        shown=False,
    )
    speedup: str | None = same(Speed, "speedup", placeholder="RATIO[,...]", range=None, needs=())

    @property
    def chosen(self) -> bool:
        """Whether an option sets the speed."""
        return (self.offered, self.speedup) != (None, None)

    def speeds(self) -> tuple[Speed, ...]:
        """The speeds, in the order given."""
        return speeds_of(self.offered, self.speedup, OFFERED)

    @property
    def highest(self) -> Speed:
        """The highest speed."""
        return max(self.speeds(), key=lambda each: each.offered or each.speedup or 0.0)
