"""Interface of operator functions: the same arithmetic in plain Python and compiled."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from adapt.core.compiled import AtAddress
from adapt.core.ordered.chain.bound import BoundOperator, Words

Row: TypeAlias = tuple[int, ...]
"""Words of a tuple, each from 0 to below 2^64."""

Step: TypeAlias = Callable[[Row], Sequence[Row]]
"""Outputs of a tuple; a step keeps its own state."""

STATE, STRIDE, PACE, MOST, ROUTES, OWN = 0, 1, 2, 3, 4, 5
"""Leading words of every compiled function: address of its state, bytes from one output to the next, steps of busy work
in 1024 ns, outputs that fit, and in a graph the address of its routes. Its own words follow."""

SIGNATURE = "int64(int64, int64, int64, int64)"
"""Signature of compiled functions: words, partition, tuple, outputs."""

NO_MEMORY = -2
"""Return value of a compiled function that ran out of memory."""


class Windowed(ABC):
    """A step with further outputs at punctuations."""

    @abstractmethod
    def __call__(self, row: Row) -> Sequence[Row]:
        """Outputs of a tuple."""

    @abstractmethod
    def close(self, partition: int, time: int) -> Sequence[Row]:
        """Outputs of a partition at a punctuation.

        All tuples before its time have arrived; `END` is the end of the stream.
        """


@dataclass(frozen=True, slots=True)
class Blocks:
    """Words of a state that hold addresses of memory blocks.

    Blocks are freed after a run; 0 means no block.
    """

    first: int  # the first such word
    step: int  # words from one to the next
    count: int  # number of such words
    room: int  # words from one to that with the capacity of its block
    unit: int  # words of a block for each unit of capacity


class Function(ABC):
    """Arithmetic of an operator."""

    @property
    def closing(self) -> AtAddress | None:
        """As `compiled`, for a punctuation, once per partition; None to ignore it.

        Its time is the first word of the tuple.

        Functions that define it have `Windowed` steps.
        """
        return None

    @property
    def unbounded(self) -> bool:
        """Whether a tuple can have more outputs than `most`."""
        return False

    @property
    @abstractmethod
    def compiled(self) -> AtAddress:
        """The compiled step of a function.

        It takes the addresses of its words, of a tuple and of room for outputs, and returns their number.

        Its signature is `SIGNATURE`. A number below 0 fails the run. With a number above `most`, the first word of the
        room holds the address of a block (`allocate`) with the outputs: they start after one word and leave space for
        one more behind them. The sender frees the block."""

    def most(self, bound: BoundOperator) -> int:  # noqa: ARG002 (most give one output)
        """Outputs per tuple for which room is reserved."""
        return 1

    @abstractmethod
    def step(self, bound: BoundOperator) -> Step:
        """The plain-Python step with its initial state."""

    @abstractmethod
    def words(self, bound: BoundOperator) -> tuple[int, ...]:
        """Further words of the compiled step."""

    def state(self, bound: BoundOperator) -> Words:  # noqa: ARG002 (most have no further words)
        """Initial state of the compiled step."""
        return np.zeros(1, np.int64)

    def routes(self, bound: BoundOperator) -> Words:  # noqa: ARG002 (of graphs only)
        """Its part in each stream of a graph; empty in a chain."""
        return np.zeros(0, np.int64)

    def blocks(self, bound: BoundOperator) -> Sequence[Blocks]:  # noqa: ARG002
        """Words of the state that hold memory blocks."""
        return ()

    def failure(self, repeat: Callable[[], object]) -> Exception | None:  # noqa: ARG002 (for own functions)
        """What the compiled step raised, if it can tell.

        `repeat` runs the stream in plain Python.
        """
        return None
