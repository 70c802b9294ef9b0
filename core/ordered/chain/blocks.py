"""Binding of a chain to a long trace, by blocks of rows."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.errors import BadInput
from adapt.core.keys.partitioner import Partitioner
from adapt.core.ordered.chain.bound import BoundChain, BoundOperator, PartitionOf, Store, Words, bind, range_partitions
from adapt.core.ordered.chain.chain import VALUE, Chain
from adapt.core.ordered.chain.layouts import payload_bytes, payload_fields, payload_of
from adapt.core.ordered.chain.names import PartitionBy
from adapt.core.ordered.chain.own import OwnFunction

Columns = Mapping[str, pa.ChunkedArray]
"""Columns of a block by name."""


def bind_blocks(
    chain: Chain, blocks: Iterable[Columns], plan: Partitioner | None, store: Store, where: str = ""
) -> BoundChain:
    """Bind a chain to a trace by blocks, as `bind` does.

    One block at a time is in memory.

    Args:
        blocks: Columns of consecutive rows, at least one block.
        store: Keeps the tuples, and later their arrival times.
        where: How errors of a column begin.
    """
    binder = _Binder(chain, plan, where)
    tuples = store(binder.tuples(blocks))
    return binder.bound(tuples, store)


class _Texts:
    """Texts or keys of a field, numbered as they first appear."""

    def __init__(self, kind: pa.DataType) -> None:
        self.known = pa.array([], kind)

    def numbers_of(self, texts: pa.Array) -> tuple[Words, Words]:
        """Numbers of a block's texts, and positions of new ones."""
        found = pc.index_in(texts, value_set=self.known)
        new = np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False))
        numbers = found.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        numbers[new] = len(self.known) + np.arange(len(new))
        self.known = pa.concat_arrays([self.known, texts.take(pa.array(new))])
        return numbers, new


class _Binder:
    """Joins blocks that were bound one by one."""

    def __init__(self, chain: Chain, plan: Partitioner | None, where: str) -> None:
        self._chain, self._plan, self._where = chain, plan, where
        self._numbers_rows = not all(isinstance(each.function, OwnFunction) for each in chain.operators)
        self._texts: dict[str, _Texts] = {}
        self._partitions: dict[str, list[PartitionOf]] = {}
        self._rows = self._tuples = 0
        self._punctuations: list[Words] = [np.zeros(0, np.int64)]
        self._first: BoundChain | None = None
        self._held: Words | None = None  # punctuations that follow the last row, unless its stretch goes on
        self._last_time: object = None

    def tuples(self, blocks: Iterable[Columns]) -> Iterator[Words]:
        """The tuples of each block, then the punctuations at the end."""
        for columns in blocks:
            self._check_times(columns)
            try:
                block = bind(self._chain, columns, self._plan)
            except BadInput as error:
                counted = f"; rows are counted from row {self._rows:,}" if self._rows else ""
                raise BadInput(f"{self._where}{error}{counted}") from error
            self._first = self._first or replace(block, tuples=block.tuples[:0])
            yield self._joined(block)
            self._rows += block.rows
        if self._held is not None:
            self._punctuations.append(self._tuples + np.arange(len(self._held)))
            yield self._held

    def _check_times(self, columns: Columns) -> None:
        """Check that times of punctuations do not go back between blocks."""
        if self._chain.punctuations is None or self._chain.punctuations.column not in columns:
            return
        name = self._chain.punctuations.column
        first = columns[name][0].as_py()
        if self._last_time is not None and first is not None and first < self._last_time:
            where = f"{self._where}[punctuations]: column {name!r}"
            raise BadInput(f"{where} goes back in time in row {self._rows}; sort the input by it")
        self._last_time = columns[name][-1].as_py()

    def _joined(self, block: BoundChain) -> Words:
        """The tuples of a block as those of the whole trace."""
        tuples, at = block.tuples, block.punctuations
        is_row = np.ones(len(tuples), bool)
        is_row[at] = False
        for name, texts in block.texts.items():
            numbers, new = self._texts.setdefault(name, _Texts(texts.type)).numbers_of(texts)
            self._note_partitions(block, name, new)
            if name in block.fields:
                word = block.fields.index(name)
                tuples[is_row, word] = numbers[tuples[is_row, word]]
        if self._numbers_rows and VALUE in block.fields:
            tuples[is_row, block.fields.index(VALUE)] += self._rows
        if self._rows and (size := payload_bytes(self._chain.operators)):
            first = block.fields.index(payload_fields(size)[0])
            words = payload_of(np.arange(self._rows, self._rows + block.rows), size)
            tuples[is_row, first : first + words.shape[1]] = words
        if len(at):
            tuples, at = self._punctuated(tuples, at)
        self._punctuations.append(self._tuples + at)
        self._tuples += len(tuples)
        return tuples

    def _punctuated(self, tuples: Words, at: Words) -> tuple[Words, Words]:
        """A block with the punctuations before it.

        Those after its last row are held.
        """
        times, held = tuples[at, 0], self._held
        after = 1 if len(at) == 1 else 2  # the end of the stream, and that of a stretch
        self._held, tuples, at = tuples[-after:].copy(), tuples[:-after], at[:-after]
        if held is not None and after == 2 and held[0, 0] < times[0]:
            tuples, at = np.concatenate([held[:1], tuples]), np.append(0, at + 1)
        return tuples, at

    def _note_partitions(self, block: BoundChain, name: str, new: Words) -> None:
        """Partitions of new keys."""
        for bound in block.operators:
            if bound.partition_of is not None and bound.fields[bound.key_at] == name:
                self._partitions.setdefault(bound.operator.name, []).append(bound.partition_of[new])

    def bound(self, tuples: Words, store: Store) -> BoundChain:
        """The chain with all its tuples."""
        if self._first is None:
            raise BadInput("there are no rows to run")
        return replace(
            self._first,
            operators=tuple(self._with_all_keys(bound) for bound in self._first.operators),
            tuples=tuples,
            punctuations=np.concatenate(self._punctuations),
            texts={name: texts.known for name, texts in self._texts.items()},
            store=store,
        )

    def _with_all_keys(self, bound: BoundOperator) -> BoundOperator:
        """An operator with the partitions of all keys."""
        bound = replace(bound, texts={name: texts.known for name, texts in self._texts.items()})
        if bound.partition_of is None:
            return bound
        if bound.operator.by is PartitionBy.RANGE:
            keys = self._texts[bound.fields[bound.key_at]].known
            return replace(bound, partition_of=range_partitions(keys, bound.partitions))
        return replace(bound, partition_of=np.concatenate(self._partitions[bound.operator.name]))
