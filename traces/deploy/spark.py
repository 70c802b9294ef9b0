"""Placing Spark rows by an exported plan, without Python functions.

This file needs only pyspark. `adapt partition export PLAN --to spark -o DIR` copies it, as `adapt_spark.py`, to the
folder with the tables that it reads.
"""

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

SCHEMA = "adapt.spark/1"
_TYPES = {
    "int64": ("bigint", "int", "smallint", "tinyint"),
    "int32": ("int", "smallint", "tinyint"),
    "int16": ("int", "smallint", "tinyint"),
    "int8": ("int", "smallint", "tinyint"),
}
"""Spark column types of key types that have other names or several."""

_PREFIX = "_adapt_"
"""Prefix of temporary columns."""


@dataclass(frozen=True)
class SparkPlan:
    """An exported plan, ready to place rows.

    Attributes:
        routing: The content of `routing.json`.
        explicit: The pinned keys with their channels; None without pinned keys.
        buckets: Channels by hash bucket; None if the hash alone gives the channel.
    """

    routing: dict[str, Any]
    explicit: DataFrame | None
    buckets: DataFrame | None

    @classmethod
    def load(cls, spark: SparkSession, folder: str) -> "SparkPlan":
        """Read an exported plan from any path that Spark reads.

        Raises:
            ValueError: the folder has another format, or was changed.
        """
        # Spark reads these characters as glob patterns.
        base = re.sub(r"([\\\[\]{}*?])", r"\\\1", str(folder).rstrip("/"))
        routing = json.loads(spark.read.text(f"{base}/routing.json", wholetext=True).collect()[0][0])
        if routing["schema"] != SCHEMA:
            raise ValueError(f"{folder} has format {routing['schema']!r}, not {SCHEMA!r}; export the plan again")
        seal = routing.pop("seal", None)
        if seal is None:
            logging.getLogger(__name__).warning(
                "%s has no seal, as exports of earlier versions: whether it was changed cannot be checked; export"
                " the plan again to seal it",
                f"{folder}/routing.json",
            )
        elif seal != sha256(json.dumps(routing, sort_keys=True).encode()).hexdigest():
            raise ValueError(f"{folder}/routing.json was changed after it was written; export the plan again")
        checked = spark.read.option("parquet.page.verify-checksum.enabled", "true")
        explicit = checked.parquet(f"{base}/explicit.parquet") if routing["explicit"] else None
        buckets = checked.parquet(f"{base}/buckets.parquet") if routing["buckets"] else None
        return cls(routing, explicit, buckets)

    @property
    def channels(self) -> int:
        """N, the number of partitions."""
        return int(self.routing["channels"])

    def with_channel(self, rows: DataFrame, key: str | Sequence[str], name: str = "channel") -> DataFrame:
        """The rows with an INT column of their channels, never null.

        At most two broadcast joins, no shuffle; works on streams too.

        Args:
            key: The key column, or those of a key of several.

        Raises:
            ValueError: a key column is missing or has another type than the plan, or `name` is taken.
        """
        columns, value = self._key(rows, [key] if isinstance(key, str) else list(key))
        if name in rows.columns:
            raise ValueError(f"column {name!r} exists already; choose another name")
        number = self._number(columns, value)
        found, channel = rows, number.cast("int")
        if self.buckets is not None:
            buckets = self.buckets.select(*(F.col(each).alias(_PREFIX + each) for each in self.buckets.columns))
            found = found.join(F.broadcast(buckets), number == F.col(f"{_PREFIX}bucket"), "left")
            channel = self._in_bucket(value)
        elif self.routing.get("groups"):
            channel = F.call_function("div", number * F.lit(self.channels), F.lit(self.routing["modulo"]))
        if self.explicit is not None:
            explicit = self.explicit.select(
                F.col("key").alias(f"{_PREFIX}key"), F.col("channel").alias(f"{_PREFIX}channel")
            )
            found = found.join(F.broadcast(explicit), value == F.col(f"{_PREFIX}key"), "left")
            channel = F.coalesce(F.col(f"{_PREFIX}channel"), channel)
        channel = F.when(value.isNull(), F.lit(self.routing["null_channel"])).otherwise(channel)
        joined = [each for each in found.columns if each.startswith(_PREFIX) and each not in rows.columns]
        return found.withColumn(name, channel.cast("int")).drop(*joined)

    def with_route(self, rows: DataFrame, key: str | Sequence[str], name: str = "route") -> DataFrame:
        """The rows with a route that Spark shuffles to the planned partition.

        `groupBy(name)` alone then puts the rows of channel c into partition c of `channels`; in a batch, see
        `check_shuffle`. Use it for stateful streaming, whose operators shuffle by Spark's own hash.

        Raises:
            ValueError: as `with_channel`.
        """
        if name in rows.columns:
            raise ValueError(f"column {name!r} exists already; choose another name")
        placed = self.with_channel(rows, key, "adapt_channel")
        routes = F.array(*(F.lit(int(route)) for route in self.routing["routes"]))
        route = F.element_at(routes, F.col("adapt_channel") + F.lit(1))
        return placed.withColumn(name, route).drop("adapt_channel")

    def place(self, rows: DataFrame, key: str | Sequence[str], name: str = "channel") -> DataFrame:
        """The rows on the partitions of their channels.

        Group by that column and the key; by the key alone, Spark shuffles again. Adaptive execution keeps these
        partitions.

        Raises:
            ValueError: as `with_channel`; or Spark is older than 4.1.
        """
        placed = self.with_channel(rows, key, name)
        if not hasattr(placed, "repartitionById"):
            raise ValueError("place() needs repartitionById of Spark 4.1 or later; use with_route on older versions")
        return placed.repartitionById(self.channels, F.col(name))

    def check_shuffle(self, spark: SparkSession) -> None:
        """Check that a batch grouped by the route follows the plan.

        Raises:
            ValueError: a setting of the session would place rows elsewhere; the message names it.
        """
        partitions = str(spark.conf.get("spark.sql.shuffle.partitions"))
        if partitions != str(self.channels):
            raise ValueError(
                f"spark.sql.shuffle.partitions must be {self.channels}, the channels of the plan (got {partitions})"
            )
        if str(spark.conf.get("spark.sql.adaptive.enabled")).lower() == "true":
            raise ValueError(
                "spark.sql.adaptive.enabled must be false; otherwise Spark may merge partitions of the plan"
            )

    def _key(self, rows: DataFrame, names: Sequence[str]) -> tuple[list[Column], Column]:
        """The key columns as Spark hashes them, and the key as the plan stores it."""
        whole = self.routing["key_type"]
        types = re.findall(r"decimal\(\d+,\d+\)|[^,]+", whole[1:-1]) if whole.startswith("(") else [whole]
        if len(names) != len(types):
            raise ValueError(f"the plan has {whole} keys; give {len(types)} key columns (got {len(names)})")
        kinds = dict(rows.dtypes)
        for name, key_type in zip(names, types, strict=True):
            if name not in kinds:
                raise ValueError(f"column {name!r} does not exist; available: {', '.join(rows.columns[:12])}")
            if kinds[name] not in _TYPES.get(key_type, (key_type,)):
                raise ValueError(f"column {name!r} is {kinds[name]}, but the plan has {key_type} keys; cast it")
        quoted = ["`" + name.replace("`", "``") + "`" for name in names]
        # The same number has another hash as an int.
        columns = [
            F.col(name).cast("bigint") if kind == "int64" else F.col(name)
            for name, kind in zip(quoted, types, strict=True)
        ]
        return columns, F.expr(self.routing["stored"].format(*quoted)) if "stored" in self.routing else columns[0]

    def _number(self, columns: Sequence[Column], value: Column) -> Column:
        """The number to look up, or the channel itself."""
        hashed = F.xxhash64(value) if self.routing["hash"] == "xxhash64" else F.hash(*columns)
        if "shift" in self.routing:
            return F.shiftrightunsigned(hashed, self.routing["shift"])
        return F.pmod(hashed, F.lit(self.routing["modulo"])).cast("bigint")

    def _in_bucket(self, value: Column) -> Column:
        """The channel of a key in the joined bucket: that of the first bound at or after its hash."""
        steps = self.routing.get("steps", 0)
        channel = F.col(f"{_PREFIX}channel_{steps}")
        for step in reversed(range(steps)):
            within = F.xxhash64(value) <= F.col(f"{_PREFIX}bound_{step}")
            channel = F.when(within, F.col(f"{_PREFIX}channel_{step}")).otherwise(channel)
        return channel
