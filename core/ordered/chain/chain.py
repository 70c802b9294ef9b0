"""Chains of operators, as users describe them.

Operators follow each other, or form a graph: each reads inputs and earlier operators.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from adapt.core.errors import BadInput
from adapt.core.ordered.chain.graph import Graph, graph_of
from adapt.core.ordered.chain.names import FunctionName, OperatorKind, PartitionBy, PartitionCount
from adapt.core.ordered.chain.own import OwnFunction
from adapt.core.ordered.chain.roles import COUNTED, TIME, role_of

MOST_OPERATORS = 32
MOST_PARTITIONS = 1 << 20
MOST_OUTPUTS = 1 << 16
"""Outputs of one tuple."""
LONGEST_COST_US = 1e9
WORD = 8
"""Bytes of a word: sizes of tuples and states are multiples of it."""
MOST_TUPLE_BYTES, MOST_STATE_BYTES = 16 << 10, 1 << 30


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of a chain.

    Attributes:
        name: Unique in the chain.
        kind: Stateless, partitioned or stateful.
        key: Column with the key of the state; of a partitioned operator only.
        partitions: Number of partitions, 1 to 2^20; `WORKERS` for as many as workers; None if a plan gives it.
        by: How keys are partitioned.
        cost: Microseconds of work per tuple, or a column with them; for `work`, and for own functions in a model.
        selectivity: Mean outputs per tuple; for `work` only.
        function: Function that it runs.
        sources: Inputs and earlier operators that it reads; None for the operator before it.
        tuple_bytes: Payload that it reads of each tuple, and that tuples therefore carry; for `work` only.
        state_bytes: State of each key, all of which it reads and writes for each tuple; for `work` only. 0 for a word.

    Source: ordered streams, sections 2.1 and 7.1 (parametric operators).
    """

    name: str
    kind: OperatorKind
    key: str | None = None
    partitions: int | PartitionCount | None = None
    by: PartitionBy = PartitionBy.HASH
    cost: float | str = 0.0
    selectivity: float = 1.0
    function: FunctionName | OwnFunction = FunctionName.WORK
    sources: tuple[str, ...] | None = None
    tuple_bytes: int = 0
    state_bytes: int = 0

    def __post_init__(self) -> None:
        if not self.name:
            raise BadInput("an operator has an empty name; give each operator a name")
        _check_key(self)
        _check_function(self)
        _check_sizes(self)


@dataclass(frozen=True, slots=True)
class Punctuations:
    """Punctuations: how far event time has advanced, for operators with windows.

    One follows the last row of each interval that has rows, with the time at which the interval ends, and one ends the
    stream. They never come from a clock, which would make the order of a run undefined.

    Attributes:
        column: Column of times in ascending order.
        every_us: Length of the intervals, aligned to 1970; None for only one punctuation at the end.
    """

    column: str = TIME
    every_us: int | None = None

    def __post_init__(self) -> None:
        if not self.column:
            raise BadInput('[punctuations]: column must not be empty (default: "ts")')
        if self.every_us is not None and not 0 < self.every_us < 1 << 62:
            raise BadInput(f"[punctuations]: every must be at least 1us (got {self.every_us}us)")


@dataclass(frozen=True, slots=True)
class Chain:
    """Chain of operators in the order of processing.

    Attributes:
        operators: 1 to 32 operators.
        punctuations: Where windows end; None for no windows.
        inputs: Names of the inputs; empty for a single one.
        outputs: Operators whose output leaves the chain; empty for the only one that no other reads.
        input_column: Column of one trace that names the input of each row; None for a trace per input.
    """

    operators: tuple[Operator, ...]
    punctuations: Punctuations | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    input_column: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.operators) <= MOST_OPERATORS:
            raise BadInput(f"a chain must have from 1 to {MOST_OPERATORS} operators (got {len(self.operators)})")
        seen: set[str] = set()
        for operator in self.operators:
            if operator.name in seen:
                raise BadInput(f"two operators are named {operator.name!r}; names must be unique")
            seen.add(operator.name)
        made = made_keys(self.operators, self.graph)
        if self.input_column is not None and len(self.inputs) < 2:
            raise BadInput(
                f'input_column {self.input_column!r} needs several inputs; add inputs = ["a", "b"] with the values of '
                "the column"
            )
        for operator in self.operators:
            if role_of(operator.function).at_punctuations and self.punctuations is None:
                raise BadInput(
                    f"operator {operator.name!r} runs {operator.function}, which needs punctuations; add "
                    "[punctuations] to the chain"
                )
            if operator.name in made and operator.by is not PartitionBy.HASH:
                raise BadInput(
                    f"operator {operator.name!r}: key {operator.key!r} is made in the chain, which only "
                    f'by = "{PartitionBy.HASH}" can partition; remove by'
                )

    @property
    def graph(self) -> Graph:
        """Which streams each operator reads."""
        names, reads = [each.name for each in self.operators], [each.sources for each in self.operators]
        return graph_of(names, reads, self.inputs, self.outputs)


