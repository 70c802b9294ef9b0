"""Options of `adapt ingest`, from the command line and mapping files."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from adapt.cli.options.amounts import amount_of
from adapt.core.errors import BadInput, UsageError
from adapt.core.units.durations import duration_us

if TYPE_CHECKING:
    from adapt.traces.ingest.ingest import IngestOptions
    from adapt.traces.ingest.mapping import Mapping as ColumnMapping
    from adapt.traces.ingest.mapping import StreamFields
    from adapt.traces.ingest.streams import Stream
    from adapt.traces.sources.sniff import ReadOptions


@dataclass(frozen=True, slots=True)
class GivenOptions:
    """Values of reading options, and streams of the mapping file."""

    values: Mapping[str, Any]  # from the command line, else from the file, else the defaults
    typed: frozenset[str]  # parameters given on the command line, which also override a stream of the file
    file: Path | None = None  # the mapping file, if any
    streams: "tuple[StreamFields, ...]" = ()

    @classmethod
    def over_file(cls, given: Mapping[str, Any], typed: Iterable[str], file: Path | None) -> "GivenOptions":
        """Command-line options, which override those of a file."""
        from adapt.traces.ingest.mapping import MappingFile, read_mapping_file

        read = read_mapping_file(file) if file is not None else MappingFile({}, ())
        chosen = frozenset(typed)
        values = _over(given, {_parameter(name): value for name, value in read.options.items()})
        return cls(_over(values, {name: given[name] for name in chosen}), chosen, file, read.streams)

    def of_topic(self) -> "GivenOptions":
        """With the key of the records, where none is given."""
        return self if self.values["key"] else replace(self, values={**self.values, "key": "key"})

    @property
    def mapping(self) -> "ColumnMapping":
        """Expressions that hold for all rows."""
        return _mapping(self.values)

    @property
    def streams_of_file(self) -> "list[Stream]":
        """Streams of the file, completed with the options for all."""
        from adapt.traces.ingest.streams import Stream

        streams = []
        for one in self.streams:
            own = {_parameter(name): value for name, value in one.options.items()}
            values = _over(self.values, {name: value for name, value in own.items() if name not in self.typed})
            where = f"{self.file}: stream {one.name!r}"
            if not values["key"]:
                raise BadInput(f"{where} has no key; add key = ... to the stream, or above all streams")
            try:
                mapping, reading = _mapping(values), _reading(values)
                streams.append(Stream(one.name, mapping, reading, values["time_zone"], one.paths, one.where))
            except UsageError as error:
                raise UsageError(f"{where}: {error}") from error
        if streams and self.values["stream"]:
            raise UsageError(f"--stream cannot be given with {self.file}, which describes its own streams")
        return streams

    @property
    def options(self) -> "IngestOptions":
        """How the source is read and cleaned; $ADAPT_SALT salts hashed keys."""
        from adapt.traces.ingest.cleaning import Cleaning, ClockShift, parse_sample
        from adapt.traces.ingest.ingest import IngestOptions
        from adapt.traces.ingest.rejects import MaxRejects

        values = self.values
        streams = self.streams_of_file
        own = [f"{stream.name}={stream.shift_clock}" for stream in self.streams if stream.shift_clock]
        shifts = [*(values["shift_clock"] or ()), *own]  # the command line comes first
        lateness = values["max_lateness"]
        return IngestOptions(
            reading=_reading(values),
            time_zone=values["time_zone"],
            max_rejects=MaxRejects.parse(values["max_rejects"]),
            cleaning=Cleaning(
                tuple(map(ClockShift.parse, shifts)),
                amount_of("--max-lateness", lateness, duration_us) if lateness else None,
                values["hash_keys"],
                parse_sample("--sample-keys", values["sample_keys"]),
            ),
            streams=streams,
            salt=os.environ.get("ADAPT_SALT"),
        )


def typed_of(context: typer.Context, names: Iterable[str]) -> set[str]:
    """Those of these parameters that were given on the command line."""
    origins = {name: context.get_parameter_source(name) for name in names}
    return {name for name, origin in origins.items() if origin is not None and origin.name == "COMMANDLINE"}


def option_of(parameter: str) -> str:
    """The option of a parameter, as typed."""
    return "--" + {"current": "from"}.get(parameter, parameter.strip("_").replace("_", "-"))


def refuse(typed: Iterable[str], where: str, remedy: str = "omit it") -> None:
    """Refuse parameters that have no effect on what a source is."""
    for name in sorted(typed)[:1]:
        raise UsageError(f"{where}, where {option_of(name)} has no effect; {remedy}")


def _over(values: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Values overridden by others; a cost expression overrides the unit of the one before it."""
    return {**values, **({"cost_unit": ""} if "cost" in others else {}), **others}


def _parameter(option: str) -> str:
    return {"bytes": "bytes_", "property": "properties"}.get(option, option.replace("-", "_"))


def _mapping(values: Mapping[str, Any]) -> "ColumnMapping":
    from adapt.traces.ingest.mapping import Mapping as ColumnMapping

    names = ("key", "time", "cost", "cost_unit", "stream", "partition", "time_format", "dedup")
    texts: dict[str, str] = {name: values[name] for name in names}
    return ColumnMapping(**texts, bytes=values["bytes_"], keep=tuple(values["keep"] or ()))


def _reading(values: Mapping[str, Any]) -> "ReadOptions":
    from adapt.traces.sources.sniff import ReadOptions

    columns = values["columns"]
    if isinstance(columns, str):
        columns = tuple(name.strip() for name in columns.split(",")) if columns else ()
    texts: dict[str, str] = {name: values[name] for name in ("delimiter", "quote", "pattern")}
    properties = tuple(values["properties"] or ())
    return ReadOptions(
        **texts, format=values["format"], header=values["header"], columns=columns, properties=properties
    )
