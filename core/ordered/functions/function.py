"""What a function of an operator is: the same arithmetic in plain Python and compiled."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from adapt.core.compiled import AtAddress
from adapt.core.ordered.chain.bound import BoundOperator, Words

Row: TypeAlias = tuple[int, ...]
"""The words of one tuple as numbers from 0 to below 2^64."""

Step: TypeAlias = Callable[[Row], Sequence[Row]]
"""The outputs of a tuple. A step keeps its own state."""

STATE, STRIDE, PACE, MOST, OWN = 0, 1, 2, 3, 4
"""The words that every compiled function is given: the address of its state, the bytes from one output to the next, the
steps of work that take 1024 ns, the outputs that there is room for. Its own words begin at the last."""

SIGNATURE = "int64(int64, int64, int64, int64)"
"""Of every compiled function: words, partition, tuple, outputs."""

NO_MEMORY = -2
"""What a compiled function gives that found none."""


class Windowed(ABC):
    """A step that gives more at punctuations."""

    @abstractmethod
    def __call__(self, row: Row) -> Sequence[Row]:
        """The outputs of a tuple."""

    @abstractmethod
    def close(self, partition: int, time: int) -> Sequence[Row]:
        """What a partition gives when all before a time has come; `END`, when all has."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Words of a state that hold addresses of blocks of memory, which are given back after a run; 0 is none.

    Attributes:
        first: The first of them.
        step: Words from one to the next.
        count: How many.
    """

    first: int
    step: int
    count: int


class Function(ABC):
    """The arithmetic of an operator."""

    closing: ClassVar[AtAddress | None] = None
    """As `compiled`, for a punctuation, which each partition is given, its time as its first word; None does nothing.

    A function that has it has steps that are `Windowed`.
    """

    unbounded: ClassVar[bool] = False
    """Whether there can be more outputs than `most`."""

    @property
    @abstractmethod
    def compiled(self) -> AtAddress:
        """The compiled form: given the addresses of its words, of a tuple and of room for outputs, their number.

        Its signature is `SIGNATURE`. A number below 0 fails the run. One above `most` says that the first word of the
        room has the address of a block (`allocate`) in which the outputs stand as they would there, the first of them
        after one word, with the space of one more behind them; who sends them gives it back.
        """

    def most(self, bound: BoundOperator) -> int:  # noqa: ARG002 (most give one)
        """The outputs for which a tuple is given room."""
        return 1

    @abstractmethod
    def step(self, bound: BoundOperator) -> Step:
        """The plain form, in its first state."""

    @abstractmethod
    def words(self, bound: BoundOperator) -> tuple[int, ...]:
        """What the compiled form is given beside the common words."""

    def state(self, bound: BoundOperator) -> Words:  # noqa: ARG002 (most have none)
        """The first state of the compiled form."""
        return np.zeros(1, np.int64)

    def blocks(self, bound: BoundOperator) -> Sequence[Blocks]:  # noqa: ARG002
        """Where the state holds blocks of memory."""
        return ()
