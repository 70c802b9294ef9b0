"""Every function that an operator can run, by its name."""

from adapt.core.ordered.functions.count import Count
from adapt.core.ordered.functions.function import Function
from adapt.core.ordered.functions.work import Work
from adapt.core.ordered.names import FunctionName

FUNCTIONS: dict[FunctionName, Function] = {FunctionName.WORK: Work(), FunctionName.COUNT: Count()}