def made_before(operators: Sequence[Operator], graph: Graph, *, own_only: bool = False) -> list[set[str]]:
    """Fields that are made before each operator, on any way.

    With `own_only`, those of own functions.
    """
    made: list[set[str]] = [set() for _ in graph.inputs]
    before = []
    for operator, sources in zip(operators, graph.sources, strict=True):
        before.append(set[str]().union(*(made[stream] for stream in sources)))
        counts = not own_only or isinstance(operator.function, OwnFunction)
        made.append(before[-1].union(role_of(operator.function).makes if counts else ()))
    return before


def made_keys(operators: Sequence[Operator], graph: Graph) -> frozenset[str]:
    """Names of the operators whose key is made in the chain.

    By their own function, or by an earlier one of the user's.
    """
    found = set[str]()
    for operator, made in zip(operators, made_before(operators, graph, own_only=True), strict=True):
        is_made = isinstance(operator.function, OwnFunction) and operator.key in made
        if operator.key is not None and (role_of(operator.function).made_key or is_made):
            found.add(operator.name)
    return frozenset(found)


def _check_key(operator: Operator) -> None:
    where = f"operator {operator.name!r}"
    if operator.kind is not OperatorKind.PARTITIONED:
        if operator.key is not None or operator.partitions is not None or operator.by is not PartitionBy.HASH:
            raise BadInput(
                f"{where} is {operator.kind}, but key, partitions and by need a partitioned operator; remove them "
                'or set kind = "partitioned"'
            )
        return
    if not operator.key:
        raise BadInput(f'{where} is partitioned but has no key; add key = "COLUMN"')
    if operator.by is PartitionBy.PLAN:
        if operator.partitions is not None:
            raise BadInput(f"{where} is partitioned by a plan, whose channels are its partitions; remove partitions")
    elif operator.partitions is None:
        raise BadInput(f"{where} is partitioned but has no number of partitions; add partitions = ...")
    elif operator.partitions is PartitionCount.WORKERS:
        if role_of(operator.function).at_punctuations:
            raise BadInput(
                f"{where} runs {operator.function}, whose output at punctuations depends on the number of partitions; "
                f'set partitions to a number instead of "{PartitionCount.WORKERS}"'
            )
    elif not 1 <= operator.partitions <= MOST_PARTITIONS:
        raise BadInput(f"{where}: partitions must be from 1 to {MOST_PARTITIONS} (got {operator.partitions})")


def _check_sizes(operator: Operator) -> None:
    sizes = (
        ("tuple_bytes", operator.tuple_bytes, MOST_TUPLE_BYTES),
        ("state_bytes", operator.state_bytes, MOST_STATE_BYTES),
    )
    where = f"operator {operator.name!r}"
    for name, size, most in sizes:
        if not 0 <= size <= most or size % WORD:
            raise BadInput(f"{where}: {name} must be a multiple of {WORD} from 0 to {most:,} (got {size})")
        if size and operator.function is not FunctionName.WORK:
            raise BadInput(
                f"{where} runs {operator.function}, which takes no {name}; remove it, or set "
                f'function = "{FunctionName.WORK}"'
            )
    if operator.state_bytes and operator.kind is OperatorKind.STATELESS:
        raise BadInput(f"{where} is stateless, but state_bytes needs a state; remove it or set another kind")


def _check_function(operator: Operator) -> None:
    where = f"operator {operator.name!r}"
    if isinstance(operator.cost, str):
        if not operator.cost:
            raise BadInput(f'{where}: cost must be microseconds or the name of a column (got "")')
    elif not (math.isfinite(operator.cost) and 0 <= operator.cost <= LONGEST_COST_US):
        raise BadInput(f"{where}: cost must be from 0 to {LONGEST_COST_US:g} microseconds (got {operator.cost:g})")
    if not 0 <= operator.selectivity < MOST_OUTPUTS:
        raise BadInput(f"{where}: selectivity must be from 0 to below {MOST_OUTPUTS} (got {operator.selectivity:g})")
    role, is_own = role_of(operator.function), isinstance(operator.function, OwnFunction)
    if operator.kind not in role.kinds:
        kinds = " or ".join(sorted(role.kinds))
        raise BadInput(f"{where} is {operator.kind}, but function {operator.function} needs a {kinds} operator")
    if is_own and operator.selectivity != 1.0:
        raise BadInput(f"{where} runs {operator.function}, which decides its outputs itself; remove selectivity")
    if (
        operator.function is not FunctionName.WORK
        and not is_own
        and (operator.cost != 0.0 or operator.selectivity != 1.0)
    ):
        raise BadInput(
            f"{where} runs {operator.function}, which takes no cost and no selectivity; remove both, "
            f'or set function = "{FunctionName.WORK}"'
        )
    if role.made_key and operator.key is not None and (operator.key != COUNTED or operator.by is not PartitionBy.HASH):
        raise BadInput(
            f"{where} runs {operator.function}, which counts by a field made in the chain; set "
            f'key = "{COUNTED}" and remove by'
        )
