"""Data frames as the source of an ingest."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adapt.core.errors import BadInput, UsageError
from adapt.traces.ingest.mapping import Mapping, check_kept, key_parts, selected
from adapt.traces.ingest.streams import Stream
from adapt.traces.sources.frames import (
    frame_name,
    frame_opened,
    frame_schema,
    is_frame,
    is_spark_frame,
    keep_frame,
)
from adapt.traces.sources.reading.blocks import PATH
from adapt.traces.sources.reading.files import SourceFile
from adapt.traces.sources.reading.records import field_paths
from adapt.traces.sources.reading.table_files import as_spark_schema
from adapt.traces.sources.tables import Query
from adapt.traces.spark.lazy import F, SparkSession


def frame_of(sources: Sequence[Any]) -> Any:
    """The data frame that is the source, or None."""
    frame = next((each for each in sources if is_frame(each)), None)
    if frame is not None and len(sources) > 1:
        raise UsageError("a data frame must be the only source; concatenate several, or ingest one at a time")
    return frame


def frame_files(frame: Any, folder: Path, streams: Sequence[Stream], spark: SparkSession) -> list[SourceFile]:
    """The columns that expressions may name, as files in a new folder.

    Expressions are checked first, so that a wrong one reads no row. Without a time, all columns are kept to guess it.
    """
    opened = frame.opened(spark) if isinstance(frame, Query) else frame_opened(frame)
    schema = frame_schema(opened)
    known = as_spark_schema(schema)
    if not streams[0].name:
        check_kept(streams[0].mapping.keep, schema.names)
    texts = [text for stream in streams for text in stream.texts]
    named = Mapping("", keep=tuple(texts))
    wanted = [name for name in named.wanted(schema.names) if name in schema.names]
    for name, kind in opened.dtypes if is_spark_frame(opened) else ():
        if name not in schema.names and name in named.wanted([name]):
            raise BadInput(f"{frame_name(frame)}: column {name!r} has type {kind}, which is not read; cast it first")
    if set(wanted) <= set(known.names):
        empty = spark.createDataFrame([], known).withColumn(PATH, F.lit(""))
        for option, text in (each for stream in streams for each in stream.mapping.expressions().items()):
            for part in key_parts(text, schema.names) if option == "key" else (text,):
                selected(empty, part, option, schema.names, field_paths(schema))
    guessed = any(not stream.mapping.time for stream in streams)
    return keep_frame(opened, frame_name(frame), folder, schema.names if guessed else wanted)
