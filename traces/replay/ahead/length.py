"""Length of a replay, computed from its arguments before work starts."""

from dataclasses import dataclass
from math import isfinite

from adapt.core.errors import UsageError
from adapt.core.phrases import counted
from adapt.core.stage.input.offered_load import Bounds

MOST_ROWS, MOST_PERIODS = 10_000_000_000, 5_000_000
"""Rows and control periods, over all cases, above which a replay takes hours on any machine, so it is refused."""


@dataclass(frozen=True, slots=True)
class Length:
    """What the time of a replay depends on."""

    rows: int  # of the stream
    periods: float = 0.0  # control periods
    cases: int = 1  # how often the stream is run

    def check(self, instead: str) -> None:
        """Refuse a replay that is too long.

        Args:
            instead: What makes it shorter.
        """
        for what, each, most in (("row", self.rows, MOST_ROWS), ("control period", self.periods, MOST_PERIODS)):
            if self.cases * each > most:
                raise UsageError(
                    f"the replay has {counted(self.cases, 'case')} of {counted(round(each), what)}, and at most"
                    f" {counted(most, what)} in all are simulated; {instead}"
                )


def stage_length(bounds: Bounds, period_s: float, cases: int, duration_s: float | None) -> Length:
    """Length of the replay of a stage, without rebalancing.

    Until the last row arrives if workers stop for good.

    Args:
        period_s: How often controllers run, or the series are sampled.
    """
    ends_s = bounds.static_s if isfinite(bounds.static_s) else bounds.last_s
    return Length(bounds.rows, (ends_s if duration_s is None else min(ends_s, duration_s)) / period_s, cases)
