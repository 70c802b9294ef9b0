"""Spark jobs that are rekeyed: a batch, and a stream that goes on from its checkpoint: docs/runbook-spark.md.

    python examples/spark_rekey.py [MASTER]

The batch counts visits by replaced user, then by user. The stream counts visits by user; it is stopped, goes on from
its checkpoint by replaced users, is stopped again, and goes on by users. Rows of every partition are compared with the
plan, all counts with the visits. MASTER defaults to local[2].
"""

import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from visits import counted, predicted_rows, show, visits

import adapt

CHANNELS, FILES = 6, 3
SETTINGS = {
    "spark.sql.shuffle.partitions": str(CHANNELS),  # before the first start: a checkpoint fixes the number
    "spark.sql.adaptive.enabled": "false",  # which may merge partitions of a batch
}


def rekeyed(rows: DataFrame, table: DataFrame) -> DataFrame:
    """Rows by replaced user, in the column `user`; a broadcast join, no shuffle, also of a stream."""
    new = rows.join(F.broadcast(table), rows["user"] == table["key"], "left")
    return new.withColumn("user", F.coalesce("replacement", "user")).drop("key", "replacement")


def original(key: Column | str) -> Column:
    """The user that a key stands for."""
    return F.substring_index(key, "~", 1)


def exact_counts(users: object) -> dict[str, int]:
    """The visits of each user."""
    return {row["values"]: row["counts"] for row in users.value_counts().to_pylist()}


def batch(rows: DataFrame, table: DataFrame) -> tuple[list[int], dict[str, int]]:
    """Rows of each partition, and the visits of each user."""
    partial = rekeyed(rows, table).groupBy("user").agg(F.count("*").alias("n"))
    placed = partial.groupBy(F.spark_partition_id().alias("partition")).agg(F.sum("n").alias("n")).collect()
    found = {row["partition"]: row["n"] for row in placed}
    merged = partial.groupBy(original("user").alias("user")).agg(F.sum("n").alias("n")).collect()
    return [found.get(each, 0) for each in range(CHANNELS)], {row["user"]: row["n"] for row in merged}


def stream(spark: SparkSession, folder: Path, table: DataFrame | None) -> None:
    """Count all new visits by user, or by the keys of a table; store the new counts and their partitions."""

    def keep(found: DataFrame, number: int) -> None:
        found.write.mode("overwrite").parquet(str(folder / f"counted/batch={number}"))

    rows = spark.readStream.schema("user string, bytes bigint").parquet(str(folder / "arriving"))
    counts = (rows if table is None else rekeyed(rows, table)).groupBy("user").agg(F.count("*").alias("n"))
    counts = counts.withColumn("partition", F.spark_partition_id())
    query = counts.writeStream.outputMode("update").foreachBatch(keep)
    query.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start().awaitTermination()


def increments(spark: SparkSession, folder: Path) -> list[Counter[int]]:
    """The rows that each batch counted on each partition."""
    before: dict[str, int] = {}
    found: list[Counter[int]] = []
    for row in spark.read.parquet(str(folder / "counted")).orderBy("batch").collect():
        while len(found) <= row["batch"]:
            found.append(Counter())
        found[row["batch"]][row["partition"]] += row["n"] - before.get(row["user"], 0)
        before[row["user"]] = row["n"]
    return found


def job(spark: SparkSession, folder: Path) -> bool:
    """Whether plans were followed and all counts are right."""
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    whole = visits()
    whole = whole.set_column(0, "user", whole["user"].fill_null("nobody"))  # null has no replacement
    plan = adapt.build(counted(whole["user"]), channels=CHANNELS, engine="spark")
    adapt.export(plan, to="rekey", out=folder / "visits.rekey")
    table = (
        spark.read.option("header", True).csv(str(folder / "visits.rekey" / "rekey.csv")).select("key", "replacement")
    )

    pq.write_table(whole, folder / "visits.parquet")
    placed, counts = batch(spark.read.parquet(str(folder / "visits.parquet")), table)
    right = show(predicted_rows(plan, whole["user"]), placed)
    right &= counts == exact_counts(whole["user"])
    print(f"batch: counts of all users correct: {right}")

    (folder / "arriving").mkdir()
    size = -(-len(whole) // FILES)
    parts = [whole.slice(file * size, size) for file in range(FILES)]
    for number, (part, keys) in enumerate(zip(parts, (None, table, None), strict=True)):
        pq.write_table(part, folder / f"arriving/visits-{number}.parquet")
        stream(spark, folder, keys)
    _, by_plan, _ = increments(spark, folder)
    right &= show(predicted_rows(plan, parts[1]["user"]), [by_plan[each] for each in range(CHANNELS)])
    kept = spark.read.parquet(str(folder / "counted")).groupBy("user").agg(F.max("n").alias("n"))
    merged = kept.groupBy(original("user").alias("user")).agg(F.sum("n").alias("n")).collect()
    right &= {row["user"]: row["n"] for row in merged} == exact_counts(whole["user"])
    print(f"stream: from one checkpoint by users, by replaced users, by users: counts of all users correct: {right}")
    return right


def main() -> int:
    """Run both jobs; 0 if all is right."""
    master = sys.argv[1] if len(sys.argv) > 1 else "local[2]"
    spark = SparkSession.builder.master(master).config("spark.ui.enabled", "false").getOrCreate()
    with TemporaryDirectory() as folder:
        return 0 if job(spark, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
