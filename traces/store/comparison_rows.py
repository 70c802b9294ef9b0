"""The rows of a stored comparison, without its plans."""

from pathlib import Path

from adapt.core.table import Table
from adapt.traces.locations.run_folders import MANIFEST
from adapt.traces.read_errors import damaged
from adapt.traces.store.manifest import Manifest
from adapt.traces.store.tables import read_table

FILE = "rows.parquet"


def read_rows(path: Path, manifest: Manifest) -> Table:
    """One row per plan and channel count."""
    try:
        return read_table(manifest.file(path, FILE), manifest.summary["rows"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(path / MANIFEST, error) from error
