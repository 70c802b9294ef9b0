"""Frequencies on disk: key, count_low, count_high in Parquet, and the rest in the manifest; or a CSV of `key,count`.

A column that was measured is called `measured_` and its name.
"""

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import Frequencies, MeasuredColumn
from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.keys.columns import one_array
from adapt.core.keys.key_text import key_to_text, keys_from_texts
from adapt.core.stream import KeyType, Weight
from adapt.core.verdict.answer import Answer
from adapt.traces.store.answers import kept
from adapt.traces.store.atomic import whole_folder
from adapt.traces.store.column_hash import columns_hash
from adapt.traces.store.manifest import Manifest, Provenance, hash_of, read_manifest, verify, write_manifest
from adapt.traces.store.trace import blocks_of, part_entry, read_pieces

FILE = "frequencies.parquet"
COLUMNS = ("key", "count_low", "count_high")
_MEASURED = "measured_"


def write_frequencies(
    frequencies: Frequencies, out: Path, made: Provenance, *, answer: Answer | None = None, force: bool = False
) -> Manifest:
    """Write counted keys as an artefact, with what was found of them, which its content hash leaves out.

    Raises:
        EnvironmentFailure: the place is taken or cannot be written.
    """
    table = pa.table(
        {
            "key": frequencies.keys,
            "count_low": pa.array(frequencies.count_low),
            "count_high": pa.array(frequencies.count_high),
            **{f"{_MEASURED}{column.source}": pa.array(column.values) for column in frequencies.measured},
        }
    )
    facts = _facts(frequencies)
    with whole_folder(out, force=force) as folder:
        pq.write_table(table, folder / FILE, compression="zstd", write_page_checksum=True)
        content = hash_of([columns_hash(table), facts])
        manifest = Manifest("frequencies", content, made, [part_entry(folder, folder / FILE)], facts | kept(answer))
        write_manifest(folder, manifest)
    return manifest


def read_frequencies(path: Path, *, check_all: bool = False) -> tuple[Frequencies, Manifest]:
    """Read counted keys and how they were made.

    Raises:
        BadInput: there is no such artefact, or it is damaged.
    """
    manifest = read_manifest(path, "frequencies")
    if check_all:
        verify(path, manifest)
    facts = manifest.summary
    totals: dict[str, float] = facts.get("measured", {})
    table = _read_table(path, manifest, [*COLUMNS, *(f"{_MEASURED}{source}" for source in totals)])
    frequencies = Frequencies(
        keys=one_array(table["key"]),
        count_low=table["count_low"].to_numpy(),
        count_high=table["count_high"].to_numpy(),
        total=facts["total"],
        rows=facts["rows"],
        weight=Weight(facts["weight"]),
        epsilon=facts["epsilon"],
        complete_above=facts["complete_above"],
        distinct=facts["distinct"],
        measured=tuple(
            MeasuredColumn(source, table[f"{_MEASURED}{source}"].to_numpy(), total) for source, total in totals.items()
        ),
    )
    return frequencies, manifest


def _read_table(path: Path, manifest: Manifest, columns: Sequence[str]) -> pa.Table:
    """The columns, read like the parts of a trace: the footer and every page checked."""
    pieces = [piece for block in blocks_of(path, manifest.files) for piece in block.pieces]
    batches = list(read_pieces(pieces, columns))
    try:
        return pa.Table.from_batches(batches, None if batches else pq.read_schema(path / FILE))
    except (OSError, pa.ArrowException) as error:
        raise BadInput(f"{path / FILE} is damaged ({str(error).splitlines()[0]}); count the trace again") from error


