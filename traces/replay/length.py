"""Length of a replay, computed from its arguments before work starts."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType

from adapt.core.errors import UsageError
from adapt.core.phrases import counted
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.offered_load import Bounds, network_s
from adapt.core.stage.outcome import usual_interval_s

MOST = {"row": 10_000_000_000, "control period": 500_000}
"""Most of each in a replay, over all cases.

A case may always have as many control periods as rows, and `FEW`. So a replay of few rows takes seconds,
however far apart they are.
"""

FEW = 1000
"""Control periods of a case that are always possible."""


@dataclass(frozen=True, slots=True)
class Length:
    """What the time of a replay depends on."""

    rows: int  # of the stream
    periods: float = 0.0  # control periods
    cases: int = 1  # how often the stream is run

    def check(self, instead: str, further: Mapping[str, str] = MappingProxyType({})) -> None:
        """Refuse a replay that is too long.

        Args:
            instead: What makes it shorter.
            further: What also does where there is too much of one thing.
        """
        for (what, most), each in zip(MOST.items(), (self.rows, self.periods), strict=True):
            most = max(most, self.cases * max(self.rows, FEW)) if what != "row" else most
            if self.cases * each > most:
                raise UsageError(
                    f"the replay has {counted(self.cases, 'case')} of {counted(round(each), what)}, and at most"
                    f" {counted(most, what)} in all are simulated; {further.get(what, '')}{instead}"
                )


def stage_length(
    bounds: Bounds,
    settings: StageSettings,
    period_s: float,
    cases: int,
    duration_s: float | None,
    restart_s: float = 0.0,
) -> Length:
    """Length of the replay of a stage, without rebalancing.

    Until the last row arrives if workers stop for good.

    Args:
        period_s: How often controllers run.
        restart_s: Fixed time of a restart, which may come last.
    """
    ends_s = bounds.static_s if isfinite(bounds.static_s) else bounds.last_s
    interval_s = usual_interval_s(bounds, duration_s, restart_s)
    ends_s = max(ends_s, network_s(settings, bounds.rows), restart_s, interval_s)  # a sample ends late
    ends_s = ends_s if duration_s is None else min(ends_s, duration_s)
    return Length(bounds.rows, ends_s / period_s, cases)
