"""Payload of tuples: further words that parametric operators read.

Source: ordered streams, section 7.1: "per-tuple processing cost, input tuple size, state size [...] and selectivity
can be varied". What the words hold is ours.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from adapt.core.ordered.chain.chain import WORD, Operator
from adapt.core.ordered.chain.mixing import mixed


def payload_fields(tuple_bytes: int) -> tuple[str, ...]:
    """Names of the words of a payload."""
    return tuple(f"payload {number}" for number in range(tuple_bytes // WORD))


def payload_bytes(operators: Sequence[Operator]) -> int:
    """Payload of a chain's tuples: the largest that an operator reads."""
    return max(operator.tuple_bytes for operator in operators)


def payload_of(rows: NDArray[np.int64], tuple_bytes: int) -> NDArray[np.int64]:
    """Payload of rows by their numbers, shape (rows, words).

    It is (row + 1) times a factor for each word, modulo 2^64.
    """
    factors = np.array([mixed(number + 1) for number in range(tuple_bytes // WORD)], np.uint64).view(np.int64)
    return (rows[:, None] + 1) * factors
