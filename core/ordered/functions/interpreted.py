"""User-defined Python functions, for the serial run and the model."""

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
    """A copy of the tuple for each value that the function returns.

    Values are modulo 2^64.

    The function gets the value of a tuple and a dictionary that it may change: one per key, one in total for a stateful
    operator, a new empty one each time for a stateless operator.
    """

    def __init__(self, operator: Operator, function: PythonFunction) -> None:
        """Use the function in an operator."""
        self._where, self._function = f"operator {operator.name!r}", function

    @property
    def compiled(self) -> AtAddress:
        """Not available in compiled code.

        Raises:
            UsageError: always; names the backends that run Python.
        """
        raise UsageError(
            f"{self._where} runs {self._function.name}, a Python function, which only the model (--backend sim) "
            "and the serial run support; threads need a compiled function: "
            f"{', '.join(FunctionName)}"
        )

    def most(self, bound: BoundOperator) -> int:
        """Outputs per tuple, by the selectivity."""
        return ceil(bound.operator.selectivity)

    def step(self, bound: BoundOperator) -> Step:
        """The function with its states."""
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
                    f"{self._where}: {self._function.name} gives {len(values)} outputs for the value {row[at]}; "
                    f"at most {MOST_OUTPUTS - 1} are allowed"
                )
            return [(*row[:at], value, *row[at + 1 :]) for value in values]

        return step

    def words(self, bound: BoundOperator) -> tuple[int, ...]:  # noqa: ARG002 (there is no compiled form)
        """Not used by Python functions."""
        return ()

    def state(self, bound: BoundOperator) -> Words:  # noqa: ARG002 (likewise)
        """Not used by Python functions."""
        return np.zeros(0, np.int64)
