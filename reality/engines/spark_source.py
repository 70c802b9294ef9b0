"""Streaming source of Spark that replays a trace at its times."""

import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

SCHEMA = "number bigint, key string, route int, cost_s double, due_s double, sent_s double"

WARMING = -1
"""Number of the rows of the first batch, which starts Python's workers; the clock starts when it is over."""


class Range(InputPartition):
    """Rows of a micro-batch."""

    def __init__(self, first: int, end: int, origin_s: float) -> None:
        """Rows from the first to before the end, and the time of the first row of the trace."""
        self.first, self.end, self.origin_s = first, end, origin_s


class TraceSource(DataSource):
    """Replays a file of rows.

    Options: `path`, lines of arrival in seconds, cost in seconds, route and key; `speedup`, 0 for all rows at once;
    `most`, rows of a micro-batch.
    """

    @classmethod
    def name(cls) -> str:
        """Name of the format."""
        return "adapt-trace"

    def schema(self) -> str:
        """Number, key, route, cost, and when the row was due and sent."""
        return SCHEMA

    def streamReader(self, schema: StructType) -> "TraceReader":  # noqa: ARG002
        """Reader of the rows."""
        return TraceReader(self.options)


class TraceReader(DataSourceStreamReader):
    """Offers the rows that are due."""

    def __init__(self, options: Any) -> None:
        """Read the file."""
        with open(options["path"]) as lines:
            self._rows = [line.rstrip("\n").split("\t", 3) for line in lines]
        self._speedup, self._most = float(options["speedup"]), int(options["most"])
        self._origin_s = 0.0

    def initialOffset(self) -> dict[str, int]:
        """Before the first batch."""
        return {"row": WARMING}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: ARG002
        """Rows that are due, after a batch to warm up."""
        if start["row"] == WARMING:
            return {"row": 0}
        if not self._origin_s:
            self._origin_s = time.monotonic()
        return {"row": min(self._due(start["row"]), start["row"] + self._most)}

    def _due(self, offered: int) -> int:
        """Rows that are due by now."""
        if not self._speedup:
            return len(self._rows)
        passed_s = (time.monotonic() - self._origin_s) * self._speedup
        end = offered
        while end < len(self._rows) and float(self._rows[end][0]) <= passed_s:
            end += 1
        return end

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Range]:
        """One partition for all rows of a batch."""
        return [Range(start["row"], end["row"], self._origin_s)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """The rows of a batch."""
        assert isinstance(partition, Range)
        sent_s = time.monotonic()
        if partition.first == WARMING:
            for _, _, route, key in {row[3]: row for row in self._rows}.values():
                yield WARMING, key, int(route), 0.0, sent_s, sent_s
            return
        for number in range(partition.first, partition.end):
            arrival, cost, route, key = self._rows[number]
            due_s = partition.origin_s + (float(arrival) / self._speedup if self._speedup else 0.0)
            yield number, key, int(route), float(cost), due_s, sent_s
