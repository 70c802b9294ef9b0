"""Rows of a small source, held as one Arrow table.

Spark evaluates the expressions once; this process sets rejects aside, sorts and writes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.lint.source_order import MOST_ROWS
from adapt.core.reading import FOLDER, Rejects
from adapt.traces.ingest.rejects import MOST_PLACES, WITHHELD, by_file, by_reason
from adapt.traces.ingest.source_order import evidence_of, lines_looked_at
from adapt.traces.ingest.streams import Several
from adapt.traces.ingest.time_sort import ORDER, Stock
from adapt.traces.parts import part_name, plain_writer
from adapt.traces.sources.reading.blocks import PLACE
from adapt.traces.spark.lazy import DataFrame, F
from adapt.traces.spark.progress import Progress, watched
from adapt.traces.spark.session import spark_failures
from adapt.traces.store import disk
from adapt.traces.store.trace import ROW_GROUP_ROWS

_HASH = "_hash"


@dataclass(frozen=True, slots=True)
class HeldRows:
    """All rows of a small source."""

    table: pa.Table  # columns of the trace and of the reader, and the hash of each key

    @classmethod
    def of(cls, rows: DataFrame, progress: Progress) -> "HeldRows":
        """Evaluate the rows of `cleaned`."""
        with spark_failures("reading the source"), watched(rows.sparkSession, "reading", progress):
            return cls(rows.withColumn(_HASH, F.xxhash64("key")).toArrow())

    @property
    def stock(self) -> Stock:
        """As `take_stock`."""
        told = {each["values"]: each["counts"] for each in self.table["_reason"].value_counts().to_pylist()}
        return Stock(told.pop(None, 0), told, ())

    def order(self, files: int) -> dict[str, Any] | None:
        """As `order_of_source`."""
        kept, lines = self._kept, lines_looked_at(files)
        first = kept.filter((pc.field("_line") <= lines) & (pc.field("_file") < MOST_ROWS))
        file, line, time_us = (first[name].cast(pa.int64()) for name in ("_file", "_line", "ts"))
        return evidence_of(file, line, time_us, first[_HASH])

    def set_aside(self, source: Several, folder: Path, *, withheld: bool) -> Rejects:
        """As `rejects.set_aside`."""
        refused = self.table.filter(pc.field("_reason").is_valid()).sort_by(
            [("_file", "ascending"), ("_line", "ascending")]
        )
        if not len(refused):
            return Rejects()
        places = list(zip(refused["_file"].to_pylist(), refused["_line"].to_pylist(), strict=True))
        texts = [WITHHELD] * len(places) if withheld else _texts(places, refused["_text"].to_pylist(), source)
        columns = {
            "file": pa.array([source.files[file].label for file, _ in places]),
            "line": refused["_line"],
            "reason": refused["_reason"],
            "text": pa.array(texts, pa.string()),
        }
        disk.make_folder(folder / FOLDER)
        _write(pa.table(columns), folder / FOLDER / part_name(0))
        return Rejects(len(places), *by_reason(folder / FOLDER, self.stock.refused))

    def write(self, folder: Path) -> None:
        """Write the good rows as one part, in time order."""
        rows = self._kept.sort_by([(name, "ascending") for name in ORDER])
        rows = rows.select([name for name in rows.column_names if name not in (*PLACE, _HASH)])
        _write(rows, folder / part_name(0))

    @property
    def _kept(self) -> pa.Table:
        return self.table.filter(pc.field("_reason").is_null())


def _texts(places: Sequence[tuple[int, int]], texts: Sequence[str | None], source: Several) -> list[str]:
    """Text of refused rows; of those that the mapping refused, it is read again."""
    lacking = [place for place, text in zip(places, texts, strict=True) if text is None]
    read: dict[tuple[int, int], str | None] = {}
    if lacking:
        found = source.texts(by_file(lacking) if len(lacking) <= MOST_PLACES else None)
        spark = found.sparkSession
        with spark_failures("writing rejects"):
            if source.announced:  # gives all rows
                wanted = F.broadcast(spark.createDataFrame(lacking, "_file int, _line bigint"))
                found = found.join(wanted, ["_file", "_line"], "left_semi")
            rows = found.toArrow().to_pydict()
        read = dict(zip(zip(rows["_file"], rows["_line"], strict=True), rows["_text"], strict=True))
    return [text or read.get(place) or "" for place, text in zip(places, texts, strict=True)]


def _write(rows: pa.Table, path: Path) -> None:
    """Write a table as Spark would."""
    with disk.complete_file(path, 0) as own, plain_writer(rows.schema, own) as writer:
        writer.write_table(rows, ROW_GROUP_ROWS)
