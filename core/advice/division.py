"""Divide whole units of work (key groups, partitions) over workers."""

from dataclasses import dataclass

from adapt.core.errors import UsageError

MOST_WORKERS = 1_000_000


@dataclass(frozen=True, slots=True)
class Division:
    """Units dealt to workers as evenly as possible.

    Flink gives subtask i the key groups g with floor(g n / P) = i, and Kafka's range, round-robin and sticky assignors
    give each consumer of a topic floor(P/n) or ceil(P/n) partitions: all leave the busiest with ceil(P/n).
    """

    units: int  # P, at least 1
    workers: int  # n, at least 1

    def __post_init__(self) -> None:
        if self.units < 1 or not 1 <= self.workers <= MOST_WORKERS:
            raise UsageError(
                f"units and workers must be at least 1, and workers at most {MOST_WORKERS:,}"
                f" (got {self.units} units, {self.workers} workers)"
            )

    @property
    def busiest(self) -> int:
        """Units of the busiest worker."""
        return -(-self.units // self.workers)

    @property
    def fewest(self) -> int:
        """Units of the least busy worker."""
        return self.units // self.workers

    @property
    def idle(self) -> int:
        """Workers without a unit."""
        return max(0, self.workers - self.units)

    @property
    def excess(self) -> float:
        """Load of the busiest worker above the mean, relative to the mean.

        The lower bound for any stream, reached if keys spread evenly over units; the workers together then reach
        1 / (1 + excess) of their capacity.
        """
        return (self.busiest * self.workers - self.units) / self.units

    def halves(self, other: "Division") -> bool:
        """Whether the excess is at most half of another's, computed exactly."""
        mine, its = (each.busiest * each.workers - each.units for each in (self, other))
        return its > 0 and 2 * mine * other.units <= its * self.units


def better_workers(division: Division) -> tuple[Division | None, Division | None]:
    """Nearest smaller and larger numbers of workers that halve the excess.

    None where no number does.

    More workers than units would be idle, so they are not suggested.
    """
    units, workers = division.units, division.workers
    fewer = (Division(units, count) for count in range(min(workers - 1, units), 0, -1))
    more = (Division(units, count) for count in range(workers + 1, units + 1))
    return (
        next((other for other in fewer if other.halves(division)), None),
        next((other for other in more if other.halves(division)), None),
    )


def better_units(division: Division, most: int) -> Division | None:
    """Nearest larger number of units, up to `most`, that halves the excess.

    The next multiple of the workers always does.
    """
    even = -(-division.units // division.workers) * division.workers
    candidates = (Division(units, division.workers) for units in range(division.units + 1, min(even, most) + 1))
    return next((other for other in candidates if other.halves(division)), None)


def even_units(division: Division, most: int) -> Division | None:
    """Smallest larger number of units, up to `most`, that divides evenly."""
    even = Division(division.busiest * division.workers, division.workers)
    return even if even.units <= most else None
