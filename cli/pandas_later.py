"""pyarrow without pandas, until something else imports pandas.

With its first array, pyarrow imports pandas if that is installed, as PySpark needs it. That takes a quarter of a second
in every command, for types that no command has.
"""

import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import Any


def keep_pandas_for_later() -> None:
    """Have pyarrow do without pandas until something else imports it.

    From then on, pyarrow knows the types of pandas as ever.
    """
    if not {"pyarrow", "pandas"} & sys.modules.keys():
        sys.meta_path.insert(0, _AfterImport("pyarrow", _make_array_without_pandas))


class _AfterImport(MetaPathFinder):
    """Does something once, after a module has been imported."""

    def __init__(self, name: str, action: Callable[[], object]) -> None:
        self.name = name
        self.action = action

    def find_spec(self, fullname: str, *_: Any) -> ModuleSpec | None:
        """The module as found elsewhere, with what follows its import."""
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            run = loader.exec_module

            def run_then_act(module: Any) -> None:
                run(module)
                self.action()

            loader.exec_module = run_then_act
        return spec


class _Absent(MetaPathFinder):
    """Has pandas seem not to be installed."""

    def find_spec(self, fullname: str, *_: Any) -> None:
        """Raises for pandas, whatever comes later on the path."""
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is for later", name=fullname)


def _make_array_without_pandas() -> None:
    """The first array, with which pyarrow looks for pandas and remembers what it found."""
    if "pandas" in sys.modules:
        return
    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        _arrow().array([])
    finally:
        sys.meta_path.remove(absent)
    sys.meta_path.insert(0, _AfterImport("pandas", lambda: _arrow().array([]).to_pandas()))


def _arrow() -> Any:
    return sys.modules["pyarrow"]
