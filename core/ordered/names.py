"""The names by which parts of the ordered runtime are chosen; light enough for `--help`."""

from enum import StrEnum


class OperatorKind(StrEnum):
    """How much of an operator may run at once (section 2.1)."""

    STATELESS = "stateless"
    """No state: any number of workers."""
    PARTITIONED = "partitioned"
    """State by key: one worker in each partition of the keys."""
    STATEFUL = "stateful"
    """One state: one worker."""


class PartitionBy(StrEnum):
    """How a key finds its partition."""

    HASH = "hash"
    RANGE = "range"
    PLAN = "plan"


class FunctionName(StrEnum):
    """What an operator computes."""

    WORK = "work"
    """Arithmetic of a given cost and selectivity that keeps a state where the kind has one."""
    COUNT = "count"
    """The number of tuples of its key so far, this one included."""


KINDS_OF: dict[FunctionName, frozenset[OperatorKind]] = {
    FunctionName.WORK: frozenset(OperatorKind),
    FunctionName.COUNT: frozenset({OperatorKind.PARTITIONED}),
}
"""The kinds of operators that can run each function."""
