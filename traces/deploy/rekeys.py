"""Rekey tables on disk, as JSON."""

import json
from pathlib import Path

from adapt.core.engines.rekey.table import RekeyTable, rekey_from_data
from adapt.core.errors import BadInput
from adapt.traces.locations.location import location
from adapt.traces.read_errors import readable
from adapt.traces.store.atomic import replace_whole


def write_rekey(table: RekeyTable, path: Path | str) -> None:
    """Write a rekey table atomically, over an older file.

    Raises:
        EnvironmentFailure: it cannot be written.
    """
    replace_whole(location(path), table.to_json())


def read_rekey(path: Path | str) -> RekeyTable:
    """Read a rekey table.

    Every replacement is checked: it leads back to its key, and those of one key land on different channels.

    Raises:
        BadInput: it is missing, damaged, or of another version; the message names the file.
    """
    with readable(location(path)):
        text = location(path).read_bytes()
    try:
        data = json.loads(text)
        if not isinstance(data, dict):
            raise BadInput("not a JSON object")
        return rekey_from_data(data)
    except (BadInput, ValueError, RecursionError) as error:
        raise BadInput(f"{path}: {error}; create it with `adapt partition export PLAN --to rekey`") from error
