"""Marks: what turns a key into replacement keys, and back."""

from dataclasses import dataclass
from itertools import chain, count, islice, product
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.errors import UsageError
from adapt.core.keys.columns import key_bytes, key_type_of
from adapt.core.stream import Key, KeyType

ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
"""The characters of suffixes."""

SEPARATORS = ("~", "#", "^", "|", "@", "!", "~#", "#^", "^|", "|~", "@#", "~#^", "#^|", "^|~", "~#^|", "#^|~@!")
"""Separators tried in this order: plain in SQL, Java, Python and JSON."""

MOST_BITS = 48
"""Most low bits that hold an integer key while keys fit; the numbers above need the others."""

NUMBERS_PER_CHANNEL = 30
"""Numbers that each channel needs: one key of 10^13 finds none among them."""


class Mark(Protocol):
    """A way to make replacement keys of one key type."""

    @property
    def most(self) -> int:
        """How many replacements each key has."""

    def marked(self, keys: pa.Array, first: int, count: int) -> pa.Array:
        """Replacements number `first` to `first + count` of each key; shape (keys * count,)."""

    def stripped(self, keys: pa.Array) -> pa.Array:
        """The original of each key: of a replacement its key, of another key itself."""

    def marks(self, keys: pa.Array) -> pa.Array:
        """Whether each key looks like a replacement; shape (keys,)."""


@dataclass(frozen=True, slots=True)
class Separator:
    """A text between a key and its suffix.

    Suffixes are numbered by length, then alphabetically.

    Attributes:
        text: The separator, in keys of bytes as UTF-8.
        key_type: String or binary.
    """

    text: str
    key_type: KeyType

    def __post_init__(self) -> None:
        known = self.text and not set(self.text) & set(ALPHABET + ALPHABET.upper() + "'\"\\")
        if not (known and self.text.isascii() and self.text.isprintable()):
            raise UsageError(
                f"a separator must be printable ASCII without letters, digits, quotes and backslashes"
                f" (got {self.text!r})"
            )
        if any(self.text.startswith(self.text[at:]) for at in range(1, len(self.text))):
            raise UsageError(f"a separator must not end as it begins, since a key may end so too (got {self.text!r})")

    @property
    def most(self) -> int:
        """How many suffixes of up to five characters there are."""
        return sum(len(ALPHABET) ** length for length in range(1, 6))

    def marked(self, keys: pa.Array, first: int, count: int) -> pa.Array:
        """Replacements number `first` to `first + count` of each key; shape (keys * count,)."""
        each = pa.array(islice(_suffixes(), first, first + count), pa.string())
        rows, places = np.repeat(np.arange(len(keys)), count), np.tile(np.arange(count), len(keys))
        if self.key_type is KeyType.STRING:
            wide, joint = pa.large_string(), self.text
        else:
            wide, joint = pa.large_binary(), self.text.encode()
        parts = (keys.cast(wide).take(pa.array(rows)), each.cast(wide).take(pa.array(places)))
        return pc.binary_join_element_wise(*parts, pa.scalar(joint, wide)).cast(keys.type)

    def stripped(self, keys: pa.Array) -> pa.Array:
        """The original of each key: all before the first separator."""
        cut, ends = key_bytes(keys), self._found(keys)
        lengths = np.diff(cut.offsets)
        kept = np.where(ends < 0, lengths, ends)
        if (kept == lengths).all():
            return keys
        raw = keys.cast(pa.binary()).to_pylist()
        short = [None if key is None else key[:end] for key, end in zip(raw, kept.tolist(), strict=True)]
        return pa.array(short, pa.binary()).cast(keys.type)

    def marks(self, keys: pa.Array) -> pa.Array:
        """Whether each key contains the separator; shape (keys,)."""
        return pc.fill_null(pc.match_substring(keys, self.text), fill_value=False)

    def _found(self, keys: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The byte at which the separator begins, or -1."""
        column = keys.cast(pa.large_binary())
        return np.asarray(pc.find_substring(column, self.text).fill_null(-1).to_numpy(), np.int64)


@dataclass(frozen=True, slots=True)
class HighBits:
    """A number above the bits that hold an integer key.

    A replacement is key XOR (number << bits); the sign stays the key's.

    Attributes:
        bits: The low bits that hold every key of the trace, without its sign.
    """

    bits: int

    def __post_init__(self) -> None:
        if not 8 <= self.bits <= 62:
            raise UsageError(f"integer keys must be held in 8 to 62 bits (got {self.bits})")

    @property
    def most(self) -> int:
        """The largest number."""
        return int(2 ** (63 - self.bits) - 1)

    def marked(self, keys: pa.Array, first: int, count: int) -> pa.Array:
        """Replacements number `first` to `first + count` of each key; shape (keys * count,)."""
        numbers = np.arange(first + 1, first + 1 + count, dtype=np.int64) << self.bits
        return pa.array((keys.to_numpy()[:, None] ^ numbers).reshape(-1))

    def stripped(self, keys: pa.Array) -> pa.Array:
        """The original of each key: its low bits, with its sign."""
        values = keys.fill_null(0).to_numpy()
        low = np.where(values >= 0, values & (1 << self.bits) - 1, values | (-1 << self.bits))
        return pa.array(low, mask=keys.is_null().to_numpy(zero_copy_only=False))

    def marks(self, keys: pa.Array) -> pa.Array:
        """Whether each key has bits above; shape (keys,)."""
        return pc.fill_null(pc.not_equal(self.stripped(keys), keys), fill_value=False)


AnyMark: TypeAlias = Separator | HighBits


def mark_for(keys: pa.Array, channels: int, wanted: str | None = None) -> AnyMark:
    """The first mark that no key uses, or the wanted separator.

    Args:
        keys: Every key known, of one type.

    Raises:
        UsageError: a key uses the separator, every one is in use, or integers leave no bits free.
    """
    key_type, tried = key_type_of(keys.type), list[AnyMark]()
    if wanted is not None and key_type is KeyType.INT64:
        raise UsageError(f"--separator is for keys of text or bytes; integer keys have none (got {wanted!r})")
    if key_type is KeyType.INT64:
        bits = 63 - (NUMBERS_PER_CHANNEL * channels).bit_length()
        tried = [HighBits(min(MOST_BITS, bits)), HighBits(bits)]
    else:
        tried = [Separator(text, key_type) for text in ((wanted,) if wanted is not None else SEPARATORS)]
    for mark in tried:
        used = mark.marks(keys)
        if not pc.any(used, min_count=0).as_py():
            return mark
    key: Key = keys.filter(used)[0].as_py()
    if key_type is KeyType.INT64:
        raise UsageError(
            f"integer keys must fit into {bits} bits over {channels} channels (got {key}); cast the keys to text"
        )
    if wanted is not None:
        raise UsageError(f"--separator {wanted} occurs in key {key!r}; choose another, or omit it")
    raise UsageError(f"every separator tried occurs in a key, such as {key!r}; name a longer one with --separator")


def _suffixes() -> "chain[str]":
    """Every suffix, shortest first."""
    return chain.from_iterable(map("".join, product(ALPHABET, repeat=length)) for length in count(1))
