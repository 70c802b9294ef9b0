"""A Spark batch job whose rows lie on the partitions that a plan foresaw.

    python examples/spark_batch.py [MASTER]

It draws a skewed stream of visits, builds a plan from its counted keys, exports the plan, places the rows by it on
Spark, and holds the rows of every partition against the prediction. MASTER is local[2] if left out.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from adapt.core.exports.names import Target
from adapt.core.frequencies.exact import count_keys, frequencies_of
from adapt.core.hashing.names import HashName
from adapt.core.partitioners.build import build_plan
from adapt.core.partitioners.names import Scheme
from adapt.core.partitioners.plan import Plan
from adapt.traces.artefacts.manifest import Provenance
from adapt.traces.deploy.spark import SparkPlan
from adapt.traces.deploying import export_plan
from adapt.traces.session import SparkOptions, spark_session

CHANNELS = 6
ROWS = 10_000


def visits(rows: int = ROWS, seed: int = 1) -> pa.Table:
    """A skewed stream: a user and the bytes of a visit; one visit in a hundred has no user."""
    chance = np.random.default_rng(seed)
    users = [None if row % 100 == 99 else f"user{rank % 300}" for row, rank in enumerate(chance.zipf(1.3, rows))]
    return pa.table({"user": pa.array(users, pa.string()), "bytes": chance.integers(1, 5_000, rows)})


def export(users: pa.ChunkedArray, folder: Path) -> Plan:
    """A plan for these users, exported for Spark; on the command line, `adapt partition build` and `export`."""
    plan = build_plan(frequencies_of(count_keys(users)), Scheme.HYBRID, CHANNELS, hash=HashName.XXHASH64)
    export_plan(plan, Target.SPARK, folder, Provenance("examples/spark_batch.py"))
    return plan


def predicted_rows(plan: Plan, users: pa.ChunkedArray) -> list[int]:
    """The rows of each partition as the plan has them, without Spark."""
    return np.bincount(plan.partitioner().channels_of(users), minlength=plan.channels).tolist()


def show(predicted: list[int], actual: list[int]) -> bool:
    """Print both; whether they are the same."""
    print("partition  predicted   actual")
    for partition, (foreseen, found) in enumerate(zip(predicted, actual, strict=True)):
        print(f"{partition:9}  {foreseen:9,}  {found:7,}")
    print("predicted equals actual on every partition" if predicted == actual else "THE PLAN WAS NOT FOLLOWED")
    return predicted == actual


def job(spark: SparkSession, folder: Path) -> bool:
    """Bytes and visits a user, each user counted where the plan places it."""
    table = visits()
    pq.write_table(table, folder / "visits.parquet")
    plan = export(table["user"], folder / "visits.spark")

    placed = SparkPlan.load(spark, str(folder / "visits.spark")).place(
        spark.read.parquet(str(folder / "visits.parquet")), "user"
    )
    # Grouped by channel and user: the rows stay where they are. By the user alone they would be shuffled again.
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
