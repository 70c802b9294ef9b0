"""Advice: division of work, useful workers, salts of hot keys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.engines.engine import WorkUnits
from adapt.core.errors import UsageError
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.measures.floors import best_possible
from adapt.core.partitioning.measures.plan_settings import PlanSettings
from adapt.core.table import Column, Kind, Table

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


MOST_SALTS = 1 << 14
"""Most salts; a key that needs more is better handled outside the keyed operator."""


@dataclass(frozen=True, slots=True)
class Salts:
    """Salts that bring one key within a limit."""

    placed: int  # fewest salts if the salted keys can be assigned to workers freely
    # fewest salts if an engine hashes KEY#0, KEY#1, ..., which may collide on a worker. None if more than
    # `MOST_SALTS` are needed
    hashed: int | None
    partials: int | None  # workers over which the key is then spread: partial results to merge per result


def salts_needed(key: str, load: int, total: int, partitioner: Partitioner, max_imbalance: Fraction) -> Salts:
    """Fewest salts with which a key alone overloads no worker.

    Rows get salts round-robin or at random, so each salted key has an equal share. Other keys on a worker are ignored:
    balancing them is the job of a plan.

    Args:
        load: Load of the key.
        total: Load of all keys.
        partitioner: Partitioner of the engine.
        max_imbalance: Tolerated load of a worker over the mean.
    """
    if not 0 <= load <= total or total < 1:
        raise UsageError(f"the load of a key must be between 0 and the total (got {load} of {total})")
    PlanSettings(max_imbalance=float(max_imbalance))
    channels = partitioner.channels
    if load * channels <= max_imbalance * total:
        return Salts(1, 1, 1)
    placed = -(-load * channels * max_imbalance.denominator // (max_imbalance.numerator * total))
    at = partitioner.channels_of(pa.array([f"{key}#{salt}" for salt in range(MOST_SALTS)])).astype(np.int64)
    fullest, used = fullest_so_far(at), used_so_far(at)
    for salts in range(placed, MOST_SALTS + 1):  # fewer are not enough even with a channel each
        if load * int(fullest[salts - 1]) * channels <= max_imbalance * total * salts:
            return Salts(placed, salts, int(used[salts - 1]))
    return Salts(placed, None, None)


def fullest_so_far(channels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Most of the first 1, 2, ... keys on one channel."""
    order = np.argsort(channels, kind="stable")
    by_channel = channels[order]
    starts = np.flatnonzero(np.diff(by_channel, prepend=-1))
    place = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    nth = np.empty_like(place)
    nth[order] = place + 1
    return np.maximum.accumulate(nth)


