"""The rules of the house: which part may import which, what help may load, what the package holds."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PARTS = ("cli", "core", "traces")
MAY_IMPORT = {"core": {"core"}, "traces": {"core", "traces"}, "cli": {"core", "traces", "cli"}}
SYSTEMS = ("flux", "elastic", "fit", "ordered")
SOURCES = sorted(path for part in PARTS for path in (ROOT / part).rglob("*.py"))


def imports_of(path: Path) -> Iterator[str]:
    """Every module a file names in an import, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides which part it reaches"
            yield str(node.module)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_follow_the_flow_of_data(path: Path) -> None:
    part = path.relative_to(ROOT).parts[0]
    for name in imports_of(path):
        top, _, rest = name.partition(".")
        assert top not in PARTS, f"{path}: import {name} would load the module twice; write adapt.{name}"
        assert top != "paper", f"{path}: paper measures the program, and is no part of it"
        if top == "adapt":
            assert rest.split(".")[0] in MAY_IMPORT[part], f"{path}: {part} must not import {name}"


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_systems_do_not_import_each_other(system: str) -> None:
    others = {f"adapt.core.{other}" for other in SYSTEMS if other != system}
    for path in (ROOT / "core" / system).rglob("*.py"):
        for name in imports_of(path):
            assert not any(name == other or name.startswith(f"{other}.") for other in others), f"{path}: {name}"


def test_core_knows_no_files_no_spark_and_no_terminal() -> None:
    """But for one file: compiled kernels are kept in the user's cache folder, whoever calls them."""
    forbidden = {"pyspark", "py4j", "rich", "typer", "pathlib", "os", "io", "shutil", "tempfile", "time", "subprocess"}
    for path in set((ROOT / "core").rglob("*.py")) - {ROOT / "core" / "kernel_cache.py"}:
        found = {name.split(".")[0] for name in imports_of(path)} & forbidden
        assert not found, f"{path} imports {found}"


def test_core_reads_no_clock_and_takes_its_randomness() -> None:
    for path in (ROOT / "core").rglob("*.py"):
        names = set(imports_of(path))
        assert "random" not in names, f"{path}: randomness comes in as a numpy Generator"
        tree = ast.parse(path.read_text())
        called = {
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert "hash" not in called, f"{path}: the built-in hash differs from process to process"


def test_help_loads_nothing_heavy() -> None:
    heavy = ("pyspark", "numba", "numpy", "pyarrow", "pandas", "jinja2", "vl_convert", "mmh3")
    code = f"import sys, adapt.cli.main; print(*[name for name in {heavy!r} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == []


def test_no_package_named_adapt_holds_code_of_its_own() -> None:
    assert not (ROOT / "adapt").exists()


def test_the_package_list_equals_the_folders() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    folders = {path.parent.relative_to(ROOT) for part in PARTS for path in (ROOT / part).rglob("*.py")}
    assert listed == {"adapt." + ".".join(folder.parts) for folder in folders}


def test_every_module_says_what_it_is() -> None:
    for path in SOURCES:
        assert ast.get_docstring(ast.parse(path.read_text())), f"{path} has no docstring"


def test_nothing_is_ever_unpickled() -> None:
    for path in SOURCES:
        found = {name.split(".")[0] for name in imports_of(path)} & {"pickle", "marshal", "shelve", "joblib", "dill"}
        assert not found, f"{path} imports {found}"
