"""How long the replay of a stage takes."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

from adapt.core.stage.conditions.arrivals import Rows
from adapt.core.stage.input.offered_load import Bounds
from adapt.traces.replay.ahead.foresight import Foresight, Length
from adapt.traces.replay.ahead.parts import first_rows, two_rows

Part = Callable[[Rows, float], object]
"""Runs all cases on a part of the stream, with a length of the measurement intervals."""


@dataclass(frozen=True, slots=True)
class StageLength:
    """What the time of the replay of a stage depends on.

    Attributes:
        bounds: When it can end.
        period_s: How often its controllers run, or its series are sampled.
        cases: How often the stream is run.
        duration_s: When it stops; None, when all rows are processed.
    """

    bounds: Bounds
    period_s: float
    cases: int
    duration_s: float | None = None

    @property
    def span_s(self) -> float:
        """Simulated seconds of a case, without rebalancing.

        Until the last row arrives if workers stop for good.
        """
        ends_s = self.bounds.static_s if isfinite(self.bounds.static_s) else self.bounds.last_s
        return ends_s if self.duration_s is None else min(ends_s, self.duration_s)


def foresee_stage(foresight: Foresight, length: StageLength, rows: Rows, part: Part, instead: str) -> None:
    """Say how long the replay of a stage takes, or refuse it.

    Args:
        rows: The stream.
        instead: What makes the replay shorter.

    Raises:
        UsageError: It takes more than an hour, which is not allowed.
    """
    bounds, span_s = length.bounds, length.span_s
    of = Length(bounds.rows, span_s / length.period_s, length.cases)
    busy_s = bounds.row_s * bounds.rows / max(bounds.capacity.rate, 1.0)

    def of_rows(count: int) -> object:
        within_s = busy_s * count / bounds.rows
        return part(first_rows(rows, count, within_s), max(within_s, 1e-6))

    def of_ticks(count: int) -> object:
        return part(two_rows(rows, count * length.period_s), count * length.period_s)

    foresight.foresee(of, of_rows, of_ticks, instead)
