"""A plan as PySpark code to paste."""

from contextlib import suppress

from adapt.core.engines.exporter import ExportablePlan
from adapt.core.engines.rekey.build import rekey_table
from adapt.core.engines.rekey.sql import MOST_IN_CASE, SPARK, original, rekeyed
from adapt.core.errors import AdaptError

_CODE = """\
# {about} {channels} shuffle partitions, one for each task slot.
from pyspark.sql import functions as F

spark.conf.set("spark.sql.shuffle.partitions", {channels})
spark.conf.set("spark.sql.adaptive.enabled", False)  # else it merges and splits these partitions
rekeyed = df.withColumn("rekeyed", F.expr(r{quotes}
{case}{quotes}))
partial = rekeyed.groupBy("rekeyed").agg(F.count("*").alias("n"))  # or sum, min, max
result = partial.groupBy(F.expr(r{quotes}{original}{quotes}).alias("{name}")).agg(F.sum("n").alias("n"))
"""


def pyspark_code(plan: ExportablePlan, column: str) -> str:
    """Code that aggregates a DataFrame `df` by a column as planned.

    Empty where the plan moves no key, where its keys cannot be replaced, or are too many for one expression.
    """
    with suppress(AdaptError):
        table = rekey_table(plan)
        case = rekeyed(table, SPARK, column)
        quotes = '"""' if '"""' not in case else "'''"
        if not 0 < len(table.keys) <= MOST_IN_CASE or quotes in case:
            return ""
        about = "If partial results can be merged: hot keys split over" if table.split else "Hot keys pinned to"
        words = {
            "name": column if column.isidentifier() else "key",
            "about": about,
            "channels": plan.channels,
            "quotes": quotes,
            "case": case,
        }
        return _CODE.format(**words, original=original(table, SPARK))
    return ""