def used_so_far(channels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of channels used by the first 1, 2, ... keys."""
    firsts = np.zeros(len(channels), np.int64)
    firsts[np.unique(channels, return_index=True)[1]] = 1
    return np.cumsum(firsts)


MOST_UNITS = 1_000_000
"""Most units that are suggested where the engine has no limit."""

EXCESS = Column("excess", Kind.SHARE, about="load of the busiest above the mean, however balanced the keys")


def division_table(engine: str, units: WorkUnits, workers: int, number: int | None) -> Table:
    """Division of an engine's units of work, and better numbers nearby.

    Args:
        number: The units. None: the engine's default for this number of workers.
    """
    default = units.default(workers) if units.default else None
    asked = Division(number or default or 0, workers)
    rows = [("requested" if number else f"{engine}'s default", asked)]
    if default is not None and default != asked.units:
        rows.append((f"{engine}'s default", Division(default, workers)))
    rows += _better(asked, units.most or MOST_UNITS, f"more {units.short}")
    if units.most is not None and asked.units < units.most:
        rows.append((f"max {units.short}", Division(units.most, workers)))
    columns = (
        Column("case"),
        Column(units.count, Kind.COUNT),
        Column(units.name.replace(" ", "_"), Kind.COUNT),
        Column("busiest", Kind.COUNT, about=f"{units.short} of the busiest worker"),
        Column("fewest", Kind.COUNT, about=f"{units.short} of the least busy worker"),
        Column("idle", Kind.COUNT, about=f"{units.workers} without {units.short}"),
        EXCESS,
    )
    cells = [(case, each.workers, each.units, each.busiest, each.fewest, each.idle, each.excess) for case, each in rows]
    default_note = f" The default for {workers} {units.workers} is {default}." if default else ""
    return Table.from_rows(f"{engine}: {units.name} over {units.workers}", columns, cells, units.note + default_note)


def _better(asked: Division, most: int, more_units: str) -> list[tuple[str, Division]]:
    """The nearest numbers that at least halve the excess, and the nearest that divides evenly."""
    fewer, more = better_workers(asked)
    named = [
        ("fewer workers", fewer),
        ("more workers", more),
        (more_units, better_units(asked, most)),
        ("even", even_units(asked, most) if asked.excess else None),
    ]
    found: list[tuple[str, Division]] = []
    for name, division in named:
        if division is not None and division not in [known for _, known in found]:
            found.append((name, division))
    return found


@dataclass(frozen=True, slots=True)
class HotKey:
    """A key as text, with bounds of its load."""

    key: str
    low: int
    high: int


def keys_table(
    keys: Sequence[HotKey], total: int, parallelism: int, engine: str, partitioner: Partitioner, max_imbalance: Fraction
) -> Table:
    """Salts of hot keys, by the upper bounds of their loads."""
    columns = (
        Column("key"),
        Column("share", Kind.SHARE, about="upper bound of its share of the load"),
        Column("alone", Kind.RATIO, about="load of its worker over the mean, if it is the only key there"),
        Column("salts", Kind.COUNT, about="number of salted keys if you assign each to a worker"),
        Column("salts_hashed", Kind.COUNT, about=f"number of salted keys if {engine} hashes KEY#0, KEY#1, ..."),
        Column("partials", Kind.COUNT, about="partial results to merge per result, with salts_hashed"),
    )
    rows: list[tuple[Any, ...]] = []
    for each in keys:
        salts = salts_needed(each.key, each.high, total, partitioner, max_imbalance)
        share = each.high / total
        rows.append((each.key, share, share * parallelism, salts.placed, salts.hashed, salts.partials))
    note = (
        f"1 salt: no need to split. With these salts the key alone puts no worker above {float(max_imbalance):g} times"
        f" the mean load. A dash: more than {MOST_SALTS:,} salts."
    )
    return Table.from_rows("Salts of hot keys", columns, rows, note)


def useful_table(keys: Sequence[HotKey], total: int, parallelism: int) -> Table:
    """Workers that can be busy while the hottest key stays whole."""
    hottest = keys[0]
    most = total / hottest.low if hottest.low else None
    columns = (
        Column("hottest_key"),
        Column("share", Kind.SHARE),
        Column("useful_workers", Kind.NUMBER, about="1 / share: more workers than that cannot all be busy"),
        Column("best_possible", Kind.RATIO, about=f"lower bound of the imbalance at {parallelism} workers"),
    )
    row = (hottest.key, hottest.low / total, most, best_possible([each.low for each in keys], total, parallelism))
    return Table.from_rows("Useful workers", columns, [row])


def operators_named(given: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Operators with their key columns as typed, e.g. "count=user,page"."""
    operators: dict[str, tuple[str, ...]] = {}
    for text in given:
        name, equals, columns = (side.strip() for side in text.partition("="))
        keys = tuple(dict.fromkeys(column.strip() for column in columns.split(",")))
        if not (name and equals and all(keys)):
            raise UsageError(f"an operator is OPERATOR=COLUMN,..., such as count=user,page (got {text!r})")
        if name in operators:
            raise UsageError(f"operator {text}: {name} is given twice; name each operator once")
        operators[name] = keys
    return operators


def region_key(operators: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Key columns that all operators share, as the first orders them.

    Rows with equal keys in an operator have equal columns here, so partitioning by these columns, or any of them,
    keeps the state of every operator whole. All of them split the stream most finely.

    Args:
        operators: Key columns of each partitioned stateful operator; stateless ones do not matter.

    Source: partitioning functions, section 2: operators can be combined if their keys have a common subset.
    """
    common: tuple[str, ...] | None = None
    for name, keys in operators.items():
        if common is None:
            common = tuple(keys)
        shared = tuple(key for key in common if key in keys)
        if not shared:
            raise UsageError(
                f"operator {name} (by {', '.join(keys)}) shares no key column with the operators before it (by"
                f" {', '.join(common)}); put it in a parallel region of its own"
            )
        common = shared
    return common or ()


def region_table(operators: Mapping[str, Sequence[str]]) -> Table:
    """The operators of a region with their key columns."""
    key = ", ".join(region_key(operators))
    columns = (
        Column("operator"),
        Column("keys", about="key columns of the operator"),
        Column("region_keys", about="key columns that all operators share"),
    )
    rows = [(name, ", ".join(keys), key) for name, keys in operators.items()]
    return Table.from_rows("Parallel region", columns, rows, f"Partition the region by {key}.")
