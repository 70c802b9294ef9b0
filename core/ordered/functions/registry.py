"""Every function that an operator can run, by its name."""

from adapt.core.ordered.chain import Operator, PythonFunction
from adapt.core.ordered.functions.count import Count
from adapt.core.ordered.functions.function import Function
from adapt.core.ordered.functions.interpreted import Interpreted
from adapt.core.ordered.functions.work import Work
from adapt.core.ordered.names import FunctionName

FUNCTIONS: dict[FunctionName, Function] = {FunctionName.WORK: Work(), FunctionName.COUNT: Count()}


def function_of(operator: Operator) -> Function:
    """What an operator computes."""
    if isinstance(operator.function, PythonFunction):
        return Interpreted(operator, operator.function)
    return FUNCTIONS[operator.function]
