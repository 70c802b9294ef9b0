"""pyarrow without pandas, until something else imports pandas.

With its first array, pyarrow imports pandas if that is installed, as PySpark needs it. That takes a quarter of a second
in every command, for types that no command has.
"""

import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any


def keep_pandas_for_later() -> None:
    """Have pyarrow do without pandas until something else imports it.

    From then on, pyarrow knows the types of pandas as ever.
    """
    if not {"pyarrow", "pandas"} & sys.modules.keys():
        sys.meta_path.insert(0, _AfterImport({"pyarrow": _make_array_without_pandas}))


class _AfterImport(MetaPathFinder):
    """Does something once a module has been imported."""

    def __init__(self, actions: dict[str, Callable[[], object]]) -> None:
        self.actions = actions

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The module as found elsewhere, with what follows its import."""
        action = self.actions.pop(fullname, None)
        if action is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_then_act(module: Any) -> None:
                run(module)
                action()

            setattr(spec.loader, "exec_module", run_then_act)  # noqa: B010
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
    sys.meta_path.insert(0, _AfterImport({"pandas": lambda: _arrow().array([]).to_pandas()}))


def _arrow() -> Any:
    return sys.modules["pyarrow"]
