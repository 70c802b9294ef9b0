"""Effect of adaptive execution on a stage."""

import re
from collections.abc import Mapping

from adapt.core.phrases import counted
from adapt.core.spark_stages.plan import Operator
from adapt.core.spark_stages.tasks import TimesOfTasks
from adapt.core.values import size

ENABLED = "spark.sql.adaptive.enabled"
_SKEW = "spark.sql.adaptive.skewJoin"
_THRESHOLD, _FACTOR = f"{_SKEW}.skewedPartitionThresholdInBytes", f"{_SKEW}.skewedPartitionFactor"
_ADVISORY = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
_SPLIT = ({"Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti"}, {"Inner", "Cross", "RightOuter"})
"""Joins of which the left and the right side can be split."""

_MIB = 1 << 20
_SIZE = re.compile(r"(\d+)\s*([kmgtp]?)(?:i?b)?", re.IGNORECASE)


def effect_of_adaptive(operator: Operator, times: TimesOfTasks, conf: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """What adaptive execution did with a stage, and why not more.

    Returns:
        A sentence, and the settings with which it would split the largest partition.
    """
    reason, changes = _why_not(operator, times, conf)
    for name in (ENABLED, f"{_SKEW}.enabled") if operator.join else (ENABLED,):
        if conf.get(name, "true").lower() != "true":
            return f"Adaptive execution did not split it: {name} is false.", changes and {name: "true", **changes}
    merged = next((side for side in operator.sides if "coalesced" in side.read_by), None)
    did = f" It merged {merged.partitions:,} partitions into {counted(times.tasks, 'task')}." if merged else ""
    if any("skewed" in side.read_by for side in operator.sides):
        still = f"the longest task still takes {times.seconds.ratio:.3g} times the mean"
        return f"Adaptive execution split skewed partitions; {still}.{did}", {}
    return f"Adaptive execution did not split it: {reason}.{did}", changes


def _why_not(operator: Operator, times: TimesOfTasks, conf: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Why the largest partition is not split, and the settings with which it would be."""
    known = [pair for pair in zip(operator.sides, times.side_bytes, strict=True) if pair[1].largest]
    if not operator.join or not known:
        return "the log has no sizes of its partitions" if operator.join else "it splits joins only", {}
    side, of = max(known, key=lambda each: each[1].largest - each[1].median)
    name, over = ("left", "right")[side.at], of.largest / max(of.median, 1)
    factor, threshold = _number(conf.get(_FACTOR, ""), 5), _number(conf.get(_THRESHOLD, ""), 256 * _MIB)
    what = f"the largest partition of the {name} side has {size(of.largest)}"
    if operator.join not in _SPLIT[side.at]:
        return f"it cannot split the {name} side of a {operator.join} join", {}
    if over <= factor:
        return f"{what}, {over:.3g} times the median, and {_FACTOR} is {factor:g}", {}
    if of.largest <= threshold:
        part = max(of.largest / (2 * times.slots), of.median)  # some for every slot
        lower = {_THRESHOLD: str(int(of.largest / 2)), _ADVISORY: str(int(part))}
        return f"{what}, and {_THRESHOLD} is {size(threshold)}", lower
    reason = "a later operator needs its keys together, or one map task wrote it"
    return f"{what}, above both thresholds; {reason}", {"spark.sql.adaptive.forceOptimizeSkewedJoin": "true"}


def _number(text: str, default: float) -> float:
    """A size such as 64MB, or a plain number."""
    if re.fullmatch(r"\d+\.\d*", text):
        return float(text)
    found = _SIZE.fullmatch(text.strip())
    return float(int(found[1]) << 10 * " kmgtp".index(found[2].lower() or " ")) if found else default
