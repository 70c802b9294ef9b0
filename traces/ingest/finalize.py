"""Last step of writing a trace: profile and manifest."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adapt.core.keys.columns import key_type_of
from adapt.core.lint.evidence import LINT
from adapt.core.reading import FOLDER, Rejects
from adapt.core.stream import KeyType
from adapt.core.units.seals import hash_of
from adapt.traces.ingest.profile import Profile, profile_trace
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.parts import part_name
from adapt.traces.spark.lazy import SparkSession
from adapt.traces.spark.progress import Progress
from adapt.traces.store.manifest import Manifest, Provenance, file_entry, write_manifest
from adapt.traces.store.trace import TraceBlock, blocks_of, part_entry


@dataclass(frozen=True, slots=True)
class Written:
    """Written rows of a trace without a manifest."""

    blocks: Sequence[TraceBlock]  # blocks of rows
    schema: pa.Schema  # schema of all parts
    span_us: tuple[int, int]  # first and last time

    def profiled(self, spark: SparkSession | None, progress: Progress) -> Profile:
        """Hash and profile all rows; without Spark in this process."""
        return profile_trace(spark, self.blocks, self.schema, self.span_us, progress)


def settle(
    folder: Path,
    made: Provenance,
    rejects: Rejects,
    profiled: Callable[["Written"], Profile],
    evidence: Mapping[str, Any] | None = None,
    key_type: KeyType | None = None,
    key_columns: Sequence[str] = ("key",),
) -> None:
    """Turn a folder of parts into a trace by its manifest.

    Args:
        profiled: Returns the profile of the written rows.
        evidence: Lint evidence on the source, by name; see `Evidence.lint`.
        key_type: The type of the keys in the source. Default: that of their column.
        key_columns: Columns or expressions of the source that make the key.
    """
    parts = sorted(folder.glob(part_name(0).replace("00000", "*")))
    entries = [part_entry(folder, part) for part in parts]
    schema = pq.read_schema(arrow_source(parts[0])).remove_metadata()
    first_us, last_us = _span_us(parts)
    profile = profiled(Written(blocks_of(folder, entries), schema, (first_us, last_us)))
    profile.data[LINT].update(evidence or {})
    key_type = key_type or key_type_of(schema.field("key").type)
    # a column alone does not say where an engine places its keys
    content = profile.content_hash
    content = content if key_type is key_type.storage else hash_of([content, key_type.value])
    aside = [file_entry(folder, path) for path in sorted((folder / FOLDER).glob("*.parquet"))]
    summary: dict[str, Any] = {
        "rows": sum(entry["rows"] for entry in entries),
        "first_us": first_us,
        "last_us": last_us,
        "key_type": key_type.value,
        "key_columns": list(key_columns),
        "columns": list(schema.names),
        "types": [str(kind) for kind in schema.types],
        "rejects": {"rows": rejects.rows, "reasons": rejects.reasons, "examples": rejects.examples},
        "profile": profile.data,
    }
    write_manifest(folder, Manifest("trace", content, made, [*entries, *aside], summary))


def _span_us(parts: list[Path]) -> tuple[int, int]:
    """The first and last time; parts are in time order, so only the first row and the last are read."""
    first = pq.ParquetFile(arrow_source(parts[0])).read_row_group(0, columns=["ts"])["ts"][0]
    last_part = pq.ParquetFile(arrow_source(parts[-1]))
    last = last_part.read_row_group(last_part.num_row_groups - 1, columns=["ts"])["ts"][-1]
    return tuple(int(value.cast(pa.int64()).as_py()) for value in (first, last))  # type: ignore[return-value]
