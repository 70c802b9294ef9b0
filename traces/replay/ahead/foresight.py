"""Estimated time of a replay, measured on a short part of it."""

from collections.abc import Callable
from dataclasses import dataclass

from adapt.core.errors import UsageError
from adapt.core.phrases import counted
from adapt.core.values import duration

SAID_S, REFUSED_S = 60.0, 3600.0
"""A longer run says so before it starts; one of more than an hour has to be asked for."""

FEW_ROWS, FEW_TICKS = 3_000_000, 2_000
"""Rows and control periods, over all cases, that take less than a minute anywhere, so that they need no estimate."""

FEW, STEP, ENOUGH_S = 64, 8, 0.1
"""Rows or control periods that are measured first, how many more are next, and the time that measures them."""


@dataclass(frozen=True, slots=True)
class Length:
    """What the time of a replay depends on.

    Attributes:
        rows: Rows of the stream.
        ticks: Control periods.
        cases: How often the stream is run.
    """

    rows: int
    ticks: float = 0.0
    cases: int = 1

    @property
    def is_small(self) -> bool:
        """Whether it takes less than a minute on any machine."""
        return self.cases * self.rows < FEW_ROWS and self.cases * self.ticks < FEW_TICKS

    def __str__(self) -> str:
        ticks = f" and {counted(round(self.ticks), 'control period')}" if self.ticks >= 1 else ""
        return f"{counted(self.cases, 'case')} of {counted(self.rows, 'row')}{ticks}"


@dataclass(frozen=True, slots=True)
class Foresight:
    """Announces the time of a long replay, and refuses very long ones.

    Attributes:
        clock: Seconds.
        say: Called with the sentence.
        allowed: Whether a run of more than an hour may start.
    """

    clock: Callable[[], float]
    say: Callable[[str], None]
    allowed: bool = False

    def foresee(
        self,
        length: Length,
        of_rows: Callable[[int], object],
        of_ticks: Callable[[int], object],
        instead: str,
        times: float = 1.0,
        least_s: float = 0.0,
    ) -> None:
        """Estimate the time of a replay from a part of it.

        Args:
            of_rows: Runs the first rows, all cases.
            of_ticks: Runs a number of control periods with next to no rows, all cases.
            instead: What makes the replay shorter.
            times: How often that is run, over the runs at once.
            least_s: How long the replay takes at least, however fast the machine.

        Raises:
            UsageError: It takes more than an hour, which is not allowed.
        """
        row_s = tick_s = 0.0
        if not length.is_small:
            row_s = self._each_s(of_rows, length.rows)
            tick_s = self._each_s(of_ticks, length.ticks) if length.ticks > FEW else 0.0
        self.judge(max(times * (length.rows * row_s + length.ticks * tick_s), least_s), str(length), instead)

    def judge(self, seconds: float, what: str, instead: str) -> None:
        """Say how long a run takes, or refuse it.

        Raises:
            UsageError: It takes more than an hour, which is not allowed.
        """
        if seconds > REFUSED_S and not self.allowed:
            raise UsageError(
                f"the run would take about {duration(seconds)} on this machine ({what}); {instead}, or give --yes"
            )
        if seconds > SAID_S:
            self.say(f"the run takes about {duration(seconds)} on this machine ({what})")

    def _each_s(self, run: Callable[[int], object], most: float) -> float:
        """Seconds of one more, by parts that grow until they take long enough."""
        count = min(FEW, int(most))
        run(count)  # loads or compiles what is measured next
        least_s, few = self._took_s(run, count), count
        while count < most:
            count = int(min(most, STEP * count))
            took_s = self._took_s(run, count) - least_s
            if took_s >= ENOUGH_S or count + 1 > most:
                return max(0.0, took_s) / (count - few)
        return 0.0

    def _took_s(self, run: Callable[[int], object], count: int) -> float:
        start_s = self.clock()
        run(count)
        return self.clock() - start_s
