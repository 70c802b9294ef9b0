"""Output rows of an ordered replay, in a file or on stdout."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite, isnan
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq

from adapt.core.errors import BadInput, UsageError
from adapt.core.ordered.chain.bound import BoundChain, BoundOperator
from adapt.core.ordered.chain.columns import Words
from adapt.core.ordered.chain.own import WordType
from adapt.core.ordered.presets.presets import Preset
from adapt.core.table import Column, Kind, Table
from adapt.traces.store.atomic import check_free, whole_file

STDOUT = Path("-")

_GROUP_ROWS = 1 << 17
"""Rows that are held before they are written."""

_KEY = "key "


class EgressFormat(StrEnum):
    """Formats of output rows."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "jsonl"


@dataclass(frozen=True, slots=True)
class EgressTarget:
    """Where output rows are written."""

    path: Path  # a file, or `STDOUT`
    format: EgressFormat
    force: bool = False  # whether to overwrite the file

    @classmethod
    def named(cls, path: Path, *, csv: bool = False, force: bool = False) -> "EgressTarget":
        """A target by its file name; on stdout, CSV or JSON lines."""
        if path == STDOUT:
            return cls(path, EgressFormat.CSV if csv else EgressFormat.JSON)
        ending = path.suffix.removeprefix(".")
        if ending not in {each.value for each in EgressFormat}:
            raise UsageError(f"--output must end in .parquet, .csv or .jsonl, or be - for stdout (got {path})")
        return cls(path, EgressFormat(ending), force)

    def check(self) -> None:
        """Check that it can be written, before any work."""
        if self.path != STDOUT:
            check_free(self.path, force=self.force)


@dataclass(frozen=True, slots=True)
class _Leaving:
    """A stream that leaves a chain."""

    name: str  # the operator that makes it
    number: int | None  # its number; None in a chain without a graph
    fields: dict[str, str]  # field of each column
    types: Mapping[str, WordType]  # types of the fields; others are integers


OUTPUT = "output"
"""Column with the operator that gave a row, if the output of several leaves."""


class OutputRows:
    """The rows of a chain's output as columns of their types.

    If several operators give rows, there are the columns of all, empty in the rows of others, after their names.
    """

    def __init__(self, chain: BoundChain) -> None:
        """Name the columns; a key has the name of its column."""
        self._chain, self._leaving = chain, _leaving(chain)
        columns, given_by = dict[str, pa.DataType](), dict[str, str]()
        if len(self._leaving) > 1:
            columns[OUTPUT], given_by[OUTPUT] = pa.string(), "this file"
        for each in self._leaving:
            for name, field in each.fields.items():
                kind = self._type(each, field)
                if columns.setdefault(name, kind) != kind or given_by.setdefault(name, each.name) == "this file":
                    raise BadInput(
                        f"operators {given_by[name]!r} and {each.name!r} give column {name!r} as {columns[name]} and "
                        f"{kind}; rename one"
                        if name != OUTPUT
                        else f"operator {each.name!r} gives a column {OUTPUT!r}, which names the operator of each row; "
                        "rename it"
                    )
        self.schema = pa.schema(list(columns.items()))

    def _type(self, leaving: _Leaving, field: str) -> pa.DataType:
        match leaving.types.get(field, WordType.INTEGER):
            case WordType.FLOAT:
                return pa.float64()
            case WordType.FLAG:
                return pa.bool_()
            case WordType.TEXT:
                return self._chain.texts[field].type
            case WordType.INTEGER:
                return pa.timestamp("us", self._chain.times[field].tz) if field in self._chain.times else pa.int64()

    def batch(self, words: Words) -> pa.RecordBatch:
        """Rows of words as columns."""
        if len(self._leaving) == 1:
            return self._of(self._leaving[0], words)
        parts, places = [], []
        for each in self._leaving:
            places.append(np.flatnonzero(words[:, -1] == each.number))
            parts.append(self._of(each, words[places[-1]]))
        back = np.empty(len(words), np.int64)
        back[np.concatenate(places)] = np.arange(len(words))
        return pa.Table.from_batches(parts).take(pa.array(back)).combine_chunks().to_batches()[0]

    def _of(self, leaving: _Leaving, words: Words) -> pa.RecordBatch:
        """Rows of one operator."""
        columns, places = [], {field: at for at, field in enumerate(leaving.fields.values())}
        for shown in self.schema:
            field = leaving.fields.get(shown.name)
            if field is None:
                name = leaving.name if shown.name == OUTPUT else None
                columns.append(pa.array([name] * len(words), shown.type))
                continue
            column = np.ascontiguousarray(words[:, places[field]])
            match leaving.types.get(field, WordType.INTEGER):
                case WordType.FLOAT:
                    made = pa.array(column.view(np.float64))
                case WordType.FLAG:
                    made = pa.array(column != 0)
                case WordType.TEXT:
                    made = self._chain.texts[field].take(pa.array(column, mask=column < 0))
                case WordType.INTEGER:
                    made = pa.array(column).cast(shown.type)
            columns.append(made)
        return pa.record_batch(columns, schema=self.schema)


