"""Marks: what turns a key into replacement keys, and back."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, count, islice, product
from typing import NoReturn, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.errors import UsageError
from adapt.core.keys.columns import key_bytes
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
        """Replacements number `first` to `first + count` of each key.

        Shape (keys * count,).
        """

    def stripped(self, keys: pa.Array) -> pa.Array:
        """The original of each key; itself if not a replacement."""

    def marks(self, keys: pa.Array) -> pa.Array:
        """Whether each key looks like a replacement; shape (keys,)."""


@dataclass(frozen=True, slots=True)
class Separator:
    """A text between a key and its suffix.

    Suffixes are numbered by length, then alphabetically.
    """

    text: str  # the separator, in keys of bytes as UTF-8
    key_type: KeyType  # string or binary

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
        """Replacements number `first` to `first + count` of each key.

        Shape (keys * count,).
        """
        each = pa.array(islice(_suffixes(), first, first + count), pa.string())
        rows, places = np.repeat(np.arange(len(keys)), count), np.tile(np.arange(count), len(keys))
        wide = pa.large_string() if self.key_type is KeyType.STRING else pa.large_binary()
        joint = self.text if self.key_type is KeyType.STRING else self.text.encode()
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

    A replacement is key + number 2^bits, or key - number 2^bits of a negative key: the key is the remainder by 2^bits.
    """

    bits: int  # every key of the trace is between -2^bits and 2^bits

    def __post_init__(self) -> None:
        if not 8 <= self.bits <= 62:
            raise UsageError(f"integer keys must be held in 8 to 62 bits (got {self.bits})")

    @property
    def modulus(self) -> int:
        """2^bits."""
        return int(2**self.bits)

    @property
    def most(self) -> int:
        """The largest number."""
        return int(2 ** (63 - self.bits) - 1)

    def marked(self, keys: pa.Array, first: int, count: int) -> pa.Array:
        """Replacements number `first` to `first + count` of each key.

        Shape (keys * count,).
        """
        numbers = np.arange(first + 1, first + 1 + count, dtype=np.int64) << self.bits
        values = keys.to_numpy()[:, None]
        return pa.array((values + np.where(values < 0, -numbers, numbers)).reshape(-1))

    def stripped(self, keys: pa.Array) -> pa.Array:
        """The original of each key: its remainder, with its sign."""
        values = np.fmod(keys.fill_null(0).to_numpy(), np.int64(self.modulus))
        return pa.array(values, mask=keys.is_null().to_numpy(zero_copy_only=False))

    def marks(self, keys: pa.Array) -> pa.Array:
        """Whether each key has bits above; shape (keys,)."""
        return pc.fill_null(pc.not_equal(self.stripped(keys), keys), fill_value=False)


AnyMark: TypeAlias = Separator | HighBits


def mark_for(blocks: Iterable[pa.Array], key_type: KeyType, channels: int, wanted: str | None = None) -> AnyMark:
    """The first mark that no key uses, or the wanted separator.

    Args:
        blocks: Every key known, of that type, in blocks; read once.
    """
    if wanted is not None and key_type is KeyType.INT64:
        raise UsageError(f"--separator is for keys of text or bytes; integer keys have none (got {wanted!r})")
    left: list[AnyMark]
    if key_type is KeyType.INT64:
        bits = 63 - (NUMBERS_PER_CHANNEL * channels).bit_length()
        left = [HighBits(min(MOST_BITS, bits)), HighBits(bits)]
    else:
        left = [Separator(text, key_type) for text in ((wanted,) if wanted is not None else SEPARATORS)]
    for keys in blocks:
        used = [mark.marks(keys) for mark in left]
        free = [mark for mark, using in zip(left, used, strict=True) if not pc.any(using, min_count=0).as_py()]
        if not free:
            _refuse(keys.filter(used[-1])[0].as_py(), left[-1], channels, wanted)
        left = free
    return left[0]


def _refuse(key: Key, mark: AnyMark, channels: int, wanted: str | None) -> NoReturn:
    """Name a key that uses the last mark left."""
    if isinstance(mark, HighBits):
        raise UsageError(
            f"integer keys must fit into {mark.bits} bits over {channels} channels (got {key!r}); cast the keys to text"
        )
    if wanted is not None:
        raise UsageError(f"--separator {wanted} occurs in key {key!r}; choose another, or omit it")
    raise UsageError(f"every separator tried occurs in a key, such as {key!r}; name a longer one with --separator")


def _suffixes() -> "chain[str]":
    """Every suffix, shortest first."""
    return chain.from_iterable(map("".join, product(ALPHABET, repeat=length)) for length in count(1))
