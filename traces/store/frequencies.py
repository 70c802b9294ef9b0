"""Counted keys on disk: an artefact, or a CSV of `key,count`.

The artefact has key, count_low, count_high and `measured_NAME` columns in Parquet, the rest in the manifest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import MEASURED, MOST_TOTAL, CounterMemory, Frequencies, MeasuredColumn
from adapt.core.errors import BadInput, UsageError, did_you_mean, listed
from adapt.core.keys.columns import one_array
from adapt.core.keys.key_text import key_to_text, keys_from_texts
from adapt.core.stream import KeyType, Weight
from adapt.core.units.seals import hash_of
from adapt.core.verdict.answer import Answer
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.read_errors import csv_rows, damaged
from adapt.traces.store import disk
from adapt.traces.store.answers import kept as _kept
from adapt.traces.store.atomic import whole_folder
from adapt.traces.store.manifest import Manifest, Provenance, read_manifest, verify, write_manifest
from adapt.traces.store.tables import columns_hash
from adapt.traces.store.trace import blocks_of, part_entry, read_pieces

FILE = "frequencies.parquet"
COLUMNS = ("key", "count_low", "count_high")

MOST_KEYS = 1 << 23
"""Most keys that this process counts exactly or reads; of more, it reads the first `HEAVIEST`."""

HEAVIEST = 1 << 17
"""Keys that are read of counts of more than `MOST_KEYS`."""


def write_frequencies(
    frequencies: Frequencies,
    out: Path,
    made: Provenance,
    *,
    answer: Answer | None = None,
    force: bool = False,
    all_keys: Path | None = None,
) -> Manifest:
    """Write counted keys, and the verdict, as an artefact.

    Args:
        all_keys: An artefact with all keys, where `frequencies` are only the heaviest.
    """
    table = frequencies.to_arrow()
    facts = facts_of(frequencies)
    with whole_folder(out, force=force, local=True) as folder:
        if all_keys is not None:
            kept = read_manifest(all_keys, "frequencies")
            for entry in kept.files:
                disk.copy_file(all_keys / kept.run / entry["name"], folder / entry["name"])
            manifest = replace(kept, made=made, summary={**kept.summary, **_kept(answer)}, run="")
            write_manifest(folder, manifest)
            return manifest
        pq.write_table(table, folder / FILE, compression="zstd", write_page_checksum=True)
        content = hash_of([columns_hash(table), facts])
        manifest = Manifest("frequencies", content, made, [part_entry(folder, folder / FILE)], facts | _kept(answer))
        write_manifest(folder, manifest)
    return manifest


def read_frequencies(path: Path, *, check_all: bool = False) -> tuple[Frequencies, Manifest]:
    """Read counted keys and how they were made.

    Of more than `MOST_KEYS` keys only the first `HEAVIEST` are read.
    """
    manifest = read_manifest(path, "frequencies")
    if check_all:
        verify(path, manifest)
    facts = manifest.summary
    totals: dict[str, float] = facts.get("measured", {})
    few = facts["keys"] <= MOST_KEYS
    table = _read_table(
        path, manifest, [*COLUMNS, *(f"{MEASURED}{source}" for source in totals)], None if few else HEAVIEST + 1
    )
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
            MeasuredColumn(source, table[f"{MEASURED}{source}"].to_numpy(), total) for source, total in totals.items()
        ),
        memory=CounterMemory(facts["peak_entries"], facts["peak_buffer"]) if "peak_entries" in facts else None,
        typed=KeyType(facts["key_type"]),
    )
    return frequencies if few else frequencies.first(HEAVIEST), manifest


def counts_in_batches(path: Path, columns: Sequence[str] = COLUMNS) -> Iterator[pa.RecordBatch]:
    """Columns of counted keys, with checksums verified."""
    manifest = read_manifest(path, "frequencies")
    pieces = [piece for block in blocks_of(path / manifest.run, manifest.files) for piece in block.pieces]
    return read_pieces(pieces, columns)


def _read_table(path: Path, manifest: Manifest, columns: Sequence[str], rows: int | None) -> pa.Table:
    """All rows, or the first ones."""
    batches: list[pa.RecordBatch] = []
    for batch in counts_in_batches(path, columns):
        batches.append(batch)
        if rows is not None and sum(map(len, batches)) >= rows:
            break
    try:
        read = pa.Table.from_batches(
            batches, None if batches else pq.read_schema(arrow_source(path / manifest.run / FILE))
        )
        return read.slice(0, rows)
    except (OSError, pa.ArrowException) as error:
        raise damaged(path / FILE, error, "count the trace again") from error


def read_counts(path: Path, key_type: KeyType = KeyType.STRING, sources: Sequence[str] = ()) -> Frequencies:
    """Read a CSV of `key,count`, with or without that header line.

    Args:
        sources: Headings of further columns to read; other columns are ignored.
    """
    headings = ["key", "count"]
    places: list[int] = []
    numbers: list[list[float]] = []
    seen: dict[str, int] = {}
    for line, row in csv_rows(path):
        if not places:
            first = [cell.strip() for cell in row]
            is_header = [cell.lower() for cell in first[:2]] == headings
            headings = ["key", "count", *first[2:]] if is_header else headings
            places = [1, *(_place(path, source, headings) for source in sources)]
            if is_header:
                continue
        if len(row) != len(headings):
            raise BadInput(f"{path} line {line}: expected {len(headings)} fields: {listed(headings)} (got {len(row)})")
        key = row[0]
        if key in seen:
            raise BadInput(f"{path} line {line}: key {key!r} is on line {seen[key]} too; add their counts up")
        seen[key] = line
        numbers.append([_number(path, line, headings[place], row[place]) for place in places])
    if not numbers:
        raise BadInput(f"{path} has no rows; write one key,count per line")
    column = _keys_of(path, seen, key_type)
    array = np.array(numbers)
    with np.errstate(over="ignore"):
        totals = array.sum(axis=0)
    for place, total in zip(places, totals, strict=True):
        if total >= MOST_TOTAL:
            raise BadInput(
                f"{path}: the sum of column {headings[place]} is {total:.3g}; it must be below 2^63, about 9.2e18:"
                " use a larger unit"
            )
    counts: Any = array[:, 0]
    if np.all(counts == np.floor(counts)) and np.all(counts < 2**53):
        counts = counts.astype(np.int64)
    frequencies = frequencies_of(KeyCounts(column, counts, round(float(totals[0]))), key_type=key_type)
    order = np.argsort(frequencies.rows_of(column))
    measured = [MeasuredColumn(s, array[order, at], float(totals[at])) for at, s in enumerate(sources, start=1)]
    return replace(frequencies, measured=tuple(measured))


def _place(path: Path, source: str, headings: list[str]) -> int:
    """The position of a column."""
    found = [place for place, heading in enumerate(headings) if heading == source and place > 0]
    if not found:
        known = headings[1:]
        raise UsageError(
            f"{path} has no column {source!r}{did_you_mean(source, known)}; the first line must be a header such as"
            " key,count,state_bytes"
        )
    if len(found) > 1:
        raise BadInput(f"{path}: {len(found)} columns are named {source!r}; rename all but one")
    return found[0]


def _number(path: Path, line: int, heading: str, text: str) -> float:
    """A number of a row; errors name the line."""
    number = _count(text)
    if number is None:
        raise BadInput(f"{path} line {line}: the {heading} must be a number, at least 0 (got {text!r})")
    return number


def _keys_of(path: Path, lines: dict[str, int], key_type: KeyType) -> pa.Array:
    """The column of keys; errors name the line."""
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
        raise BadInput(f"{path}: key {key_to_text(key)} is repeated; add its counts up")
    return column


def _count(text: str) -> float | None:
    """A number as written in CSV files; `1_000` is not one."""
    try:
        number = -1.0 if "_" in text else float(text)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def facts_of(frequencies: Frequencies) -> dict[str, Any]:
    """What the manifest of counted keys says of them."""
    return {
        "keys": len(frequencies.keys),
        "key_type": frequencies.key_type.value,
        "total": frequencies.total,
        "rows": frequencies.rows,
        "weight": frequencies.weight.value,
        "epsilon": frequencies.epsilon,
        "complete_above": frequencies.complete_above,
        "distinct": frequencies.distinct,
        **({} if frequencies.memory is None else frequencies.memory_as_data()),
        **(
            {"measured": {column.source: column.total for column in frequencies.measured}}
            if frequencies.measured
            else {}
        ),
    }
