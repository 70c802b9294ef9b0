"""Modules of the tests and of the benchmarks, by their path: neither is a package that could be imported by name."""

from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

_ROOT = Path(__file__).parent.parent


@cache
def module_at(path: str) -> ModuleType:
    """The module in a file of the tree.

    Args:
        path: From the top of the tree.
    """
    spec = spec_from_file_location(Path(path).stem, _ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
