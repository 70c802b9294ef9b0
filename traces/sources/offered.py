"""Columns of a source that an option may name."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from adapt.traces.sources.formats.json_lines import JsonLines
from adapt.traces.sources.frames import frame_schema, is_frame
from adapt.traces.sources.reading.blocks import BlockFormat
from adapt.traces.sources.reading.containers import head_of
from adapt.traces.sources.reading.files import source_files
from adapt.traces.sources.reading.format import RecordFormat
from adapt.traces.sources.reading.records import field_paths, quoted_name
from adapt.traces.sources.sniff import HEAD_BYTES, ReadOptions, recognize


def offered_columns(sources: Sequence[Any]) -> tuple[str, ...]:
    """Columns and nested fields of a source, in its order."""
    if is_frame(sources[0]):
        schema = frame_schema(sources[0])
        return (*schema.names, *field_paths(schema))
    files = source_files(sources)
    form = recognize(files, ReadOptions()).form
    if isinstance(form, JsonLines):
        found: dict[str, None] = {}
        for line in head_of(files[0], HEAD_BYTES).splitlines():
            with suppress(ValueError):  # the last line may be cut off
                found.update(dict.fromkeys(_paths(json.loads(line))))
        return tuple(found)
    if isinstance(form, BlockFormat):
        schema = pa.schema(form.types)
    elif isinstance(form, RecordFormat):
        return form.columns
    else:
        schema = form.schema_of(files[0])
    return (*schema.names, *field_paths(schema))


def _paths(value: Any) -> Iterator[str]:
    """The fields of an object, those of objects within it by their path."""
    for name, held in value.items() if isinstance(value, Mapping) else ():
        own = quoted_name(name)
        yield from (f"{own}.{path}" for path in _paths(held)) if isinstance(held, Mapping) and held else (own,)
