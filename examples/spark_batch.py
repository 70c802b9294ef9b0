"""A Spark batch job whose rows are on the partitions that a plan predicted.

    python examples/spark_batch.py [MASTER]

It generates a skewed stream of visits, builds a plan from its counted keys, exports the plan, places the rows by it on
Spark, and compares the rows of every partition with the prediction. MASTER defaults to local[2].
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from visits import counted, predicted_rows, show, visits

import adapt
from adapt.traces.spark.session import SparkOptions, spark_session

CHANNELS = 6


def export(users: pa.ChunkedArray, folder: Path) -> adapt.Plan:
    """A plan for these users, exported for Spark; on the command line, `adapt partition build` and `export`."""
    plan = adapt.build(counted(users), channels=CHANNELS, engine="consistent:hash=xxhash64")
    adapt.export(plan, to="spark", out=folder)
    return plan


def job(spark: SparkSession, folder: Path) -> bool:
    """Count visits and bytes per user, each user on its planned partition."""
    table = visits()
    pq.write_table(table, folder / "visits.parquet")
    plan = export(table["user"], folder / "visits.spark")

    placed = adapt.SparkPlan.load(spark, str(folder / "visits.spark")).place(
        spark.read.parquet(str(folder / "visits.parquet")), "user"
    )
    # Grouped by channel and user, rows stay in place; by user alone, Spark would shuffle again.
    users = placed.groupBy("channel", "user").agg(F.count("*").alias("visits"), F.sum("bytes").alias("bytes"))

    found = users.groupBy(F.spark_partition_id().alias("partition")).agg(F.sum("visits").alias("rows")).collect()
    rows = {row["partition"]: row["rows"] for row in found}
    return show(predicted_rows(plan, table["user"]), [rows.get(partition, 0) for partition in range(CHANNELS)])


def main() -> int:
    """Run the job; 0 if the plan was followed."""
    master = sys.argv[1] if len(sys.argv) > 1 else "local[2]"
    spark = spark_session(SparkOptions(master, {"spark.executor.memory": "768m"}))
    with TemporaryDirectory() as folder:
        return 0 if job(spark, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