def read_counts(path: Path, key_type: KeyType = KeyType.STRING, sources: Sequence[str] = ()) -> Frequencies:
    """Frequencies from a CSV of `key,count`, with or without that header line.

    Further columns have headings after those two, by which they can be asked for; others are passed over.

    Args:
        sources: The headings of the columns that were measured; `count` is one too.

    Raises:
        UsageError: there is no column of such a heading.
        BadInput: a row has not as many fields as the header (two without one), a count or another number asked for that
            is no number from 0 up, or a key that came before; the sentence names the line.
    """
    headings = ["key", "count"]
    places: list[int] = []
    numbers: list[list[float]] = []
    seen: dict[str, int] = {}
    line = 0
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, strict=True)
            for row in rows:
                line = rows.line_num
                if not row:
                    continue
                if not places:
                    first = [cell.strip() for cell in row]
                    is_header = [cell.lower() for cell in first[:2]] == headings
                    headings = ["key", "count", *first[2:]] if is_header else headings
                    places = [1, *(_place(path, source, headings) for source in sources)]
                    if is_header:
                        continue
                if len(row) != len(headings):
                    raise BadInput(f"{path} line {line}: {len(row)} fields where {','.join(headings)} are expected")
                key = row[0]
                if key in seen:
                    raise BadInput(f"{path} line {line}: key {key!r} came on line {seen[key]} already; add the two up")
                seen[key] = line
                numbers.append([_number(path, line, headings[place], row[place]) for place in places])
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is no CSV in UTF-8: {error.reason} somewhere after line {line}") from error
    except csv.Error as error:
        raise BadInput(f"{path} line {line + 1}: {error}") from error
    if not numbers:
        raise BadInput(f"{path}: the input has no rows; a line is key,count")
    column = _keys_of(path, seen, key_type)
    array = np.array(numbers)
    with np.errstate(over="ignore"):
        totals = array.sum(axis=0)
    for place, total in zip(places, totals, strict=True):
        if not np.isfinite(total):
            raise BadInput(
                f"{path}: the numbers of {headings[place]} add up to more than a number can hold; give them in a larger"
                " unit"
            )
    counts: Any = array[:, 0]
    if np.all(counts == np.floor(counts)) and np.all(counts < 2**53):
        counts = counts.astype(np.int64)
    frequencies = frequencies_of(KeyCounts(column, counts, round(float(totals[0]))))
    order = np.argsort(frequencies.rows_of(column))
    measured = [MeasuredColumn(s, array[order, at], float(totals[at])) for at, s in enumerate(sources, start=1)]
    return replace(frequencies, measured=tuple(measured))


def _place(path: Path, source: str, headings: list[str]) -> int:
    """Where the column of a heading stands."""
    found = [place for place, heading in enumerate(headings) if heading == source and place > 0]
    if not found:
        known = headings[1:]
        raise UsageError(
            f"{path} has no column {source!r} to measure by{did_you_mean(source, known)}; its first line is the header,"
            " such as key,count,state_bytes"
        )
    if len(found) > 1:
        raise BadInput(f"{path}: {len(found)} columns are called {source!r}; give each a heading of its own")
    return found[0]


def _number(path: Path, line: int, heading: str, text: str) -> float:
    """A number of a row; the refusal names its line."""
    number = _count(text)
    if number is None:
        raise BadInput(f"{path} line {line}: the {heading} {text!r} is not a number from 0 up")
    return number


def _keys_of(path: Path, lines: dict[str, int], key_type: KeyType) -> pa.Array:
    """The column of keys; a bad one is named with its line."""
    try:
        column = keys_from_texts(lines, key_type)
    except BadInput:
        for text, line in lines.items():
            try:
                keys_from_texts([text], key_type)
            except BadInput as error:
                raise BadInput(f"{path} line {line}: {error}") from error
        raise
    tally = column.value_counts()
    repeated = tally.filter(pc.greater(tally.field("counts"), 1))
    if len(repeated):  # hex may be written in upper and lower case
        key = repeated.field("values")[0].as_py()
        raise BadInput(f"{path}: key {key_to_text(key)} comes more than once; add its counts up")
    return column


def _count(text: str) -> float | None:
    """A number as people write it; Python's own `1_000` is not one."""
    try:
        number = -1.0 if "_" in text else float(text)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _facts(frequencies: Frequencies) -> dict[str, Any]:
    return {
        "keys": len(frequencies.keys),
        "key_type": frequencies.key_type.value,
        "total": frequencies.total,
        "rows": frequencies.rows,
        "weight": frequencies.weight.value,
        "epsilon": frequencies.epsilon,
        "complete_above": frequencies.complete_above,
        "distinct": frequencies.distinct,
        **(
            {"measured": {column.source: column.total for column in frequencies.measured}}
            if frequencies.measured
            else {}
        ),
    }
