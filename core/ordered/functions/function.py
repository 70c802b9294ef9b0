"""What a function of an operator is: the same arithmetic in plain Python and compiled."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from adapt.core.compiled import AtAddress
from adapt.core.ordered.bound import BoundOperator, Words

Row: TypeAlias = tuple[int, ...]
"""The words of one tuple as numbers from 0 to below 2^64."""

Step: TypeAlias = Callable[[Row], Sequence[Row]]
"""The outputs of a tuple. A step keeps its own state."""

STATE, STRIDE, PACE, OWN = 0, 1, 2, 3
"""The words that every compiled function is given: the address of its state, the bytes from one output to the next, the
steps of work that take 1024 ns. Its own words begin at the last."""


class Function(Protocol):
    """The arithmetic of an operator."""

    @property
    def compiled(self) -> AtAddress:
        """The compiled form: given the addresses of its words, of a tuple and of room for outputs, their number.

        Its signature is int64(words, partition, tuple, outputs). A number below 0 fails the run.
        """

    def most(self, bound: BoundOperator) -> int:
        """The most outputs that a tuple can have."""

    def step(self, bound: BoundOperator) -> Step:
        """The plain form, in its first state."""

    def words(self, bound: BoundOperator) -> tuple[int, ...]:
        """What the compiled form is given beside the common words."""

    def state(self, bound: BoundOperator) -> Words:
        """The first state of the compiled form."""
