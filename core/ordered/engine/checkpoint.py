"""Checkpoints: what a run has, at a punctuation, of state and output."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from adapt.core.atomics import allocate
from adapt.core.compiled import compiled
from adapt.core.ordered.chain.bound import Words
from adapt.core.ordered.chain.mixing import FOLD
from adapt.core.ordered.engine.kernel.tuples import copy_words
from adapt.core.ordered.engine.serial import Egress
from adapt.core.ordered.functions.function import Blocks


@dataclass(frozen=True, slots=True, eq=False)
class SavedState:
    """The state of an operator, without addresses.

    Attributes:
        words: Its words, with 0 where they hold addresses.
        blocks: The content of its memory blocks, by the word that holds the address.
    """

    words: Words
    blocks: dict[int, Words]

    def restore(self, state: Words, blocks: Sequence[Blocks]) -> None:
        """Write it into the state of another run.

        Raises:
            ValueError: that is the state of another operator.
            MemoryError: there is no memory for a block.
        """
        if state.shape != self.words.shape or not {*self.blocks} <= {at for each in blocks for at in _places(each)}:
            raise ValueError("the checkpoint is of another chain")
        state[:] = self.words
        for at, block in self.blocks.items():
            state[at] = _copied(block.ctypes.data, len(block))
            if state[at] == 0:
                raise MemoryError(f"no memory for {8 * len(block):,} bytes of a checkpoint")


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """States and output of a chain after a punctuation.

    Attributes:
        egress: All output so far.
        states: State of each operator; empty before the first tuple.
    """

    egress: Egress
    states: tuple[SavedState, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of every byte of the states."""
        digest = sha256()
        for state in self.states:
            digest.update(state.words.tobytes())
            for at, block in sorted(state.blocks.items()):
                digest.update(b"%d %d " % (at, len(block)) + block.tobytes())
        return digest.hexdigest()


START = Checkpoint(Egress(0, FOLD), ())
"""That before the first tuple."""


def saved(state: Words, blocks: Sequence[Blocks]) -> SavedState:
    """A copy of a state and its memory blocks."""
    words, contents = state.copy(), dict[int, Words]()
    for each in blocks:
        for at in _places(each):
            if state[at]:
                size = int(state[at + each.room]) * each.unit
                contents[at] = np.ctypeslib.as_array((ctypes.c_int64 * size).from_address(int(state[at]))).copy()
                words[at] = 0
    return SavedState(words, contents)


def _places(blocks: Blocks) -> range:
    return range(blocks.first, blocks.first + blocks.step * blocks.count, blocks.step)


@compiled
def _copied(words: int, count: int) -> int:
    """Address of a newly allocated copy; 0 without memory."""
    block = allocate(count)
    if block:
        copy_words(words, block, count)
    return block
