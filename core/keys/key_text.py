"""Keys as text: strings unchanged, integers in decimal, bytes in hex."""

from collections.abc import Iterable

import pyarrow as pa

from adapt.core.errors import BadInput
from adapt.core.keys.columns import ARROW_TYPES
from adapt.core.stream import Key, KeyType


def key_to_text(key: str | int | bytes) -> str:
    """The text of a non-null key."""
    return key.hex() if isinstance(key, bytes) else str(key)


def keys_from_texts(texts: Iterable[str], key_type: KeyType) -> pa.Array:
    """The column of keys with these texts.

    Accepts only the output of `key_to_text` (and upper-case hex), so two texts are never one key.

    Raises:
        BadInput: a text is not a key of that type.
    """
    return pa.array([_key_from_text(text, key_type) for text in texts], ARROW_TYPES[key_type])


def _key_from_text(text: str, key_type: KeyType) -> Key:
    match key_type:
        case KeyType.STRING if _is_unicode(text):
            return text
        case KeyType.INT64 if _is_int64(text):
            return int(text)
        case KeyType.BINARY if _is_hex(text):
            return bytes.fromhex(text)
    meant = {
        KeyType.STRING: "Unicode text",
        KeyType.INT64: "64-bit integers in decimal",
        KeyType.BINARY: "bytes in hex",
    }
    raise BadInput(f"{key_type} keys must be {meant[key_type]} (got {text!r})")


def _is_unicode(text: str) -> bool:
    """Whether text has no lone surrogates, which JSON can express and UTF-8 cannot."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _is_int64(text: str) -> bool:
    digits = text.removeprefix("-")
    short = digits.isascii() and digits.isdigit() and len(digits) < 20
    return short and str(int(text)) == text and -(2**63) <= int(text) < 2**63


def _is_hex(text: str) -> bool:
    return len(text) % 2 == 0 and all(digit in "0123456789abcdefABCDEF" for digit in text)
