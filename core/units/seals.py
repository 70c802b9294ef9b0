"""Seals of JSON documents: a checksum of all other fields."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

SEAL = "seal"
"""The field with the hash of all others, which detects damage."""


def as_json(data: Any) -> bytes:
    """Indented JSON; equal data gives equal bytes."""
    return (json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8", "surrogatepass")


def sealed(data: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON document with the hash of all its other fields."""
    plain = json.loads(as_json({name: value for name, value in data.items() if name != SEAL}))
    return {**plain, SEAL: hash_of(plain)}


def check_seal(data: Mapping[str, Any]) -> None:
    """Check that a document is as it was sealed."""
    if data[SEAL] != hash_of({name: value for name, value in data.items() if name != SEAL}):
        raise ValueError("its content does not match its checksum")


def hash_of(data: Any) -> str:
    """The SHA-256 of plain data, independent of field order."""
    return hashlib.sha256(json.dumps(data, sort_keys=True, ensure_ascii=True, allow_nan=False).encode()).hexdigest()
