"""What `adapt ingest` is told of a source, by options and by a file of `--mapping`; what is typed wins."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapt.core.errors import BadInput, UsageError
from adapt.core.units.durations import duration_us

if TYPE_CHECKING:
    from adapt.traces.ingest.ingest import IngestOptions
    from adapt.traces.ingest.mapping import Mapping as ColumnMapping
    from adapt.traces.ingest.mapping_file import StreamFields
    from adapt.traces.ingest.streams import Stream
    from adapt.traces.sources.sniff import ReadOptions


@dataclass(frozen=True, slots=True)
class GivenOptions:
    """The values of all options of reading, by parameter, and the streams of the file.

    Attributes:
        values: As typed, else as the file has it, else as it is if neither says.
        typed: What was typed, which wins over what a stream of the file says too.
    """

    values: Mapping[str, Any]
    typed: frozenset[str]
    file: Path | None = None
    streams: "tuple[StreamFields, ...]" = ()

    @classmethod
    def over_file(cls, given: Mapping[str, Any], typed: Iterable[str], file: Path | None) -> "GivenOptions":
        """The options given, over those of a file.

        Raises:
            BadInput: the file cannot be read as a mapping.
        """
        from adapt.traces.ingest.mapping_file import MappingFile, read_mapping_file

        said = read_mapping_file(file) if file is not None else MappingFile({}, ())
        values = dict(given) | {_parameter(name): value for name, value in said.options.items()}
        chosen = frozenset(typed)
        return cls(values | {name: given[name] for name in chosen}, chosen, file, said.streams)

    @property
    def mapping(self) -> "ColumnMapping":
        """Expressions of all rows."""
        return _mapping(self.values)

    @property
    def streams_of_file(self) -> "list[Stream]":
        """The streams of the file, each with what it leaves out.

        Raises:
            BadInput: one has no key.
            UsageError: what one has does not go together.
        """
        from adapt.traces.ingest.streams import Stream

        streams = []
        for one in self.streams:
            own = {_parameter(name): value for name, value in one.options.items()}
            values = {**self.values, **{name: value for name, value in own.items() if name not in self.typed}}
            where = f"{self.file}: stream {one.name!r}"
            if not values["key"]:
                raise BadInput(f"{where} has no key; add key = ... to it, or above all streams")
            try:
                reading = _reading(values)
            except UsageError as error:
                raise UsageError(f"{where}: {error}") from error
            streams.append(Stream(one.name, _mapping(values), reading, values["time_zone"], one.paths, one.where))
        if streams and self.values["stream"]:
            raise UsageError(f"{self.file} has streams of its own; leave --stream out")
        return streams

    @property
    def options(self) -> "IngestOptions":
        """How the source is read and cleaned; the salt of hashed keys is that of $ADAPT_SALT.

        Raises:
            BadInput: a stream of the file has no key.
            UsageError: an option is not so written.
        """
        from adapt.traces.ingest.cleaning import Clock, Treatment, parse_sample
        from adapt.traces.ingest.ingest import IngestOptions
        from adapt.traces.ingest.rejects import MaxRejects

        values = self.values
        streams = self.streams_of_file
        own = [f"{stream.name}={stream.clock}" for stream in self.streams if stream.clock]
        clocks = [*(values["clock"] or ()), *own]  # what is typed comes first
        return IngestOptions(
            reading=_reading(values),
            time_zone=values["time_zone"],
            max_rejects=MaxRejects.parse(values["max_rejects"]),
            treatment=Treatment(
                tuple(Clock.parse(text) for text in clocks),
                duration_us(values["most_late"]) if values["most_late"] else None,
                values["hash_keys"],
                parse_sample(values["sample_keys"]),
            ),
            streams=streams,
            salt=os.environ.get("ADAPT_SALT"),
        )


def _parameter(option: str) -> str:
    return "bytes_" if option == "bytes" else option.replace("-", "_")


def _mapping(values: Mapping[str, Any]) -> "ColumnMapping":
    from adapt.traces.ingest.mapping import Mapping as ColumnMapping

    names = ("key", "time", "cost", "stream", "time_format", "unique")
    texts: dict[str, str] = {name: values[name] for name in names}
    return ColumnMapping(**texts, bytes=values["bytes_"], keep=tuple(values["keep"] or ()))


def _reading(values: Mapping[str, Any]) -> "ReadOptions":
    from adapt.traces.sources.sniff import ReadOptions

    columns = values["columns"]
    if isinstance(columns, str):
        columns = tuple(name.strip() for name in columns.split(",")) if columns else ()
    texts: dict[str, str] = {name: values[name] for name in ("delimiter", "quote", "pattern", "kcat_format")}
    return ReadOptions(**texts, format=values["format"], header=values["header"], columns=columns)
