"""Pasted remedies of skewed stages give the rows of the plain query, on Spark."""

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from adapt.core.spark_stages.pasted import MOST_BROADCAST, pyspark_code
from adapt.core.spark_stages.plan import Operator, Side
from adapt.core.spark_stages.tasks import Task, TimesOfTasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOW = {"Inner": "inner", "LeftOuter": "left", "RightOuter": "right", "FullOuter": "full"}
HOW |= {"LeftSemi": "left_semi", "LeftAnti": "left_anti"}
HOT = [("a", 1)] * 40 + [(None, 2)] * 9 + [("b", None)] * 3
FEW = [("a", 1), ("a", 1), ("c", 3), (None, 2), ("b", 4), ("b", None), ("d", 1)]


def ran(operator: Operator, skewed: int, pairs: bool = False, other_bytes: int = 9) -> TimesOfTasks:
    """Four tasks of which the last is the longest, with 13 rows of the skewed side in the mean."""
    tasks = []
    for at, (rows, seconds) in enumerate([(4, 1), (4, 1), (4, 1), (40, 9)]):
        amounts = {
            1 + skewed: rows,
            2 - skewed: 1,
            3 + skewed: rows,
            4 - skewed: other_bytes,
            5: 120 * (at == 3) if pairs else 1,
        }
        tasks.append(Task("h", 1000, 1000 + seconds * 1000, 0, rows, rows, 0, amounts))
    return TimesOfTasks.of(tasks, operator)


def joined(kind: str, keys: tuple[tuple[str, ...], tuple[str, ...]]) -> Operator:
    sides = (Side(0, (1,), (3,), "", 4), Side(1, (2,), (4,), "", 4))
    return Operator("SortMergeJoin", keys, kind, pairs=5, sides=sides)


def rows_of(code: str, **names: object) -> Counter:
    exec(code, names)  # as a user pastes it
    return Counter(map(tuple, names["result"].collect()))


@pytest.mark.parametrize("skewed", [0, 1])
@pytest.mark.parametrize("kind", HOW)
@pytest.mark.parametrize("names", [("k", "m"), ("p", "q")])
def test_a_split_join_has_the_rows_of_the_plain_one(
    spark: "SparkSession", kind: str, skewed: int, names: tuple
) -> None:
    data = (HOT, FEW) if skewed == 0 else (FEW, HOT)
    left = spark.createDataFrame([(*row, at) for at, row in enumerate(data[0])], "k string, m long, v long")
    right = spark.createDataFrame(
        [(*row, at) for at, row in enumerate(data[1])], f"{names[0]} string, {names[1]} long, w long"
    )
    on = ["k", "m"] if names == ("k", "m") else [left["k"] == right["p"], left["m"] == right["q"]]
    plain = Counter(map(tuple, left.join(right, on, HOW[kind]).collect()))
    operator = joined(kind, (("k", "m"), names))
    for pairs, size in ((False, 9), (True, MOST_BROADCAST + 1)):
        code = pyspark_code(operator, ran(operator, skewed, pairs, size))
        assert rows_of(code, spark=spark, left=left, right=right) == plain
        is_distinct = skewed and kind in ("LeftSemi", "LeftAnti")
        assert ("_salt" in code, "others" in code) == (not is_distinct and size > 9, not is_distinct and pairs)


def test_two_phases_have_the_rows_of_the_plain_aggregation(spark: "SparkSession") -> None:
    df = spark.createDataFrame([(*row, at / 4) for at, row in enumerate(HOT + FEW)], "k string, m long, v double")
    functions = ("count(1)", "count(m)", "sum(m)", "min(v)", "max(v)", "avg(v)", "sum((v * 2.0))")
    operator = Operator("SortAggregate", (("k", "m"),), functions=functions, sides=(Side(0, (1,), (3,), "", 4),))
    from pyspark.sql import functions as F

    plain = df.groupBy("k", "m").agg(*map(F.expr, functions))
    code = pyspark_code(operator, ran(operator, 0))
    assert "with _input7 = (v * 2.0)" in code
    found = rows_of(code, df=df.selectExpr("*", "v * 2.0 AS _input7"))
    assert found == Counter(map(tuple, plain.collect()))


@pytest.mark.parametrize(
    "function", ["count(distinct m)", "sum(UnscaledValue(v))", "percentile(v, 0.5)", "max_by(v, m)", "count(k, m)"]
)
def test_what_cannot_be_merged_has_no_code(function: str) -> None:
    operator = Operator("HashAggregate", (("k",),), functions=(function,), sides=(Side(0, (1,), (3,), "", 4),))
    assert pyspark_code(operator, ran(operator, 0)) == ""
