"""Reference implementations of the tests, for benchmarks."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

_TESTS = Path(__file__).parent.parent / "tests"


def from_tests(path: str) -> ModuleType:
    """Load a module of the tests by its path."""
    spec = spec_from_file_location(Path(path).stem, _TESTS / path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
