"""A linear chain of operators, as a user describes it: each reads what the one before it gives."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from adapt.core.errors import BadInput
from adapt.core.ordered.chain.names import FunctionName, OperatorKind, PartitionBy
from adapt.core.ordered.chain.roles import COUNTED, TIME, role_of

MOST_OPERATORS = 32
MOST_PARTITIONS = 1 << 20
MOST_OUTPUTS = 1 << 16
"""Of one tuple."""
LONGEST_COST_US = 1e9


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """A function that a user wrote in Python.

    Attributes:
        name: As the chain names it, `module:function`.
        call: Given the value of a tuple and the state of its key, which it may change, the values of the outputs.
    """

    name: str
    call: Callable[[int, dict[Any, Any]], Iterable[int]]


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator.

    Attributes:
        name: Unique in the chain.
        kind: How much of it may run at once.
        key: Column whose values have a state each; of a partitioned operator only.
        partitions: How many parts the keys are divided into, 1 to 2^20; None where a plan says it.
        by: How.
        cost: Microseconds of work a tuple, or the column that has them; for `work` and functions in Python only.
        selectivity: Outputs a tuple, on average; likewise.
        function: What it computes.

    Raises:
        BadInput: the attributes do not fit together; the message names the operator.

    Source: ordered streams, section 2.1.
    """

    name: str
    kind: OperatorKind
    key: str | None = None
    partitions: int | None = None
    by: PartitionBy = PartitionBy.HASH
    cost: float | str = 0.0
    selectivity: float = 1.0
    function: FunctionName | PythonFunction = FunctionName.WORK

    def __post_init__(self) -> None:
        if not self.name:
            raise BadInput("an operator has an empty name; call it what it does")
        _check_key(self)
        _check_function(self)


@dataclass(frozen=True, slots=True)
class Punctuations:
    """Where a stream says that all before some time has come, so that operators can end windows by what they read.

    One stands after the last row of each stretch of time that has rows, with the time at which the stretch ends, and
    one at the end of the stream. They never come from a clock: the order of a run would be undefined.

    Attributes:
        column: Times, which never go back.
        every_us: The length of the stretches, from multiples of it since 1970; None, there is the one at the end only.

    Raises:
        BadInput: an attribute is out of its range.
    """

    column: str = TIME
    every_us: int | None = None

    def __post_init__(self) -> None:
        if not self.column:
            raise BadInput('the punctuations have a column without a name; leave it out for "ts"')
        if self.every_us is not None and not 0 < self.every_us < 1 << 62:
            raise BadInput(f"punctuations come every 1 microsecond or more, not {self.every_us}")


@dataclass(frozen=True, slots=True)
class Chain:
    """Operators in the order in which tuples pass them.

    Attributes:
        operators: They.
        punctuations: Where windows end; None, nowhere.

    Raises:
        BadInput: there is none, there are more than 32, or two have one name; or one needs punctuations, of which there
            are none.
    """

    operators: tuple[Operator, ...]
    punctuations: Punctuations | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.operators) <= MOST_OPERATORS:
            raise BadInput(f"a chain has from 1 to {MOST_OPERATORS} operators, not {len(self.operators)}")
        seen: set[str] = set()
        for operator in self.operators:
            if operator.name in seen:
                raise BadInput(f"operator {operator.name!r} stands in the chain twice; give each a name of its own")
            seen.add(operator.name)
            if role_of(operator.function).at_punctuations and self.punctuations is None:
                raise BadInput(
                    f"operator {operator.name!r} runs {operator.function}, which waits for punctuations, and there are "
                    "none; add [punctuations] to the chain"
                )


def _check_key(operator: Operator) -> None:
    where = f"operator {operator.name!r}"
    if operator.kind is not OperatorKind.PARTITIONED:
        if operator.key is not None or operator.partitions is not None or operator.by is not PartitionBy.HASH:
            raise BadInput(
                f"{where} is {operator.kind}, and only a partitioned one has key, partitions and by; leave them out, "
                'or say kind = "partitioned"'
            )
        return
    if not operator.key:
        raise BadInput(f'{where} is partitioned and has no key; add key = "COLUMN"')
    if operator.by is PartitionBy.PLAN:
        if operator.partitions is not None:
            raise BadInput(f"{where} is partitioned by a plan, whose channels are its partitions; leave partitions out")
    elif operator.partitions is None:
        raise BadInput(f"{where} is partitioned and does not say into how many; add partitions = ...")
    elif not 1 <= operator.partitions <= MOST_PARTITIONS:
        raise BadInput(f"{where} has from 1 to {MOST_PARTITIONS} partitions, not {operator.partitions}")


def _check_function(operator: Operator) -> None:
    where = f"operator {operator.name!r}"
    if isinstance(operator.cost, str):
        if not operator.cost:
            raise BadInput(
                f"{where} takes its cost from a column without a name; write cost = MICROSECONDS or a column"
            )
    elif not (math.isfinite(operator.cost) and 0 <= operator.cost <= LONGEST_COST_US):
        raise BadInput(f"{where} costs from 0 to {LONGEST_COST_US:g} microseconds a tuple, not {operator.cost:g}")
    if not 0 <= operator.selectivity < MOST_OUTPUTS:
        raise BadInput(f"{where} gives from 0 to below {MOST_OUTPUTS} outputs a tuple, not {operator.selectivity:g}")
    if isinstance(operator.function, PythonFunction):
        return
    role = role_of(operator.function)
    if operator.kind not in role.kinds:
        kinds = " or ".join(sorted(role.kinds))
        raise BadInput(f"{where} is {operator.kind}, and {operator.function} is for one that is {kinds}")
    if operator.function is not FunctionName.WORK and (operator.cost != 0.0 or operator.selectivity != 1.0):
        raise BadInput(
            f"{where} runs {operator.function}, whose cost and selectivity are what they are; leave both out, "
            f'or say function = "{FunctionName.WORK}"'
        )
    if role.made_key and operator.key is not None and (operator.key != COUNTED or operator.by is not PartitionBy.HASH):
        raise BadInput(
            f"{where} runs {operator.function}, which counts by a field that comes into being in the chain; write "
            f'key = "{COUNTED}" and leave by out'
        )
