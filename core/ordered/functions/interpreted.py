"""A function that a user wrote in Python: for the serial run and the model, which need nothing compiled."""

from math import ceil
from typing import Any

import numpy as np

from adapt.core.compiled import AtAddress
from adapt.core.errors import BadInput, UsageError
from adapt.core.ordered.chain.bound import BoundOperator, Words
from adapt.core.ordered.chain.chain import MOST_OUTPUTS, Operator, PythonFunction
from adapt.core.ordered.chain.mixing import MASK
from adapt.core.ordered.chain.names import FunctionName, OperatorKind
from adapt.core.ordered.functions.function import Function, Row, Step


class Interpreted(Function):
    """Gives for each value that the function gives a copy of the tuple with that value, modulo 2^64.

    The function is called with the value of a tuple and the state of its key, a dictionary that it may change: one a
    key, one in all where the operator is stateful, an empty one each time where it is stateless.
    """

    def __init__(self, operator: Operator, function: PythonFunction) -> None:
        """Run it as that operator."""
        self._where, self._function = f"operator {operator.name!r}", function

    @property
    def compiled(self) -> AtAddress:
        """There is none.

        Raises:
            UsageError: always; it says which engines run it.
        """
        raise UsageError(
            f"{self._where} runs {self._function.name}, which is Python, of which one thread runs at a time: it runs "
            "in the model (engine sim) and in the serial run; threads run compiled functions: "
            f"{', '.join(FunctionName)}"
        )

    def most(self, bound: BoundOperator) -> int:
        """As the selectivity says."""
        return ceil(bound.operator.selectivity)

    def step(self, bound: BoundOperator) -> Step:
        """The function, with the states that it needs."""
        at, key_at, call = bound.value_at, bound.key_at, self._function.call
        states: dict[int, dict[Any, Any]] = {}
        stateless = bound.operator.kind is OperatorKind.STATELESS

        def step(row: Row) -> list[Row]:
            state = {} if stateless else states.setdefault(row[key_at] if key_at >= 0 else 0, {})
            try:
                values = [int(value) & MASK for value in call(row[at], state)]
            except Exception as error:
                raise BadInput(
                    f"{self._where}: {self._function.name} failed on the value {row[at]}: {type(error).__name__}: "
                    f"{error}"
                ) from error
            if len(values) >= MOST_OUTPUTS:
                raise BadInput(
                    f"{self._where}: {self._function.name} gives {len(values)} outputs for the value {row[at]}; below "
                    f"{MOST_OUTPUTS} is what there may be"
                )
            return [(*row[:at], value, *row[at + 1 :]) for value in values]

        return step

    def words(self, bound: BoundOperator) -> tuple[int, ...]:  # noqa: ARG002 (there is no compiled form)
        """None."""
        return ()

    def state(self, bound: BoundOperator) -> Words:  # noqa: ARG002 (likewise)
        """None."""
        return np.zeros(0, np.int64)
