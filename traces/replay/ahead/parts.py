"""Short parts of a stream, to measure a replay on."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from adapt.core.stage.conditions.arrivals import Chunk, Rows


def first_rows(rows: Rows, count: int, within_s: float) -> Rows:
    """The first rows of a stream, arriving within a time at most."""

    def chunks() -> Iterator[Chunk]:
        last_s = max((float(chunk.due_s[-1]) for chunk in _cut(rows, count) if chunk.due_s is not None), default=0.0)
        factor = min(1.0, within_s / last_s) if last_s > 0 else 1.0
        for chunk in _cut(rows, count):
            yield chunk if chunk.due_s is None else replace(chunk, due_s=chunk.due_s * factor)

    return Rows(chunks)


def two_rows(rows: Rows, apart_s: float) -> Rows:
    """The first row of a stream twice, so far apart."""

    def chunks() -> Iterator[Chunk]:
        chunk = next(_cut(rows, 1)).taken(np.array([0, 0]))
        yield replace(chunk, due_s=np.array([0.0, apart_s]))

    return Rows(chunks)


def _cut(rows: Rows, count: int) -> Iterator[Chunk]:
    for chunk in rows.chunks():
        part = chunk.part(0, count)
        if len(part.groups):
            yield part
        count -= len(part.groups)
        if count <= 0:
            return
