"""Rejected rows, counted by reason and set aside."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adapt.core.errors import BadInput, UsageError
from adapt.core.reading import FOLDER, Reading, Rejects
from adapt.traces.ingest.streams import Several
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.locations.location import is_stored
from adapt.traces.parts import plain_writer, write_in_tasks
from adapt.traces.spark.lazy import DataFrame, F, SparkSession
from adapt.traces.spark.progress import Progress, watched
from adapt.traces.spark.session import spark_failures
from adapt.traces.store import disk

EXAMPLES = 3
SHOWN_TEXT = 200
MOST_REASONS = 100
MOST_PLACES = 100_000
"""Up to this many rejected rows, their texts are read by line; beyond it, by a join with all rows."""
WITHHELD = "(withheld, since keys are hashed)"


@dataclass(frozen=True, slots=True)
class MaxRejects:
    """Limit on rejected rows."""

    rows: int | None = None
    share: Fraction = Fraction(1)  # share of all rows, in [0, 1], if `rows` is None

    @classmethod
    def parse(cls, text: str) -> "MaxRejects":
        """Read a number of rows, or a percentage of all rows."""
        try:
            if text.endswith("%") and 0 <= Fraction(text[:-1]) <= 100:
                return cls(None, Fraction(text[:-1]) / 100)
            if int(text) >= 0:
                return cls(int(text))
        except (ValueError, ZeroDivisionError):
            pass
        raise UsageError(f"--max-rejects must be a number of rows or a percentage, such as 100 or 1% (got {text!r})")

    def exceeded(self, rejected: int, rows: int) -> bool:
        """Whether this many rejected rows exceed the limit."""
        return rejected > (self.share * rows if self.rows is None else self.rows)

    def check(self, where: str, reading: Reading) -> None:
        """Check a source against the limit."""
        rejected = reading.rejects.rows
        if not self.exceeded(rejected, reading.rows):
            return
        limit = f"{float(100 * self.share):g}%" if self.rows is None else f"{self.rows:,}"
        raise BadInput(
            f"{where}: {rejected:,} of {reading.rows:,} rows were rejected, more than --max-rejects allows ({limit}):"
            f" {reading.rejects.sentence()}; name format and times by the options of `adapt ingest`, or accept the"
            f" loss by --max-rejects {ceil(100 * reading.share)}%"
        )


def set_aside(
    spark: SparkSession,
    rows: DataFrame,
    counts: Mapping[str, int],
    source: Several,
    folder: Path,
    *,
    progress: Progress,
    withheld: bool = False,
) -> Rejects:
    """Write the rejected rows of a source into the trace's folder.

    Args:
        rows: All rows, with the reason in those that are rejected.
        counts: Number of rejected rows by reason.
        withheld: Omit their text, which may hold keys that are to be hashed.
    """
    if not counts:
        return Rejects()
    in_store = is_stored(folder)
    refused = rows.where("_reason is not null").select("_file", "_line", "_reason", "_text")
    with spark_failures("writing rejects"), watched(spark, "writing rejects", progress):
        # rows rejected by the mapping have no text yet: it is read again, only where needed
        if withheld:
            refused = refused.withColumn("_text", F.lit(WITHHELD))
        elif places := refused.where("_text is null").select("_file", "_line").limit(MOST_PLACES + 1).collect():
            texts = source.texts(by_file(places) if len(places) <= MOST_PLACES else None)
            texts = spark.createDataFrame(texts) if isinstance(texts, pa.Table) else texts
            # a merge join, since Spark underestimates the size of what our tasks yield and would broadcast it
            texts = texts.withColumnRenamed("_text", "_read").hint("merge")
            refused = refused.join(texts, ["_file", "_line"], "left").withColumn("_text", F.coalesce("_text", "_read"))
        named = [(at, file.label) for at, file in enumerate(source.files)]
        labels = spark.createDataFrame(named, "_file int, file string")
        table = refused.join(F.broadcast(labels), "_file").select(
            "_file",
            "file",
            F.col("_line").alias("line"),
            F.col("_reason").alias("reason"),
            F.coalesce("_text", F.lit("")).alias("text"),
        )
        table = table.coalesce(1).sortWithinPartitions("_file", "line").drop("_file")
        if in_store:
            write_in_tasks(table, folder / FOLDER, plain_writer, "writing rejects")
            return Rejects(sum(counts.values()), *by_reason(folder / FOLDER, counts))
        written = folder / "_written"
        table.write.parquet(str(written))
        disk.make_folder(folder / FOLDER)
        for number, part in enumerate(sorted(written.glob("part-*"))):
            disk.rename(part, folder / FOLDER / f"part-{number:05d}.parquet")
        disk.remove_tree(written)
        return Rejects(sum(counts.values()), *by_reason(folder / FOLDER, counts))


def by_file(places: Iterable[Sequence[int]]) -> dict[int, list[int]]:
    """Sorted lines by file, from pairs of file and line."""
    lines: dict[int, list[int]] = {}
    for file, line in sorted((place[0], place[1]) for place in places):
        lines.setdefault(file, []).append(line)
    return lines


def by_reason(folder: Path, counts: Mapping[str, int]) -> tuple[dict[str, int], dict[str, list[dict[str, Any]]]]:
    """Counts by reason, highest first, and the first few rows.

    Read batch by batch.
    """
    ordered = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_REASONS])
    examples: dict[str, list[dict[str, Any]]] = {reason: [] for reason in ordered}
    missing = sum(min(EXAMPLES, count) for count in ordered.values())
    for path in sorted(folder.glob("part-*")):
        for batch in pq.ParquetFile(arrow_source(path)).iter_batches(columns=["reason", "file", "line", "text"]):
            for reason, found in examples.items():
                rows = batch.filter(pc.equal(batch.column("reason"), reason)).slice(0, EXAMPLES - len(found))
                found += [
                    {"file": row["file"], "line": row["line"], "text": row["text"][:SHOWN_TEXT]}
                    for row in rows.to_pylist()
                ]
            if sum(map(len, examples.values())) >= missing:
                return ordered, examples
    return ordered, examples
