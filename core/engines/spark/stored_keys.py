"""Keys as traces and plans store them, in Spark SQL."""

from adapt.core.stream import KeyType

_TYPES = {
    "tinyint": KeyType.INT8,
    "smallint": KeyType.INT16,
    "int": KeyType.INT32,
    "bigint": KeyType.INT64,
    **{each.value: each for each in (KeyType.BOOLEAN, KeyType.DATE, KeyType.TIMESTAMP, KeyType.TIMESTAMP_NTZ)},
    **{each.value: each for each in (KeyType.STRING, KeyType.BINARY)},
}

_UTC = "timestampadd(MICROSECOND, unix_micros({}), TIMESTAMP_NTZ'1970-01-01 00:00:00')"
"""A time in UTC, whatever the zone of the session."""


def spark_key_type(kind: str) -> KeyType | None:
    """Key type by the name of a Spark type, if any."""
    if kind.startswith(("varchar(", "char(", "string collate")):
        return KeyType.STRING
    return KeyType(kind) if kind.startswith("decimal(") else _TYPES.get(kind)


def stored_key_sql(key_type: KeyType) -> str:
    """Expression of the stored key, with columns as `{0}`, `{1}`."""
    if key_type.columns:
        parts = [_json(kind, f"{{{at}}}") for at, kind in enumerate(key_type.columns)]
        return f"concat('[', concat_ws(',', {', '.join(parts)}), ']')"
    return _stored(key_type, "{0}")


def _stored(key_type: KeyType, column: str) -> str:
    if key_type in (KeyType.STRING, KeyType.BINARY):
        return column
    if key_type.storage is KeyType.INT64:
        return f"cast({column} as bigint)"
    return f"cast({_UTC.format(column) if key_type is KeyType.TIMESTAMP else column} as string)"


def _json(key_type: KeyType, column: str) -> str:
    """A column as a JSON value: numbers of whole types, else text."""
    if key_type.storage is KeyType.INT64:
        return f"coalesce(cast({column} as string), 'null')"
    text = f"hex({column})" if key_type is KeyType.BINARY else _stored(key_type, column)
    array = f"to_json(array({text}))"
    return f"substring({array}, 2, length({array}) - 2)"
