"""Counted keys on disk: an artefact, or a CSV of `key,count`.

The artefact has key, count_low, count_high and `measured_NAME` columns in Parquet, the rest in the manifest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adapt.core.counting.frequencies import MEASURED, CounterMemory, Frequencies, MeasuredColumn
from adapt.core.keys.columns import one_array
from adapt.core.stream import KeyType, Weight
from adapt.core.units.seals import hash_of
from adapt.core.verdict.answer import Answer
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.read_errors import damaged
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
