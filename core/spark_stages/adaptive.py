"""Effect of adaptive execution on a stage."""

from collections.abc import Mapping

from adapt.core.joins.adaptive import ADVISORY, ENABLED, FACTOR, SKEW, THRESHOLD, Adaptive
from adapt.core.phrases import counted
from adapt.core.spark_stages.plan import Operator
from adapt.core.spark_stages.tasks import TimesOfTasks
from adapt.core.values import size

_SPLIT = ({"Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti"}, {"Inner", "Cross", "RightOuter"})
"""Joins of which the left and the right side can be split."""


def effect_of_adaptive(operator: Operator, times: TimesOfTasks, conf: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """What adaptive execution did with a stage, and why not more.

    Returns:
        A sentence, and the settings with which it would split the largest partition.
    """
    reason, changes = _why_not(operator, times, conf)
    for name in (ENABLED, f"{SKEW}.enabled") if operator.join else (ENABLED,):
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
    settings = Adaptive.from_conf(conf)
    what = f"the largest partition of the {name} side has {size(of.largest)}"
    if operator.join not in _SPLIT[side.at]:
        return f"it cannot split the {name} side of a {operator.join} join", {}
    if over <= settings.factor:
        return f"{what}, {over:.3g} times the median, and {FACTOR} is {settings.factor:g}", {}
    if of.largest <= settings.threshold:
        part = max(of.largest / (2 * times.slots), of.median)  # some for every slot
        lower = {THRESHOLD: str(int(of.largest / 2)), ADVISORY: str(int(part))}
        return f"{what}, and {THRESHOLD} is {size(settings.threshold)}", lower
    reason = "a later operator needs its keys together, or one map task wrote it"
    return f"{what}, above both thresholds; {reason}", {"spark.sql.adaptive.forceOptimizeSkewedJoin": "true"}
