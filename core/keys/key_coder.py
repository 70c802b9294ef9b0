"""Dictionary encoding of key columns, batch by batch."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.compiled import compiled

MOST_PLACES = 1 << 22
"""Numbers below this are coded by a table, 4 bytes each; larger ones by hashing."""


@dataclass(frozen=True, slots=True)
class Coded:
    """Rows as codes of distinct keys."""

    keys: pa.Array  # distinct keys by first occurrence; one may be null. Shape (keys,)
    codes: NDArray[np.int32]  # the index of each row's key, shape (rows,)

    def counts(self, first: int = 0, end: int | None = None) -> NDArray[np.int64]:
        """Rows per key in [first, end); shape (keys,)."""
        return np.bincount(self.codes[first:end], minlength=len(self.keys)).astype(np.int64, copy=False)

    def sums(self, amounts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sum of amounts per key; shape (keys,)."""
        sums = np.zeros(len(self.keys), np.int64)
        np.add.at(sums, self.codes, amounts)
        return sums


@dataclass(slots=True)
class Coder:
    """Encodes batches into one `Coded`, four bytes per row."""

    _dictionaries: list[pa.Array] = field(default_factory=list)
    _codes: list[NDArray[np.int32]] = field(default_factory=list)

    def add(self, keys: pa.Array) -> None:
        """Add the next rows; every key of a dictionary must be used."""
        coded = pa.types.is_dictionary(keys.type)
        encoded = keys if coded else pc.dictionary_encode(keys, null_encoding="encode")
        self._dictionaries.append(encoded.dictionary)
        self._codes.append(encoded.indices.to_numpy(zero_copy_only=False))

    def done(self) -> Coded:
        """The encoded rows of all batches, at least one."""
        one = self._dictionaries[0]
        if all(other.equals(one) for other in self._dictionaries[1:]):
            return Coded(one, np.concatenate(self._codes))
        joined = pc.dictionary_encode(pa.concat_arrays(self._dictionaries), null_encoding="encode")
        places = joined.indices.to_numpy(zero_copy_only=False)
        firsts = np.cumsum([0, *map(len, self._dictionaries[:-1])])
        codes = [places[first + codes] for first, codes in zip(firsts, self._codes, strict=True)]
        return Coded(joined.dictionary, np.concatenate(codes))


def coded_numbers(numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Distinct non-negative numbers by first occurrence, and codes of rows.

    Shapes (numbers,) and (rows,).
    """
    places = int(numbers.max(initial=-1)) + 1
    if places > MOST_PLACES:
        coded = pc.dictionary_encode(pa.array(numbers))
        return coded.dictionary.to_numpy(), coded.indices.to_numpy()
    distinct, codes = np.empty(min(places, len(numbers)), np.int64), np.empty(len(numbers), np.int32)
    found = _code(numbers, np.full(places, -1, np.int32), distinct, codes)
    return distinct[:found], codes


@compiled
def _code(
    numbers: NDArray[np.int64], places: NDArray[np.int32], distinct: NDArray[np.int64], codes: NDArray[np.int32]
) -> int:
    """The codes of numbers; `places` has -1 for each new number."""
    found = 0
    for row in range(len(numbers)):
        number = numbers[row]
        code = places[number]
        if code < 0:
            code = found
            places[number] = code
            distinct[code] = number
            found += 1
        codes[row] = code
    return found
