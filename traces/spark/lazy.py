"""PySpark names imported on first use, as PySpark is slow to load."""

from collections.abc import Callable
from functools import cached_property, partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any


class Later:
    """A module, class or session, made on first access."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> Any:
        return self._make()

    def __getattr__(self, attribute: str) -> Any:
        """As that of what is made."""
        return getattr(self._made, attribute)


if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession, Window
    from pyspark.sql import functions as F
    from pyspark.sql import types as T
else:
    _NAMES = "pyspark.sql.functions", "pyspark.sql.types", "pyspark.sql:Window"
    F, T, Window = (Later(partial(resolve_name, name)) for name in _NAMES)
    Column = DataFrame = SparkSession = Any

__all__ = ["Column", "DataFrame", "F", "Later", "SparkSession", "T", "Window"]
