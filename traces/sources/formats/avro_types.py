"""Avro types as Arrow types."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

MOST_DIGITS = 38
"""Digits of Spark's decimal numbers."""

_PLAIN: Mapping[str, pa.DataType] = {
    "null": pa.string(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
_LOGICAL: Mapping[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
_NANOS = {
    ("long", "timestamp-nanos"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-nanos"): pa.timestamp("us"),
}
_NUMBERS = (pa.int32(), pa.int64(), pa.float32(), pa.float64())
"""From narrow to wide."""

Tidy = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """How values of a type become a column."""

    read: pa.DataType  # arrow type of fastavro's values
    final: pa.DataType  # arrow type of the column
    tidy: Tidy | None = None  # conversion of a value, or None


def kind_of(schema: Any, named: Mapping[str, Any], within: tuple[str, ...] = ()) -> Kind:
    """The kind of an Avro type, as parsed by fastavro.

    A union of several types besides null is the widest of them if all are numbers, else text, with nested values as
    JSON. So is a recursive type.

    Args:
        named: Types by full name.
        within: Names of the enclosing records.
    """
    if isinstance(schema, list):
        return _union([branch for branch in schema if branch != "null"], named, within)
    if isinstance(schema, str):
        if schema in _PLAIN:
            return Kind(_PLAIN[schema], _PLAIN[schema])
        return _TEXT if schema in within else kind_of(named[schema], named, within)
    name = schema["type"]
    if isinstance(name, dict | list):
        return kind_of(name, named, within)
    if name in ("record", "error"):
        return _record(schema, named, within)
    if name == "array":
        item = kind_of(schema["items"], named, within)
        each = item.tidy
        tidy = None if each is None else lambda values: [None if value is None else each(value) for value in values]
        return Kind(pa.list_(item.read), pa.list_(item.final), tidy)
    if name == "map":
        item = kind_of(schema["values"], named, within)
        each_value = item.tidy or (lambda value: value)
        return Kind(
            pa.map_(pa.string(), item.read),
            pa.map_(pa.string(), item.final),
            lambda values: [(key, None if value is None else each_value(value)) for key, value in values.items()],
        )
    if is_decimal(schema):
        decimal = pa.decimal128(schema["precision"], schema.get("scale", 0))
        return Kind(decimal, decimal)
    if name not in _PLAIN:
        return kind_of(name, named, within)
    logical = schema.get("logicalType")
    if (name, logical) in _NANOS:
        return Kind(pa.int64(), _NANOS[name, logical], lambda nanos: nanos // 1000)
    return Kind(_PLAIN[name], _LOGICAL.get((name, logical), _PLAIN[name]))


def is_decimal(schema: Mapping[str, Any]) -> bool:
    """Whether a type is a decimal number that Spark supports."""
    return (
        schema.get("logicalType") == "decimal"
        and schema.get("type") in ("bytes", "fixed")
        and 0 < schema.get("precision", 0) <= MOST_DIGITS
    )


def without_meaning(schema: Any) -> Any:
    """A schema without logical types other than decimals.

    So fastavro returns times as numbers.
    """
    if isinstance(schema, list):
        return [without_meaning(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    dropped = () if is_decimal(schema) else ("logicalType",)
    nested = ("type", "items", "values")
    kept = {
        name: without_meaning(value) if name in nested else value
        for name, value in schema.items()
        if name not in dropped
    }
    if "fields" in schema:
        kept["fields"] = [{**field, "type": without_meaning(field["type"])} for field in schema["fields"]]
    return kept


def _record(schema: Mapping[str, Any], named: Mapping[str, Any], within: tuple[str, ...]) -> Kind:
    inside = (*within, schema["name"])
    fields = {field["name"]: kind_of(field["type"], named, inside) for field in schema["fields"]}
    tidied = {name: kind.tidy for name, kind in fields.items() if kind.tidy is not None}

    def tidy(value: dict[str, Any]) -> dict[str, Any]:
        changed = {name: each(value[name]) for name, each in tidied.items() if value[name] is not None}
        return value | changed

    return Kind(
        pa.struct([(name, kind.read) for name, kind in fields.items()]),
        pa.struct([(name, kind.final) for name, kind in fields.items()]),
        tidy if tidied else None,
    )


def _union(branches: list[Any], named: Mapping[str, Any], within: tuple[str, ...]) -> Kind:
    kinds = [kind_of(branch, named, within) for branch in branches]
    if not kinds:
        return Kind(pa.string(), pa.string())
    if len(kinds) == 1:
        return kinds[0]
    if all(kind.tidy is None and kind.read == kind.final and kind.final in _NUMBERS for kind in kinds):
        widest = max((kind.final for kind in kinds), key=_NUMBERS.index)
        # a float beside a long would lose what the long holds
        wide = pa.float64() if widest == pa.float32() else widest
        return Kind(wide, wide)
    return _TEXT


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return json.dumps(value, ensure_ascii=False, default=_inside)


def _inside(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


_TEXT = Kind(pa.string(), pa.string(), _as_text)
