"""Modules of the tests and benchmarks, loaded by path."""

from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

_ROOT = Path(__file__).parent.parent


@cache
def module_at(path: str) -> ModuleType:
    """Load the module in a file of the repository.

    Args:
        path: Path from the root of the repository.
    """
    spec = spec_from_file_location(Path(path).stem, _ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
