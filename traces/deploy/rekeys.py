"""Rekey tables on disk, as JSON."""

import json
from pathlib import Path

import pyarrow as pa

from adapt.core.engines.names import AnyScheme
from adapt.core.engines.rekey.build import rekey_table
from adapt.core.engines.rekey.table import RekeyTable, rekey_from_data
from adapt.core.errors import BadInput
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.units.seals import SEAL
from adapt.traces.locations.location import location
from adapt.traces.read_errors import note_unsealed, readable
from adapt.traces.store.atomic import replace_whole
from adapt.traces.store.trace import open_trace


def rekey_plan(
    plan: Plan,
    engine: AnyScheme | None = None,
    trace: Path | None = None,
    separator: str | None = None,
    max_parallelism: int | None = None,
) -> RekeyTable:
    """The replacements of a plan's pinned and split keys.

    Args:
        engine: The engine of the job (default: that under the plan).
        trace: A trace whose keys no replacement may equal; all are read, in bounded memory.
        separator: The separator of suffixes (default: the first that no key uses).
    """
    if trace is None:
        return rekey_table(plan, engine, separator=separator, max_parallelism=max_parallelism)
    opened = open_trace(trace)
    plan.check_keys(opened.key_type, trace)
    keys = (_distinct(batch.column(0)) for batch in opened.batches(["key"], encoded=["key"]))
    return rekey_table(plan, engine, keys, opened.manifest.content_hash, separator, max_parallelism)


def _distinct(keys: pa.Array) -> pa.Array:
    """The keys of a block, once each if they are encoded."""
    return keys.dictionary if pa.types.is_dictionary(keys.type) else keys


def write_rekey(table: RekeyTable, path: Path | str) -> None:
    """Write a rekey table atomically, over an older file."""
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
        table = rekey_from_data(data)
    except (BadInput, ValueError, RecursionError) as error:
        raise BadInput(f"{path}: {error}; create it with `adapt partition export PLAN --to rekey`") from error
    if SEAL not in data:
        note_unsealed(str(path), "write it again")
    return table
