"""Exact counting of keys, batch by batch."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.errors import BadInput
from adapt.core.frequencies.frequencies import Counts, Frequencies
from adapt.core.frequencies.order import key_order
from adapt.core.hashing.columns import one_array
from adapt.core.stream import Weight


@dataclass(frozen=True, slots=True)
class KeyCounts:
    """What some rows weigh by key, in order of first appearance; parts of a stream merge into the whole.

    Attributes:
        keys: Distinct keys; one may be null. Shape (keys,).
        counts: Weight of each, shape (keys,); int64 for counts and bytes, float64 for cost.
        rows: The rows counted.
    """

    keys: pa.Array
    counts: Counts
    rows: int


def count_keys(keys: pa.Array | pa.ChunkedArray, weights: Counts | None = None) -> KeyCounts:
    """Count one batch: rows by key, or the sum of `weights` by key, added in row order.

    Null is a key of its own. Integer weights are added as integers.

    Raises:
        BadInput: integer weights are too much for int64 all together.
    """
    encoded = pc.dictionary_encode(one_array(keys), null_encoding="encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    distinct = len(encoded.dictionary)
    counts: Counts
    if weights is None:
        counts = np.bincount(codes, minlength=distinct).astype(np.int64, copy=False)
    elif np.issubdtype(weights.dtype, np.integer):
        _refuse_overflow(weights)
        counts = np.zeros(distinct, dtype=np.int64)
        np.add.at(counts, codes, weights.astype(np.int64, copy=False))
    else:
        counts = np.bincount(codes, weights=weights, minlength=distinct)
    return KeyCounts(encoded.dictionary, counts, len(keys))


def merge(parts: Iterable[KeyCounts]) -> KeyCounts:
    """The counts of all parts together; float weights are added in the order of the parts, so it is repeatable.

    Raises:
        ValueError: there are no parts, so that the type of the keys is not known.
    """
    held = list(parts)
    if len(held) == 1:
        return held[0]
    keys = pa.concat_arrays([part.keys for part in held])
    joined = count_keys(keys, np.concatenate([part.counts for part in held]))
    return KeyCounts(joined.keys, joined.counts, sum(part.rows for part in held))


def frequencies_of(parts: KeyCounts | Iterable[KeyCounts], weight: Weight = Weight.COUNT) -> Frequencies:
    """Exact frequencies of one or many counted batches.

    Raises:
        BadInput: a key's weight is negative, infinite or not a number, or all together are too much for int64.
    """
    whole = parts if isinstance(parts, KeyCounts) else merge(parts)
    wrong = np.flatnonzero(~(np.isfinite(whole.counts) & (whole.counts >= 0)))
    if len(wrong):
        key = whole.keys[int(wrong[0])].as_py()
        raise BadInput(f"key {key!r} weighs {whole.counts[wrong[0]]:g}, but a weight is a finite number from 0 up")
    _refuse_overflow(whole.counts)
    order = key_order(whole.keys, whole.counts)
    counts = whole.counts[order]
    return Frequencies(
        keys=whole.keys.take(pa.array(order)),
        count_low=counts,
        count_high=counts,
        total=float(counts.sum()),
        rows=whole.rows,
        weight=weight,
        distinct=len(counts),
    )


def _refuse_overflow(weights: Counts) -> None:
    if np.issubdtype(weights.dtype, np.integer) and float(weights.sum(dtype=np.float64)) >= 2.0**63:
        raise BadInput("the weights add up to more than an int64 holds; weigh in larger units")
