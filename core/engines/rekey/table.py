"""Rekey table: hot keys with replacements that an engine places as planned."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow.csv import write_csv

from adapt.core.engines.names import Engine
from adapt.core.engines.registry import definition_of
from adapt.core.engines.rekey.marks import AnyMark, HighBits, Separator
from adapt.core.errors import BadInput, UsageError
from adapt.core.keys.columns import key_type_of
from adapt.core.keys.key_text import key_to_text, keys_from_texts
from adapt.core.keys.partitioner import Channels
from adapt.core.stream import KeyType
from adapt.core.table import Column, Kind, Table
from adapt.core.units.seals import SEAL, as_json, check_seal, sealed

SCHEMA = "adapt.rekey/1"
"""The format; readers refuse versions that they do not know."""


@dataclass(frozen=True, slots=True)
class Job:
    """The job that rekeyed records go to."""

    engine: Engine
    channels: int
    max_parallelism: int | None  # Flink's key groups; None in other engines

    def channels_of(self, keys: pa.Array) -> Channels:
        """The channel where the engine's own hash places each key."""
        return definition_of(self.engine).placement(self.channels, self.max_parallelism).channels_of(keys)


@dataclass(frozen=True)
class RekeyTable:
    """Hot keys with their replacements; every other key stays as it is."""

    job: Job
    plan: str  # content hash of the plan
    # fingerprint of the trace whose keys the mark does not occur in; None if only the plan's keys were checked
    trace: str | None
    mark: AnyMark  # how replacements are made, and undone
    keys: pa.Array  # distinct keys without null, in key order; shape (keys,)
    # those of all keys, one key after the other; one of a pinned key, several of a split key. The key itself is one
    # of them if its own channel is planned too
    replacements: pa.Array
    offsets: NDArray[np.int64]  # key i has replacements[offsets[i]:offsets[i + 1]]; shape (keys + 1,)

    @property
    def key_type(self) -> KeyType:
        """The type of keys and replacements."""
        return key_type_of(self.keys.type)

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """The row in `keys` of each replacement."""
        return np.repeat(np.arange(len(self.keys)), np.diff(self.offsets))

    @cached_property
    def placed(self) -> Channels:
        """The channel where the engine places each replacement."""
        return self.job.channels_of(self.replacements)

    @property
    def pinned(self) -> int:
        """How many keys have one replacement."""
        return int(np.count_nonzero(np.diff(self.offsets) == 1))

    @property
    def split(self) -> int:
        """How many keys have several replacements."""
        return len(self.keys) - self.pinned

    def as_mapping(self) -> dict[Any, tuple[Any, ...]]:
        """The replacements of each key."""
        flat, ends = self.replacements.to_pylist(), self.offsets.tolist()
        return {key: tuple(flat[ends[row] : ends[row + 1]]) for row, key in enumerate(self.keys.to_pylist())}

    def to_data(self) -> dict[str, Any]:
        """The table as JSON data.

        Keys and replacements are texts: strings as they are, integers in decimal, bytes in hex.
        """
        return {
            "schema": SCHEMA,
            "engine": self.job.engine.value,
            "channels": self.job.channels,
            "max_parallelism": self.job.max_parallelism,
            "key_type": self.key_type.value,
            "separator": self.mark.text if isinstance(self.mark, Separator) else None,
            "key_bits": self.mark.bits if isinstance(self.mark, HighBits) else None,
            "plan": self.plan,
            "trace": self.trace,
            "keys": {key_to_text(key): [*map(key_to_text, new)] for key, new in self.as_mapping().items()},
        }

    def to_json(self) -> bytes:
        """The table as indented JSON, sealed; equal tables give equal bytes."""
        return as_json(sealed(self.to_data()))

    def to_csv(self) -> str:
        """Lines of a replacement, with a header.

        `turn` counts the replacements of a key from 0, and `turns` is how many it has.
        """
        rows = list(self._rows())
        columns = {
            "key": pa.array([key for key, _, _ in rows], pa.string()),
            "replacement": pa.array([new for _, new, _ in rows], pa.string()),
            "channel": pa.array(self.placed),
            "turn": np.arange(len(rows)) - self.offsets[:-1][self.owners],
            "turns": np.diff(self.offsets)[self.owners],
        }
        packed = pa.BufferOutputStream()
        write_csv(pa.table(columns), packed)
        return str(packed.getvalue().to_pybytes().decode())

    def table(self) -> Table:
        """One row per replacement."""
        columns = (Column("key"), Column("replacement"), Column("channel", Kind.COUNT))
        return Table.from_rows("Replacement keys", columns, list(self._rows()))

    def _rows(self) -> Iterator[tuple[str, str, int]]:
        """Key, replacement and channel of each replacement."""
        keys = self.keys.take(pa.array(self.owners)).to_pylist()
        for key, new, channel in zip(keys, self.replacements.to_pylist(), self.placed.tolist(), strict=True):
            yield key_to_text(key), key_to_text(new), channel


def rekey_from_data(data: Mapping[str, Any]) -> RekeyTable:
    """Read the data of `RekeyTable.to_data`, sealed or not; unknown fields are ignored."""
    if data.get("schema") != SCHEMA:
        raise BadInput(f"field 'schema' must be {SCHEMA!r} (got {data.get('schema')!r})")
    try:
        if SEAL in data:
            check_seal(data)
        groups = data["max_parallelism"]
        job = Job(Engine(data["engine"]), int(data["channels"]), None if groups is None else int(groups))
        key_type, bits, separator = KeyType(data["key_type"]), data["key_bits"], data["separator"]
        mark: AnyMark = HighBits(int(bits)) if key_type is KeyType.INT64 else Separator(str(separator), key_type)
        texts = data["keys"]
        if not isinstance(texts, dict) or not all(isinstance(new, list) for new in texts.values()):
            raise BadInput(f"field 'keys' must be an object of lists (got {texts!r})")
        keys = keys_from_texts(texts, key_type)
        flat = keys_from_texts(chain.from_iterable(texts.values()), key_type)
        offsets = np.cumsum([0, *map(len, texts.values())])
        table = RekeyTable(job, str(data["plan"]), data.get("trace"), mark, keys, flat, offsets)
        placed = table.placed
    except KeyError as error:
        raise BadInput(f"field {error} is missing") from error
    except (TypeError, ValueError, AttributeError, UsageError) as error:
        raise BadInput(str(error)) from error
    back = mark.stripped(table.replacements)
    wrong = np.flatnonzero(
        ~np.asarray(pc.equal(back, table.keys.take(pa.array(table.owners))).to_numpy(zero_copy_only=False))
    )
    if len(wrong):
        new = table.replacements[int(wrong[0])].as_py()
        raise BadInput(f"replacement {new!r} does not lead back to its key {table.keys[int(table.owners[wrong[0]])]}")
    if len(np.unique(table.owners * table.job.channels + placed)) < len(placed):
        raise BadInput("two replacements of a key land on one channel")
    return table
