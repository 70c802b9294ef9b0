"""Validated fields of plans."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, TypeVar

import pyarrow as pa

from adapt.core.errors import BadInput, did_you_mean, listed
from adapt.core.keys.columns import key_type_of, one_array
from adapt.core.keys.key_text import keys_from_texts
from adapt.core.partitioning.schemes.explicit import ExplicitMap, refuse_out_of_range
from adapt.core.partitioning.schemes.split_map import SplitMap
from adapt.core.stream import KeyType

Data = Mapping[str, Any]
Name = TypeVar("Name", bound=StrEnum)

_MEANT = {str: "text", int: "a whole number", list: "a list", Mapping: "an object"}
_REQUIRED = object()


@contextmanager
def naming_field(name: str) -> Iterator[None]:
    """Put the field's name before every error raised within."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"plan field {name!r}: {error}") from error


def read_field(data: Data, name: str, kind: type, default: Any = _REQUIRED) -> Any:
    """A field of type `kind`, or `default` if missing or null."""
    value = data.get(name)
    with naming_field(name):
        if value is None and default is _REQUIRED:
            raise BadInput("missing")
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise BadInput(f"must be {_MEANT[kind]} (got {value!r})")
    return default if value is None else value


def read_positive(data: Data, name: str, default: Any = _REQUIRED) -> int:
    """A whole number from 1 to 2^31 - 1."""
    value: int = read_field(data, name, int, default)
    with naming_field(name):
        if not 1 <= value < 2**31:
            raise BadInput(f"must be from 1 to 2147483647 (got {value})")
    return value


def read_name(data: Data, name: str, names: Iterable[Name]) -> Name:
    """One of a set of names."""
    value, known = read_field(data, name, str), {each.value: each for each in names}
    with naming_field(name):
        if value not in known:
            raise BadInput(f"unknown {value!r}{did_you_mean(value, known)}")
    return known[value]


def read_key_type(data: Data) -> KeyType:
    """The type of the keys, also one with parameters."""
    try:
        return KeyType(read_field(data, "key_type", str))
    except ValueError:
        return read_name(data, "key_type", KeyType)


def read_explicit(data: Data, key_type: KeyType, channels: int) -> ExplicitMap:
    """The pinned keys of fields `explicit` and `explicit_null`."""
    texts = read_field(data, "explicit", Mapping)
    null = read_field(data, "explicit_null", int, None)
    with naming_field("explicit"):
        keys, owners = keys_from_texts(texts, key_type), list(texts.values())
        for text, owner in texts.items():
            if not isinstance(owner, int) or isinstance(owner, bool):
                raise BadInput(f"key {text!r} must have a whole number as channel (got {owner!r})")
        refuse_out_of_range(keys, owners, channels)
    with naming_field("explicit_null"):
        if null is not None:
            keys, owners = pa.concat_arrays([keys, pa.nulls(1, keys.type)]), [*owners, null]
        refuse_out_of_range(keys, owners, channels)
    with naming_field("explicit"):
        return ExplicitMap(keys, owners)


def read_splits(data: Data, key_type: KeyType, channels: int) -> SplitMap:
    """The split keys of field `split`; none if it is missing."""
    texts = read_field(data, "split", Mapping, {})
    with naming_field("split"):
        for text, owners in texts.items():
            if not isinstance(owners, list) or any(type(owner) is not int for owner in owners):
                raise BadInput(f"key {text!r} must have a list of channels (got {owners!r})")
        splits = SplitMap(
            dict(zip(keys_from_texts(texts, key_type).to_pylist(), map(tuple, texts.values()), strict=True)), key_type
        )
        refuse_out_of_range(splits.keys_of_places, splits.channels, channels)
        return splits


def read_explicit_table(table: pa.Table, key_type: KeyType, channels: int) -> ExplicitMap:
    """The pinned keys of a side table with columns `key` and `channel`."""
    with naming_field("explicit"):
        if not {"key", "channel"} <= set(table.column_names):
            raise BadInput(f"its table needs columns 'key' and 'channel' (got {listed(table.column_names)})")
        keys, owners = one_array(table["key"]), table["channel"]
        if not pa.types.is_integer(owners.type) or owners.null_count:
            raise BadInput(
                f"the channels of its table must be whole numbers (got {owners.type} with {owners.null_count} nulls)"
            )
        try:
            found = key_type_of(keys.type)
        except ValueError as error:
            raise BadInput(str(error)) from error
        if found is not key_type.storage:
            raise BadInput(f"its table has {found} keys, but the plan has {key_type} keys")
        refuse_out_of_range(keys, owners.to_numpy(), channels)
        return ExplicitMap(keys, owners.to_numpy())
