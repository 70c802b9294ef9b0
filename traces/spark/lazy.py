"""PySpark names imported on first use, as PySpark is slow to load."""

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession, Window
    from pyspark.sql import functions as F
    from pyspark.sql import types as T
else:

    class _Lazy:
        """A module or class, imported on first access to an attribute."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            return getattr(resolve_name(self._name), attribute)

    F, T, Window = _Lazy("pyspark.sql.functions"), _Lazy("pyspark.sql.types"), _Lazy("pyspark.sql:Window")
    Column = DataFrame = SparkSession = Any

__all__ = ["Column", "DataFrame", "F", "SparkSession", "T", "Window"]
