"""Adaptive execution of Spark: which partitions of a join it splits."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.joins.loads import Side, Tasks

ENABLED = "spark.sql.adaptive.enabled"
SKEW = "spark.sql.adaptive.skewJoin"
THRESHOLD = f"{SKEW}.skewedPartitionThresholdInBytes"
FACTOR = f"{SKEW}.skewedPartitionFactor"
ADVISORY = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
BROADCAST = "spark.sql.autoBroadcastJoinThreshold"
PARTITIONS = "spark.sql.shuffle.partitions"
MIB = 1 << 20

_SIZES = {"threshold": THRESHOLD, "advisory": ADVISORY, "broadcast": BROADCAST}
_SIZES |= {"input_split": "spark.sql.files.maxPartitionBytes"}
_SIZE = re.compile(r"(-?\d+)\s*([kmgtp]?)b?", re.IGNORECASE)
_SMALL, _MERGED = 0.2, 1.2
"""Parts of less than this share of the target join a neighbor, and two of less than this much together."""


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Settings of adaptive execution; the defaults are Spark's."""

    is_on: bool = True  # adaptive execution, and its handling of skewed joins
    factor: float = 5.0  # a split partition is larger than this times the median
    threshold: int = 256 * MIB  # and larger than this many bytes
    advisory: int = 64 * MIB  # bytes of a part, at least
    broadcast: int = 10 * MIB  # an input of up to so many bytes is broadcast
    input_split: int = 128 * MIB  # bytes that a task reads of a file, of which each part is one piece at least

    @classmethod
    def from_conf(cls, conf: Mapping[str, str]) -> "Adaptive":
        """The settings among those of a Spark session."""
        on = [conf.get(name, "true").lower() == "true" for name in (ENABLED, f"{SKEW}.enabled")]
        factor = conf.get(FACTOR, "5")
        if not factor.replace(".", "", 1).isdecimal():
            raise UsageError(f"--spark-conf {FACTOR} must be a number (got {factor!r})")
        given: dict[str, Any] = {field: _bytes_of(name, conf[name]) for field, name in _SIZES.items() if name in conf}
        return cls(all(on), float(factor), **given)


def _bytes_of(name: str, text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"--spark-conf {name} must be a size such as 64MB (got {text!r})")
    return int(found[1]) << 10 * " kmgtp".index(found[2].lower() or " ")


@dataclass(frozen=True, slots=True)
class Splits:
    """What becomes of the partitions of one input."""

    sizes: NDArray[np.float64]  # bytes of each partition; shape (tasks,)
    median: float
    limit: float  # bytes above which a partition is split
    parts: NDArray[np.int64]  # tasks that share each partition, 1 if it is whole; shape (tasks,)
    largest: NDArray[np.float64]  # share of the largest of its parts; shape (tasks,)


def splits_of(sizes: NDArray[np.float64], maps: int, settings: Adaptive) -> Splits:
    """Which partitions of an input are split, and into how many parts.

    Source: Spark, OptimizeSkewedJoin and ShufflePartitionsUtil; tested against Spark.
    """
    median = float(np.median(sizes))
    limit = max(settings.threshold, settings.factor * median)
    whole = sizes[sizes <= limit]
    target = max(settings.advisory, float(whole.mean()) if len(whole) else 0.0)
    parts, largest = np.ones(len(sizes), np.int64), np.ones(len(sizes))
    for at in np.flatnonzero(sizes > limit) if settings.is_on else ():
        found = parts_of([float(sizes[at]) / maps] * maps, target)
        parts[at], largest[at] = len(found), max(found) / float(sizes[at])
    return Splits(sizes, median, limit, parts, largest)


def parts_of(pieces: list[float], target: float) -> list[float]:
    """Sizes of the parts into which neighboring pieces are joined."""
    parts, held = list[float](), 0.0
    for at, piece in enumerate([*pieces, inf]):
        if at and held + piece > target:
            last = parts.pop() if parts else None
            joins = last is not None and (last + held < _MERGED * target or min(last, held) < _SMALL * target)
            parts += [held] if last is None else [last + held] if joins else [last, held]
            held = 0.0
        held += piece
    return parts


@dataclass(frozen=True, slots=True)
class Adapted:
    """What adaptive execution makes of an inner join."""

    left: Splits
    right: Splits
    tasks: Tasks  # the largest task of each partition

    @property
    def splits(self) -> int:
        """Partitions that are split."""
        return int(np.count_nonzero((self.left.parts > 1) | (self.right.parts > 1)))

    @property
    def copied(self) -> int:
        """Rows that more than one task reads, each time after the first."""
        mine, others = self.tasks.loads[0] / self.left.largest, self.tasks.loads[1] / self.right.largest
        return round(float((mine * (self.right.parts - 1) + others * (self.left.parts - 1)).sum()))


def adapted(left: Side, right: Side, tasks: Tasks, settings: Adaptive) -> Adapted | None:
    """What adaptive execution makes of tasks; None if sizes are unknown."""
    found = []
    for side, rows in ((left, tasks.loads[0]), (right, tasks.loads[1])):
        if side.bytes_a_row is None:
            return None
        maps = max(1, -(-(side.stored or side.bytes or 0) // settings.input_split))
        found.append(splits_of(rows * side.bytes_a_row, maps, settings))
    shares = [each.largest for each in found]
    return Adapted(found[0], found[1], Tasks(tasks.loads * np.stack([*shares, shares[0] * shares[1]])))
