"""Effect of adaptive execution on a stage."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from adapt.core.phrases import counted
from adapt.core.spark_stages.plan import Operator, Side
from adapt.core.spark_stages.tasks import Amounts, TimesOfTasks
from adapt.core.values import size

_SIZE = re.compile(r"^\s*(\d+)\s*([kmgtp]?)(?:i?b)?\s*$", re.IGNORECASE)
_ENABLED = "spark.sql.adaptive.enabled"
_SKEW = "spark.sql.adaptive.skewJoin."
_THRESHOLD, _FACTOR = f"{_SKEW}skewedPartitionThresholdInBytes", f"{_SKEW}skewedPartitionFactor"
_ADVISORY = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
_FORCED = "spark.sql.adaptive.forceOptimizeSkewedJoin"
_SPLIT = ({"Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti"}, {"Inner", "Cross", "RightOuter"})
"""Joins of which the left and the right side can be split."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Properties of an application or query."""

    properties: Mapping[str, str]
    version: str = ""  # of Spark

    @property
    def is_adaptive(self) -> bool:
        """Whether adaptive execution is on; it is by default since 3.2."""
        default = not re.match(r"[12]\.|3\.[01]\b", self.version)
        return self.properties.get(_ENABLED, str(default)).lower() == "true"

    @property
    def splits(self) -> bool:
        """Whether it splits partitions of skewed joins."""
        return self.properties.get(f"{_SKEW}enabled", "true").lower() == "true"

    @property
    def threshold(self) -> int:
        """Bytes above which a partition may be split."""
        found = _SIZE.match(self.properties.get(_THRESHOLD, "")) or _SIZE.match("256m")
        assert found is not None
        return int(found[1]) << 10 * " kmgtp".index(found[2].lower() or " ")

    @property
    def factor(self) -> float:
        """Size of such a partition over the median."""
        given = self.properties.get(_FACTOR, "")
        return float(given) if re.fullmatch(r"\d+(\.\d+)?", given) else 5.0


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Effect of adaptive execution on a stage."""

    sentence: str  # what it did, and why not more
    changes: Mapping[str, str]  # settings with which it would do more

    @classmethod
    def of(cls, operator: Operator, times: TimesOfTasks, settings: Settings) -> "Adaptive":
        """By the sizes that the tasks of a stage have read."""
        if not settings.is_adaptive:
            return cls(f"Adaptive execution is off ({_ENABLED}=false).", _turned_on(operator, times, settings))
        merged = next((side for side in operator.sides if "coalesced" in side.read_by), None)
        did = f" It merged {merged.partitions:,} partitions into {counted(times.tasks, 'task')}." if merged else ""
        if not operator.join:
            return cls(f"Adaptive execution splits partitions of joins alone.{did}", {})
        if any("skewed" in side.read_by for side in operator.sides):
            return cls(
                f"Adaptive execution split skewed partitions; the longest task still takes {times.seconds.ratio:.3g}"
                f" times the mean.{did}",
                {},
            )
        if not settings.splits:
            return cls(
                f"Adaptive execution did not split it: {_SKEW}enabled is false.{did}",
                _turned_on(operator, times, settings),
            )
        sentence, changes = _why_not(operator, times, settings)
        return cls(f"Adaptive execution did not split it: {sentence}.{did}", changes)


def _largest(operator: Operator, times: TimesOfTasks) -> tuple[Side, Amounts] | None:
    """The side with the most uneven partitions, where sizes are known."""
    known = [pair for pair in zip(operator.sides, times.side_bytes, strict=True) if pair[1].largest]
    return max(known, key=lambda each: each[1].largest - each[1].median, default=None)


def _why_not(operator: Operator, times: TimesOfTasks, settings: Settings) -> tuple[str, Mapping[str, str]]:
    found = _largest(operator, times)
    if found is None:
        return "the log has no sizes of its partitions", {}
    side, of = found
    what = f"the largest partition of the {('left', 'right')[side.at]} side has {size(of.largest)}"
    if operator.join not in _SPLIT[side.at]:
        return f"it cannot split the {('left', 'right')[side.at]} side of a {operator.join} join", {}
    over = of.largest / of.median if of.median else float("inf")
    if over <= settings.factor:
        return f"{what}, {over:.3g} times the median, and {_FACTOR} is {settings.factor:g}", {}
    if of.largest <= settings.threshold:
        return f"{what}, and {_THRESHOLD} is {size(settings.threshold)}", _lower(of, times.slots)
    return (
        f"{what}, above both thresholds; a later operator needs its keys together, or one map task wrote it",
        {_FORCED: "true"},
    )


def _turned_on(operator: Operator, times: TimesOfTasks, settings: Settings) -> Mapping[str, str]:
    """Settings with which it splits a join that was not split; none where it would not."""
    found = _largest(operator, times)
    if not operator.join or found is None or operator.join not in _SPLIT[found[0].at]:
        return {}
    of = found[1]
    if of.largest <= settings.factor * of.median:
        return {}
    lower = _lower(of, times.slots) if of.largest <= settings.threshold else {}
    return {_ENABLED: "true", f"{_SKEW}enabled": "true", **lower}


def _lower(of: Amounts, slots: int) -> Mapping[str, str]:
    """A threshold below the largest partition, and parts of it for every slot."""
    part = max(of.largest / (2 * slots), of.median, 1)
    return {_THRESHOLD: str(int(of.largest / 2)), _ADVISORY: str(int(part))}
