"""A stateful Spark stream whose state is on the partitions that a plan predicted, also after a restart.

    python examples/spark_streaming.py [MASTER]

Visits arrive as files, and are counted per user. Stateful operators always shuffle by Spark's own hash of the grouping
key, so rows are grouped by their *route*, a number that this hash maps to the planned partition, and the state of a
route holds the counts of its users. Halfway the query ends; a new one continues from its checkpoint. MASTER defaults to
local[2].
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from spark_batch import CHANNELS, export
from visits import predicted_rows, show, visits

import adapt
from adapt.traces.spark.session import SparkOptions, spark_session

FILES = 2
SETTINGS = {
    # The channels of the plan, before the first start: a checkpoint fixes the number.
    "spark.sql.shuffle.partitions": str(CHANNELS),
    # Only this store supports map state.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}


class CountUsers(StatefulProcessor):
    """Visits so far of each user of a route."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """The state of a route: its users with their counts."""
        self.visits = handle.getMapState("visits", "user string", "visits bigint")

    def handleInputRows(self, key, rows, timerValues) -> Iterator[pd.DataFrame]:  # noqa: ARG002
        """Count the new rows of a route, and emit the new counts of their users."""
        came = pd.concat([batch["user"] for batch in rows]).fillna("(nobody)").value_counts()
        counted = []
        for user, new in came.to_dict().items():
            before = self.visits.getValue((user,))[0] if self.visits.containsKey((user,)) else 0
            self.visits.updateValue((user,), (before + new,))
            counted.append((key[0], user, new, before + new))
        yield pd.DataFrame(counted, columns=["route", "user", "new", "so_far"])

    def close(self) -> None:
        """Nothing to close."""


def run(spark: SparkSession, folder: Path) -> None:
    """Count all new visits, store the counts and their partitions, and stop."""

    def keep(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(str(folder / f"counted/batch={number}"))

    arriving = spark.readStream.schema("user string, bytes bigint").option("maxFilesPerTrigger", 1)
    plan = adapt.SparkPlan.load(spark, str(folder / "visits.spark"))
    routed = plan.with_route(arriving.parquet(str(folder / "arriving")), "user").select("route", "user")
    counted = routed.groupBy("route").transformWithStateInPandas(
        CountUsers(), "route int, user string, new bigint, so_far bigint", "Update", "None"
    )
    counted = counted.withColumn("partition", F.spark_partition_id())
    query = counted.writeStream.foreachBatch(keep).option("checkpointLocation", str(folder / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()


def job(spark: SparkSession, folder: Path) -> bool:
    """A file, a restart, another file; whether all rows were on planned partitions and no count was lost."""
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    table = visits()
    plan = export(table["user"], folder / "visits.spark")
    (folder / "arriving").mkdir()
    size = -(-len(table) // FILES)
    for half in (range(FILES // 2), range(FILES // 2, FILES)):
        for file in half:
            pq.write_table(table.slice(file * size, size), folder / f"arriving/visits-{file}.parquet")
        run(spark, folder)

    kept = spark.read.parquet(str(folder / "counted"))
    found = {
        row["partition"]: row["rows"] for row in kept.groupBy("partition").agg(F.sum("new").alias("rows")).collect()
    }
    last = {row["user"]: row["n"] for row in kept.groupBy("user").agg(F.max("so_far").alias("n")).collect()}
    exact = {row["values"] or "(nobody)": row["counts"] for row in table["user"].value_counts().to_pylist()}
    print(f"{kept.select('batch').distinct().count()} batches; counts of all users correct: {last == exact}")
    predicted = predicted_rows(plan, table["user"])
    return show(predicted, [found.get(partition, 0) for partition in range(CHANNELS)]) and last == exact


def main() -> int:
    """Run the job; 0 if the plan was followed and every user counted once."""
    master = sys.argv[1] if len(sys.argv) > 1 else "local[2]"
    spark = spark_session(SparkOptions(master, {"spark.executor.memory": "768m"}))
    with TemporaryDirectory() as folder:
        return 0 if job(spark, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
