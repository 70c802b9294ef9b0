"""Runs on disk: time series as Parquet, the summary in the manifest."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapt.core.errors import BadInput
from adapt.core.run import SCHEMA, Run, run_as_data
from adapt.core.table import Displayed, Table
from adapt.core.units.seals import hash_of
from adapt.traces.locations.run_folders import MANIFEST
from adapt.traces.read_errors import damaged
from adapt.traces.store import disk
from adapt.traces.store.atomic import whole_folder
from adapt.traces.store.manifest import Manifest, Provenance, file_entry, read_manifest, verify, write_manifest
from adapt.traces.store.tables import columns_of, read_table, table_facts, table_hash, write_table


@dataclass(frozen=True, slots=True, repr=False)
class StoredRun(Displayed):
    """A run read from disk."""

    path: Path  # the artefact's folder
    manifest: Manifest  # how it was made
    mechanism: str  # the replayed mechanism
    parameters: Mapping[str, Any]  # everything except the stream that decides the result
    summary: Table  # the whole run in a few rows
    tables: Mapping[str, Table]  # time series by name

    @property
    def files(self) -> dict[str, Path]:
        """Its files by name, with the manifest."""
        names = [MANIFEST, *(str(Path(self.manifest.run) / entry["name"]) for entry in self.manifest.files)]
        return {name: self.path / name for name in names}

    @property
    def periods(self) -> Table:
        """One row per period."""
        if "periods" not in self.tables:
            raise BadInput(f"{self.path} is a run of {self.mechanism}, which has no periods")
        return self.tables["periods"]

    def as_data(self) -> dict[str, Any]:
        """The run as JSON data, as the replay returned it."""
        return run_as_data(self.mechanism, self.parameters, self.summary, self.tables)

    def displayed(self) -> list[Table]:
        """The summary."""
        return [self.summary]


def write_run(
    run: Run, out: Path, made: Provenance, *, force: bool = False, parts: Mapping[str, Path] | None = None
) -> Manifest:
    """Write a run as an artefact.

    Args:
        parts: Further files to copy into it, by name.
    """
    tables, summary = run.tables(), run.summary()
    decisive = {
        "schema": SCHEMA,
        "mechanism": run.mechanism,
        "parameters": dict(run.parameters),
        "tables": {name: table_facts(table) for name, table in tables.items()},
        "summary": {**table_facts(summary), "cells": [list(row) for row in summary.rows]},
    }
    with whole_folder(out, force=force, local=True) as folder:
        for name, table in tables.items():
            write_table(table, folder / f"{name}.parquet")
        for name, part in (parts or {}).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            disk.copy_file(part, folder / name)
        content = hash_of([decisive, {name: table_hash(table) for name, table in tables.items()}])
        names = [*(f"{name}.parquet" for name in tables), *sorted(parts or {})]
        files = [file_entry(folder, folder / name) for name in names]
        manifest = Manifest("run", content, made, files, decisive)
        write_manifest(folder, manifest)
    return manifest


def read_run(path: Path) -> StoredRun:
    """Read a run and verify its files."""
    manifest = read_manifest(path, "run")
    verify(path, manifest)
    facts = manifest.summary
    try:
        tables = {
            name: read_table(manifest.file(path, f"{name}.parquet"), table) for name, table in facts["tables"].items()
        }
        cells = tuple(tuple(row) for row in facts["summary"]["cells"])
        summary = Table(facts["summary"]["title"], columns_of(facts["summary"]), cells, facts["summary"]["note"])
        return StoredRun(path, manifest, facts["mechanism"], facts["parameters"], summary, tables)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(path / MANIFEST, error) from error
