"""The rows of a comparison on disk, read without its plans."""

from pathlib import Path

from adapt.core.errors import BadInput
from adapt.core.table import Table
from adapt.traces.store.atomic import MANIFEST
from adapt.traces.store.manifest import Manifest
from adapt.traces.store.tables import read_table

FILE = "rows.parquet"


def read_rows(path: Path, manifest: Manifest) -> Table:
    """Every step of every chain.

    Raises:
        BadInput: they are damaged; the sentence names the file.
    """
    try:
        return read_table(path / FILE, manifest.summary["rows"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(f"{path / MANIFEST} is damaged: {error}; make the artefact again") from error
