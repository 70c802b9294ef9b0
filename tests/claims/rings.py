"""Rings of several seeds: the product's ring has one place for each replica, the papers average over many."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.partitioners import consistent


@contextmanager
def ring_of(seed: int) -> Iterator[None]:
    """While this lasts replica r of channel c stands at the hash of `seed:c#r`; seed 0 is the product's own ring."""
    named = consistent.replica_names
    if seed:
        consistent.replica_names = lambda counts: pc.binary_join_element_wise(pa.scalar(str(seed)), named(counts), ":")
    consistent._ring.cache_clear()
    try:
        yield
    finally:
        consistent.replica_names = named
        consistent._ring.cache_clear()