def _leaving(chain: BoundChain) -> list[_Leaving]:
    """The streams that leave a chain, with shown names of their fields."""
    graph, made = chain.graph, list[_Leaving]()
    streams: list[tuple[BoundOperator, int | None, tuple[str, ...], Mapping[str, WordType]]]
    if graph is None:
        streams = [(chain.operators[-1], None, chain.gives, chain.types)]
    else:
        streams = [
            (chain.operators[stream - len(graph.inputs)], stream, chain.streams[stream], chain.stream_types[stream])
            for stream in graph.outputs
        ]
    for bound, number, fields, types in streams:
        shown = {name.removeprefix(_KEY) if name.removeprefix(_KEY) not in fields else name: name for name in fields}
        made.append(_Leaving(bound.operator.name, number, shown, types))
    return made


def _line(row: Mapping[str, Any]) -> str:
    """A row as JSON; numbers that JSON does not have are texts, as Spark writes them."""
    try:
        return json.dumps(row, default=str, ensure_ascii=False, allow_nan=False)
    except ValueError:
        texts = {name: _text(value) if isinstance(value, float) else value for name, value in row.items()}
        return json.dumps(texts, default=str, ensure_ascii=False)


def _text(value: float) -> float | str:
    if isnan(value):
        return "NaN"
    return value if isfinite(value) else "Infinity" if value > 0 else "-Infinity"


class _Writer:
    """Writes batches to an open file."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, form: EgressFormat) -> None:
        self._file, self._form = file, form
        self._open: Any = None
        match form:
            case EgressFormat.PARQUET:
                self._open = pq.ParquetWriter(file, schema)
            case EgressFormat.CSV:
                self._open = pv.CSVWriter(file, schema)
            case EgressFormat.JSON:
                pass

    def write(self, table: pa.Table) -> None:
        if self._open is not None:
            self._open.write_table(table)
            return
        for batch in table.to_batches(max_chunksize=1 << 12):
            self._file.write("".join(f"{_line(row)}\n" for row in batch.to_pylist()).encode())

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
        self._file.flush()

    def abandon(self) -> None:
        """Keep a Parquet writer from completing a file that was closed."""
        if isinstance(self._open, pq.ParquetWriter):
            self._open.is_open = False


class Egress:
    """Takes output rows to write, or for a retail chain's answer."""

    def __init__(self, chain: BoundChain, preset: Preset | None, writer: BinaryIO | None, form: EgressFormat) -> None:
        """Start without rows."""
        self._rows, self._preset = OutputRows(chain), preset
        schema = self._rows.schema if preset is None else pa.schema([(name, pa.int64()) for name in preset.columns])
        self._writer = None if writer is None else _Writer(writer, schema, form)
        self._schema, self._held, self._answered = schema, list[Words](), list[Sequence[int]]()
        self._waiting = 0

    def take(self, words: Words) -> None:
        """Take rows, in order."""
        if self._preset is not None:
            self._answered += words.view(np.uint64).tolist()
            return
        if self._writer is not None:
            self._held.append(words)
            self._waiting += len(words)
            if self._waiting >= _GROUP_ROWS:
                self._write()

    def _write(self) -> None:
        if self._writer is not None and self._held:
            self._writer.write(pa.Table.from_batches([self._rows.batch(np.concatenate(self._held))]))
        self._held, self._waiting = [], 0

    def finish(self) -> Table | None:
        """Write what is left; returns the answer of a retail chain."""
        answer = None
        if self._preset is not None:
            rows = self._preset.answer(self._answered)
            answer = Table.from_rows("Answer", [Column(name, Kind.COUNT) for name in self._preset.columns], rows)
            if self._writer is not None:
                columns = [pa.array([row[at] for row in rows], pa.int64()) for at in range(len(self._schema))]
                self._writer.write(pa.table(columns, schema=self._schema))
        self._write()
        if self._writer is not None:
            self._writer.close()
        return answer

    def abandon(self) -> None:
        """Write no more, as the run failed."""
        if self._writer is not None:
            self._writer.abandon()


@contextmanager
def opened_egress(chain: BoundChain, preset: Preset | None, target: EgressTarget | None) -> Iterator[Egress]:
    """What takes the output rows of a run.

    A file is complete after the block, or absent.
    """
    if target is None:
        yield Egress(chain, preset, None, EgressFormat.JSON)
    elif target.path == STDOUT:
        yield Egress(chain, preset, sys.stdout.buffer, target.format)
    else:
        with whole_file(target.path, force=target.force) as partial, partial.open("wb") as file:
            egress = Egress(chain, preset, file, target.format)
            try:
                yield egress
            except BaseException:
                egress.abandon()
                raise
