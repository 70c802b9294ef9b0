"""Remedies of a stage as PySpark code.

An event log has no key values, so the code finds hot keys by itself.
"""

import re

from adapt.core.spark_stages.plan import Operator, names
from adapt.core.spark_stages.tasks import TimesOfTasks

MOST_BROADCAST = 256 << 20
"""Bytes of a partition whose other side is broadcast; larger ones are salted."""

_MOST_SALTS = 64
_PLAIN = {"Inner": "inner", "LeftOuter": "left", "RightOuter": "right", "FullOuter": "full"}
_LEFT_ONLY = {"LeftSemi": "left_semi", "LeftAnti": "left_anti"}
_KEEPS = {"left": ("LeftOuter", "FullOuter"), "right": ("RightOuter", "FullOuter")}
"""Joins that keep rows of a side without a match."""

_HOT = """\
# Hot keys of `{skewed}` apart: {how}. The rows are those of the plain join.
from functools import reduce
from pyspark.sql import functions as F

# left, right: the inputs of the {name} on {on}
left_keys, right_keys = {left_keys}, {right_keys}
hot = {hot}.collect()


def is_hot(df, keys):
    some = [reduce(lambda a, b: a & b, [df[key] == F.lit(value) for key, value in zip(keys, row)]) for row in hot]
    return F.coalesce(reduce(lambda a, b: a | b, some, F.lit(False)), F.lit(False))


def joined(left, right, how, *more):
    return left.join(right, {on_columns}, how)


apart = is_hot({skewed}, {skewed}_keys){nulls}
hot_{skewed}, rest_{skewed} = {skewed}.where(apart), {skewed}.where(~apart)
hot_{other}, rest_{other} = {other}.where(is_hot({other}, {other}_keys)), {other}.where(~is_hot({other}, {other}_keys))
{parts}
result = of_hot.union(joined(rest_left, rest_right, "{rest}"))
"""

_BROADCAST = """\
hot_{other} = F.broadcast(hot_{other})
of_hot = joined(hot_left, hot_right, "{hot_join}")"""

_SALTED = """\
salts = {salts}
hot_{skewed} = hot_{skewed}.withColumn("_salt", F.monotonically_increasing_id() % salts)
hot_{other} = hot_{other}.withColumn("_salt", F.explode(F.sequence(F.lit(0), F.lit(salts - 1)).cast("array<long>")))
of_hot = joined(hot_left, hot_right, "{hot_join}", "_salt").drop("_salt")"""

_DISTINCT = """\
# A {name} with the distinct keys of `right` gives the same rows, and none of them is hot.
left_keys, right_keys, more = {left_keys}, {right_keys}, []
right = right.select(*right_keys).dropDuplicates()
result = left.join(right, {on_columns}, "{rest}")
"""

_BY_NAME = "[*left_keys, *more]"
_BY_BOTH = "[left[a] == right[b] for a, b in zip([*left_keys, *more], [*right_keys, *more])]"

_TWO_PHASES = """\
# Two phases: partial results by key and salt, then by key.
from pyspark.sql import functions as F

# df: the rows before the aggregation{inputs}
salts = {salts}
partial = df.groupBy({keys}, (F.monotonically_increasing_id() % salts).alias("_salt")).agg(
{partial}
)
result = partial.groupBy({keys}).agg(
{merged}
)
"""
_FUNCTION = re.compile(r"^(count|sum|min|max|avg)\((?!distinct )(.*)\)$")


def pyspark_code(operator: Operator, times: TimesOfTasks) -> str:
    """Code with the rows of the plain operator; empty without a remedy."""
    if not all(name.isidentifier() for keys in operator.keys for name in keys):
        return ""
    # as many salts as partitions, so that every slot has some
    salts = min(max(times.tasks, 2 * times.slots, *(side.partitions for side in operator.sides)), _MOST_SALTS)
    if operator.functions and not operator.is_merged:
        return _two_phases(operator, salts)
    is_known = len(operator.sides) == 2 and operator.join in {**_PLAIN, **_LEFT_ONLY}
    return _split_join(operator, times, salts) if is_known else ""


def _split_join(operator: Operator, times: TimesOfTasks, salts: int) -> str:
    at = max((0, 1), key=lambda side: times.side_rows[side].ratio)
    skewed, other = ("left", "right")[at], ("right", "left")[at]
    left, right = map(list, operator.keys)
    words = {
        "skewed": skewed,
        "other": other,
        "name": operator.name,
        "on": str(operator).partition(" ")[2],
        "left_keys": left,
        "right_keys": right,
        "on_columns": _BY_NAME if left == right else _BY_BOTH,
        "rest": {**_PLAIN, **_LEFT_ONLY}[operator.join],
        "salts": salts,
    }
    if operator.join in _LEFT_ONLY and at:
        return _DISTINCT.format(**words)
    # every hot key is on the skewed side, so only that side has rows of hot keys without a match
    keeps, is_small = operator.join in _KEEPS[skewed], times.side_bytes[1 - at].longest <= MOST_BROADCAST
    words["hot_join"] = words["rest"] if operator.join in _LEFT_ONLY else skewed if keeps else "inner"
    words["parts"] = (_BROADCAST if is_small else _SALTED).format(**words)
    words["how"] = f"the rows of `{other}` that match them are {'broadcast' if is_small else 'repeated for each salt'}"
    counts, load, mean = f"{skewed}.groupBy(*{skewed}_keys).count()", 'F.col("count")', times.side_rows[at].mean
    if times.pairs.ratio > times.side_rows[at].ratio:
        others = f'{other}.groupBy(*{other}_keys).agg(F.count("*").alias("others")).toDF(*{skewed}_keys, "others")'
        counts, load, mean = f"{counts}.join({others}, {skewed}_keys)", f'{load} * F.col("others")', times.pairs.mean
    words["hot"] = f'{counts}.where({load} > {int(mean):_}).orderBy(F.desc("count")).limit(100).select(*{skewed}_keys)'
    # rows with a null key match nothing, and are spread with the hot ones
    nulls = "".join(f" | {skewed}[{name!r}].isNull()" for name in operator.keys[at])
    words["nulls"] = nulls if keeps or operator.join == "LeftAnti" else ""
    return _HOT.format(**words)


def _two_phases(operator: Operator, salts: int) -> str:
    inputs, partial, merged = "", [], []
    for at, function in enumerate(operator.functions, 1):
        found = _FUNCTION.match(function)
        if found is None or len(names(found[2])) > 1 or "UnscaledValue" in function or "FILTER" in function:
            return ""
        name, column = found[1], {"1": "*"}.get(found[2], found[2])
        if column != "*" and not column.isidentifier():
            inputs, column = f"{inputs}, with _input{at} = {column}", f"_input{at}"
        for part in ("sum", "count") if name == "avg" else (name,):
            partial.append(f'F.{part}("{column}").alias("{part}_{at}")')
        merge = f'F.{name if name in ("min", "max") else "sum"}("{name}_{at}")'
        merge = f'F.sum("sum_{at}") / F.sum("count_{at}")' if name == "avg" else merge
        merged.append(f'({merge}).alias("{name}_{at}")')
    lines = [",\n".join(f"    {each}" for each in part) for part in (partial, merged)]
    keys = ", ".join(map(repr, operator.keys[0]))
    return _TWO_PHASES.format(inputs=inputs, salts=salts, keys=keys, partial=lines[0], merged=lines[1])
