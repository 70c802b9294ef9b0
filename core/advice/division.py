"""Whole units of work (key groups, partitions) over workers: what the busiest has too much, and what divides better."""

from dataclasses import dataclass

from adapt.core.errors import UsageError

MOST_WORKERS = 1_000_000


@dataclass(frozen=True, slots=True)
class Division:
    """Units dealt to workers as evenly as whole units can be: some have one more than others.

    Flink gives subtask i the key groups g with floor(g n / P) = i, and Kafka's range, round-robin and sticky assignors
    give each consumer of a topic floor(P/n) or ceil(P/n) partitions: all leave the busiest with ceil(P/n).

    Attributes:
        units: P, at least 1.
        workers: n, at least 1.

    Raises:
        UsageError: they are not.
    """

    units: int
    workers: int

    def __post_init__(self) -> None:
        if self.units < 1 or not 1 <= self.workers <= MOST_WORKERS:
            raise UsageError(
                f"{self.units} units of work do not divide over {self.workers} workers: give 1 or more of each, and at"
                f" most {MOST_WORKERS:,} workers"
            )

    @property
    def busiest(self) -> int:
        """Units of the worker that has most."""
        return -(-self.units // self.workers)

    @property
    def least(self) -> int:
        """Units of the worker that has fewest."""
        return self.units // self.workers

    @property
    def idle(self) -> int:
        """Workers without any unit."""
        return max(0, self.workers - self.units)

    @property
    def loss(self) -> float:
        """What the busiest worker has beyond the mean, as a part of the mean: 0 is even, 1 is twice the mean.

        With keys spread evenly over units this is the least excess that any stream can have here; the workers together
        then do 1 / (1 + loss) of what they could.
        """
        return (self.busiest * self.workers - self.units) / self.units

    def halves(self, other: "Division") -> bool:
        """Whether the loss is at most half of another's, exactly, and less than it."""
        mine, its = (each.busiest * each.workers - each.units for each in (self, other))
        return its > 0 and 2 * mine * other.units <= its * self.units


def better_workers(division: Division) -> tuple[Division | None, Division | None]:
    """The nearest fewer and the nearest more workers that lose at most half; None where there are none.

    More workers than units only stand idle, so none such are named.
    """
    units, workers = division.units, division.workers
    fewer = (Division(units, count) for count in range(min(workers - 1, units), 0, -1))
    more = (Division(units, count) for count in range(workers + 1, units + 1))
    return (
        next((other for other in fewer if other.halves(division)), None),
        next((other for other in more if other.halves(division)), None),
    )


def better_units(division: Division, most: int) -> Division | None:
    """The nearest larger number of units, up to `most`, that loses at most half; None if none does.

    At the latest this is the next multiple of the workers.
    """
    even = -(-division.units // division.workers) * division.workers
    candidates = (Division(units, division.workers) for units in range(division.units + 1, min(even, most) + 1))
    return next((other for other in candidates if other.halves(division)), None)


def even_units(division: Division, most: int) -> Division | None:
    """The least number of units from those given up, at most `most`, that the workers share evenly."""
    even = Division(division.busiest * division.workers, division.workers)
    return even if even.units <= most else None
