"""Remedies of a stage as PySpark code.

An event log has no key values, so the code finds hot keys by itself.
"""

import re

from adapt.core.spark_stages.plan import Operator
from adapt.core.spark_stages.tasks import Amounts, TimesOfTasks

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
partial = df.groupBy({names}, (F.monotonically_increasing_id() % salts).alias("_salt")).agg(
{partial}
)
result = partial.groupBy({names}).agg(
{merged}
)
"""
_FUNCTION = re.compile(r"^(\w+)\((.*)\)$")
_CONSTANTS = re.compile(r"(, (\d+|true|false))+$")
_MERGED_BY = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}


def pyspark_code(operator: Operator, times: TimesOfTasks) -> str:
    """Code with the rows of the plain operator; empty without a remedy."""
    if not all(name.isidentifier() for keys in operator.keys for name in keys):
        return ""
    if operator.is_aggregation:
        return "" if operator.is_merged else _two_phases(operator, times)
    if not operator.join or len(operator.sides) < 2 or operator.join not in (*_PLAIN, *_LEFT_ONLY):
        return ""
    return _split_join(operator, times)


def _split_join(operator: Operator, times: TimesOfTasks) -> str:
    at = max((0, 1), key=lambda side: times.side_rows[side].ratio)
    skewed, other = ("left", "right")[at], ("right", "left")[at]
    left, right = (repr(list(keys)) for keys in operator.keys)
    words = {
        "skewed": skewed,
        "other": other,
        "name": operator.name,
        "on": str(operator).partition(" ")[2],
        "left_keys": left,
        "right_keys": right,
        "on_columns": _BY_NAME if left == right else _BY_BOTH,
        "rest": (_PLAIN | _LEFT_ONLY)[operator.join],
    }
    if operator.join in _LEFT_ONLY and at:
        return _DISTINCT.format(**words)
    is_small = times.side_bytes[1 - at].longest <= MOST_BROADCAST
    # every hot key is on the skewed side, so only that side has rows of hot keys without a match
    keeps = operator.join in _KEEPS[skewed]
    words["hot_join"] = words["rest"] if operator.join in _LEFT_ONLY else skewed if keeps else "inner"
    words["salts"] = str(_salts(operator, times))
    words["parts"] = (_BROADCAST if is_small else _SALTED).format(**words)
    words["how"] = f"the rows of `{other}` that match them are {'broadcast' if is_small else 'repeated for each salt'}"
    words["hot"] = _hot_keys(operator, times, at)
    # rows with a null key match nothing, and are spread with the hot ones
    nulls = [f"{skewed}[{name!r}].isNull()" for name in operator.keys[at]]
    words["nulls"] = f" | {' | '.join(nulls)}" if keeps or operator.join == "LeftAnti" else ""
    return _HOT.format(**words)


def _hot_keys(operator: Operator, times: TimesOfTasks, at: int) -> str:
    """Code of the keys with more rows, or pairs, than a mean task has."""
    side, pairs = times.side_rows[at], times.pairs
    counts = "{0}.groupBy(*{0}_keys).count()".format(("left", "right")[at])
    if pairs is None or pairs.ratio <= side.ratio:
        return _first(counts, f'F.col("count") > {_mean(side)}', '"count"')
    names = operator.keys[at]
    other = '{0}.groupBy(*{0}_keys).agg(F.count(\'*\').alias("others")).toDF(*{1}_keys, "others")'.format(
        ("right", "left")[at], ("left", "right")[at]
    )
    both = f"{counts}.join({other}, {list(names)!r})"
    return _first(both, f'F.col("count") * F.col("others") > {_mean(pairs)}', '"count", "others"')


def _first(counts: str, limit: str, dropped: str) -> str:
    return f'{counts}.where({limit}).orderBy(F.desc("count")).limit(100).drop({dropped})'


def _mean(of: Amounts) -> str:
    return f"{int(of.mean):_}"


def _salts(operator: Operator, times: TimesOfTasks) -> int:
    """As many as partitions, so that every slot has some."""
    partitions = max((side.partitions for side in operator.sides), default=0)
    return min(max(partitions, times.tasks, 2 * times.slots), _MOST_SALTS)


def _two_phases(operator: Operator, times: TimesOfTasks) -> str:
    inputs: dict[str, str] = {}
    partial, merged = [], []
    for at, function in enumerate(operator.functions, 1):
        found = _FUNCTION.match(function)
        if found is None or "FILTER" in function:
            return ""
        name, argument = found[1], _CONSTANTS.sub("", found[2])
        if argument in ("1", "*") and name == "count":
            column = '"*"'
        elif argument.isidentifier():
            column = repr(argument)
        else:
            column = repr(inputs.setdefault(argument, f"_input{at}"))
        if argument.startswith("distinct "):
            return ""
        if name in _MERGED_BY:
            partial.append(f'F.{name}({column}).alias("_{at}")')
            merged.append(f'F.{_MERGED_BY[name]}("_{at}").alias("{name}_{at}")')
        elif name == "avg":
            partial += [f'F.sum({column}).alias("_{at}")', f'F.count({column}).alias("_{at}n")']
            merged.append(f'(F.sum("_{at}") / F.sum("_{at}n")).alias("avg_{at}")')
        elif name in ("collect_list", "collect_set"):
            partial.append(f'F.{name}({column}).alias("_{at}")')
            flat = f'F.flatten(F.collect_list("_{at}"))'
            merged.append(f'{flat if name == "collect_list" else f"F.array_distinct({flat})"}.alias("{name}_{at}")')
        else:
            return ""
    if not partial:
        return ""
    said = "".join(f", with {name} = {text}" for text, name in inputs.items())
    lines = [",\n".join(f"    {each}" for each in part) for part in (partial, merged)]
    return _TWO_PHASES.format(
        inputs=said,
        salts=_salts(operator, times),
        names=", ".join(map(repr, operator.keys[0])),
        partial=lines[0],
        merged=lines[1],
    )
